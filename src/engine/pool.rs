//! The connections of a run: opened ahead, kept, or new for each request, as the spec specifies.
//!
//! `warm`: before the run's clock starts, a closed loop opens one connection for each of its slots, and a
//! capped open loop opens one for each slot under its cap. An open loop without a cap starts with a few,
//! and opens more on demand while fill raises its rate (see `demand`). A request without an available
//! connection opens one and records that. `cold`: nothing is opened ahead. `per_request`: nothing is kept;
//! the client closes the connection first, when the response is complete.
//!
//! A server may close an idle connection at any time. A kept connection is checked before it is used again.
//! If the server has closed it in the meantime, it is dropped, even if the close shows only at the write,
//! before any byte of the request was written. Another kept connection takes its place, or the request
//! opens its own. A connection that breaks after a byte of the request was written fails that request:
//! nothing is sent twice.
//!
//! Some servers close after every response without announcing it (llama.cpp's does after streams), so a
//! request that is sent at once crosses the close on the wire. When `IN_A_ROW` connections have been closed
//! like this in a row, without a successful reuse in between, only connections that are still open when
//! `SETTLED` has passed since their response are reused. A successful reuse ends this restriction.

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
use crate::units::Nanos;

use super::clock::Clock;
use super::connection::Connection;
use super::connector::{Connector, Opening};
use super::tally::{Aside, Failure};

/// Maximum number of concurrent handshakes before a run: a server's queue of unaccepted connections
/// is short.
pub(crate) const MOST_OPENING: usize = 64;

/// If a server closes this many connections in a row after their responses, it is assumed to do so
/// always.
const IN_A_ROW: u32 = 3;
/// A close seen within this time after a response is due to the response, not to an idle timeout: servers
/// keep idle connections for seconds.
const BEHIND_ANSWER: Duration = Duration::from_secs(1);
/// By this time after a response, a server that always closes has closed the connection.
const SETTLED: Duration = Duration::from_millis(20);

/// A connection without a request.
struct Idle {
    connection: Connection,
    /// When the connection's last response was complete; `None` if it has carried none.
    since: Option<Instant>,
}

/// The connections of one run to one target.
pub(crate) struct Pool {
    connector: Connector,
    /// Connections without a request, the most recently used at the back.
    idle: RefCell<VecDeque<Idle>>,
    /// Number of connections that the server closed after their response since the last successful
    /// reuse.
    closed: Cell<u32>,
    keeps: bool,
    /// Time limit for opening a connection.
    limit: Nanos,
}

impl Pool {
    /// Creates an empty pool for a run like `spec`.
    pub(crate) fn new(spec: &RunSpec, connector: Connector) -> Pool {
        let keeps = spec.connections != Connections::PerRequest;
        Pool { connector, idle: RefCell::default(), closed: Cell::new(0), keeps, limit: spec.timeouts.connect }
    }

    /// Opens `count` connections, several at a time. Stops at the first that cannot be opened. This is not
    /// the failure of a request: requests without a connection will try again and report the failure.
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

    /// Sets the run's clock, which has started: from here on it stamps all connections, including those
    /// that were opened ahead.
    pub(crate) fn begin(&mut self, clock: Clock) {
        self.connector.begin(clock);
        self.idle.get_mut().iter().for_each(|idle| idle.connection.stamps.begin(clock));
    }

    /// Returns a kept connection that still looks good, the most recently used first; `None` if a
    /// new one must be opened.
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

    /// Opens a new connection, and returns it with its cost.
    pub(crate) async fn open(&self) -> Result<(Connection, Opening), Failure> {
        // Boxed because the future is large and rarely needed: this way it takes no room in the tasks of
        // requests that find a connection.
        let opened = Box::pin(tokio::time::timeout(Duration::from(self.limit), self.connector.open())).await;
        match opened {
            Ok(Ok(opened)) => Ok(opened),
            Ok(Err(error)) => Err(no_connection(self.connector.authority(), Ok(&error))),
            Err(_) => Err(no_connection(self.connector.authority(), Err(self.limit))),
        }
    }
}

/// Returns the failure of a request for which no connection to `authority` could be opened; the failure
/// contains the reason, or that the time limit was reached.
pub(crate) fn no_connection(authority: &str, reason: Result<&io::Error, Nanos>) -> Failure {
    let (reason, aside) = match reason {
        Ok(error) => {
            let remedy = remedy(error);
            (format!(": {error}{}", remedy.unwrap_or_default()), remedy.map(|_| Aside::Local))
        }
        Err(limit) => (format!(" within {limit}"), Some(Aside::Late)),
    };
    Failure::new(Outcome::Connect, format!("no connection to {authority}{reason}")).with(aside)
}

/// Returns the remedy if this machine's limits prevented the connection.
fn remedy(error: &io::Error) -> Option<&'static str> {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE) => Some("; raise the limit of open files: ulimit -n"),
        Some(Errno::ADDRNOTAVAIL) => {
            Some("; no local port is free: widen net.ipv4.ip_local_port_range, or keep connections")
        }
        _ => None,
    }
}
