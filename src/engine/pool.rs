//! The HTTP/1.1 connections of a run. Depending on the spec, they are opened ahead, kept, or opened for
//! each request.
//!
//! `warm`: before the run's clock starts, a closed loop opens one connection for each of its slots, and a
//! capped open loop opens one for each slot under its cap. An open loop without a cap starts with a few,
//! and opens more on demand while its rate rises during fill (see `demand`). If no connection is available,
//! a request opens one and records how long that took. `cold`: nothing is opened ahead. `per_request`:
//! nothing is kept; the client closes the connection first, when the response is complete.
//!
//! A server may close an idle connection at any time. A kept connection is therefore checked before it is
//! used again. If the server has closed it in the meantime, the request uses another kept connection or
//! opens a new one. The same applies if the close is noticed only when the request is written, as long as
//! no byte of it was written. If a connection breaks after that, the request fails, because no request is
//! sent twice.
//!
//! Some servers close the connection after every response without announcing it (llama.cpp's server does so
//! after streams), so the next request may be sent before the close arrives. When `IN_A_ROW` connections
//! have been closed like this in a row, without a successful reuse in between, a connection is reused only
//! if it is still open when `SETTLED` has passed since its last response. A successful reuse ends this
//! restriction.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use tokio::task::JoinSet;

use crate::expand::RunSpec;
use crate::plan::Connections;
use crate::rows::Outcome;
use crate::tls;
use crate::units::Nanos;

use super::clock::Clock;
use super::connection::Connection;
use super::connector::{Connector, Opening};
use super::tally::{Aside, Failure};

/// Maximum number of concurrent handshakes before a run, because a server's queue of unaccepted connections
/// is short.
pub(crate) const MOST_OPENING: usize = 64;

/// If a server closes this many connections in a row after their responses, it is assumed to do so after
/// every response.
const IN_A_ROW: u32 = 3;
/// A close within this time after a response is attributed to the response, not to an idle timeout, because
/// servers keep idle connections for seconds.
const BEHIND_ANSWER: Duration = Duration::from_secs(1);
/// A server that closes the connection after every response does so within this time.
const SETTLED: Duration = Duration::from_millis(20);

/// A connection that is not in use.
struct Idle {
    connection: Connection,
    /// When the connection's last response was complete; `None` if it has carried none.
    since: Option<Instant>,
}

/// The HTTP/1.1 connections of one thread to one target.
pub(crate) struct Pool {
    connector: Connector,
    /// Connections that are not in use, the most recently used at the back.
    idle: RefCell<VecDeque<Idle>>,
    /// Number of connections that the server has closed after a response since the last successful
    /// reuse.
    closed: Cell<u32>,
    keeps: bool,
    /// Time limit for opening a connection.
    limit: Nanos,
}

impl Pool {
    /// Creates an empty pool for a run of `spec`.
    pub(crate) fn new(spec: &RunSpec, connector: Connector) -> Pool {
        let keeps = spec.connections != Connections::PerRequest;
        Pool { connector, idle: RefCell::default(), closed: Cell::new(0), keeps, limit: spec.timeouts.connect }
    }

    /// Opens `count` connections, several at a time. Stops at the first that cannot be opened. This is not
    /// an error, because requests without a connection will try again and report the failure.
    pub(crate) async fn open_ahead(&self, count: u32) {
        let (mut opening, mut left) = (JoinSet::new(), count);
        loop {
            while left > 0 && opening.len() < MOST_OPENING {
                let (connector, limit) = (self.connector.clone(), Duration::from(self.limit));
                opening.spawn_local(async move { tokio::time::timeout(limit, connector.open()).await });
                left -= 1;
            }
            match opening.join_next().await {
                None => return,
                Some(Ok(Ok(Ok((connection, _))))) => self.idle.borrow_mut().push_back(Idle { connection, since: None }),
                Some(_) => left = 0,
            }
        }
    }

    /// Sets the run's clock, which has started. From now on it is used for the stamps of all connections,
    /// including those that were opened ahead.
    pub(crate) fn begin(&mut self, clock: Clock) {
        self.connector.begin(clock);
        self.idle.get_mut().iter().for_each(|idle| idle.connection.stamps.begin(clock));
    }

    /// Takes a kept connection that is still usable, preferably the most recently used; `None` if a new one
    /// must be opened.
    pub(crate) async fn kept(&self) -> Option<Connection> {
        loop {
            let Idle { mut connection, since } = self.next()?;
            if poll_fn(|cx| Poll::Ready(connection.is_reusable(cx))).await {
                return Some(connection);
            }
            if since.is_some_and(|answered| answered.elapsed() < BEHIND_ANSWER) {
                self.was_closed();
            }
        }
    }

    fn next(&self) -> Option<Idle> {
        let mut idle = self.idle.borrow_mut();
        if self.closed.get() < IN_A_ROW {
            return idle.pop_back();
        }
        let settled = |idle: &Idle| idle.since.is_none_or(|answered| answered.elapsed() >= SETTLED);
        idle.front().is_some_and(settled).then(|| idle.pop_front())?
    }

    /// Records that a reused connection was closed before any part of a response arrived.
    pub(crate) fn was_closed(&self) {
        self.closed.set(self.closed.get().saturating_add(1));
    }

    /// Records that a reused connection returned a response.
    pub(crate) fn served_again(&self) {
        self.closed.set(0);
    }

    /// Takes back a connection that can carry another request.
    pub(crate) fn keep(&self, connection: Connection) {
        if self.keeps {
            self.idle.borrow_mut().push_back(Idle { connection, since: Some(Instant::now()) });
        }
    }

    /// Opens a new connection. Also returns how long each step took.
    pub(crate) async fn open(&self) -> Result<(Connection, Opening), Failure> {
        // Boxed because the future is large and rarely needed: this way it takes no memory in the tasks of
        // requests that find a connection.
        let opened = Box::pin(tokio::time::timeout(Duration::from(self.limit), self.connector.open())).await;
        match opened {
            Ok(Ok(opened)) => Ok(opened),
            Ok(Err(error)) => Err(no_connection(self.connector.authority(), Ok(&error))),
            Err(_) => Err(no_connection(self.connector.authority(), Err(self.limit))),
        }
    }
}

/// Returns the failure of a request for which no connection to `authority` could be opened. `reason` is the
/// error, or the time limit that was reached.
pub(crate) fn no_connection(authority: &str, reason: Result<&io::Error, Nanos>) -> Failure {
    let (reason, aside) = match reason {
        Ok(error) => {
            let remedy = remedy(error);
            let cause = tls::in_words(error.to_string());
            (format!(": {cause}{}", remedy.unwrap_or_default()), remedy.map(|_| Aside::Local))
        }
        Err(limit) => (format!(" within {limit}"), Some(Aside::Late)),
    };
    Failure::new(Outcome::Connect, format!("no connection to {authority}{reason}")).with(aside)
}

/// Returns the remedy to append to the message if this machine's limits prevented the connection; otherwise
/// `None`.
fn remedy(error: &io::Error) -> Option<&'static str> {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE) => Some("; raise the limit of open files: ulimit -n"),
        Some(Errno::ADDRNOTAVAIL) => {
            Some("; no local port is free: widen net.ipv4.ip_local_port_range, or keep connections")
        }
        _ => None,
    }
}
