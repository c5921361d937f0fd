//! The connections of a run: opened ahead, kept, or new for each request, as the spec specifies.
//!
//! `warm`: a closed loop has one for each of its slots before the run's clock starts, a capped open loop
//! one for each slot under its cap; an open loop without a cap starts with a few, and grows on demand while
//! fill raises its rate (see `demand`). A request without an available connection opens one and records
//! that. `cold`: nothing is opened ahead. `per_request`: nothing is kept; the client closes first, when the
//! response is complete.
//!
//! A server may close an idle connection at any time. A kept one is checked before it is used again; one
//! that the server has closed meanwhile is dropped, even if that shows only at the write and nothing of the
//! request was written. Another kept one takes its place, or the request opens its own. A connection that
//! breaks after a byte of the request was written fails that request: nothing is sent twice.
//!
//! Some servers close after every response without announcing it (llama.cpp's does after streams): a client
//! that sends again at once crosses the close on its way. When `IN_A_ROW` connections were closed like
//! this, without one that served again between them, only those that are still open when `SETTLED` has
//! passed since their response are reused. One that serves again ends that.

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

/// This many connections closed by a server after their responses are a habit.
const IN_A_ROW: u32 = 3;
/// A close seen within this time after a response is due to the response, not to an idle timeout: servers
/// keep idle connections for seconds.
const BEHIND_ANSWER: Duration = Duration::from_secs(1);
/// By this time, a server with that habit has closed its connections.
const SETTLED: Duration = Duration::from_millis(20);

/// A connection without a request.
struct Idle {
    connection: Connection,
    /// When its last response was complete; `None` if it had none.
    since: Option<Instant>,
}

/// The connections of one run to one target.
pub(crate) struct Pool {
    connector: Connector,
    /// Connections without a request, the last used at the back.
    idle: RefCell<VecDeque<Idle>>,
    /// Connections that the server closed after their response, since one served again.
    closed: Cell<u32>,
    keeps: bool,
    /// Time limit for opening one.
    limit: Nanos,
}

impl Pool {
    /// Creates it without connections, for a run like `spec`.
    pub(crate) fn new(spec: &RunSpec, connector: Connector) -> Pool {
        let keeps = spec.connections != Connections::PerRequest;
        Pool { connector, idle: RefCell::default(), closed: Cell::new(0), keeps, limit: spec.timeouts.connect }
    }

    /// Opens `count` connections, some at a time. Stops at the first that cannot be opened: that is not the
    /// failure of a request, and requests without a connection will try and report it.
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

    /// Returns a kept connection that still looks good, the last used first; `None` if a new one
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

    /// Opens a new connection, and returns it with its cost.
    pub(crate) async fn open(&self) -> Result<(Connection, Opening), Failure> {
        // Rarely needed and large: boxed, it takes no room in the tasks of requests that find a connection.
        let opened = Box::pin(tokio::time::timeout(Duration::from(self.limit), self.connector.open())).await;
        match opened {
            Ok(Ok(opened)) => Ok(opened),
            Ok(Err(error)) => Err(no_connection(self.connector.authority(), Ok(&error))),
            Err(_) => Err(no_connection(self.connector.authority(), Err(self.limit))),
        }
    }
}

/// Returns the failure of a request for which no connection to `authority` could be opened: the reason, or
/// the time limit.
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

/// Returns the remedy if this machine's limits prevent a connection.
fn remedy(error: &io::Error) -> Option<&'static str> {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE) => Some("; raise the limit of open files: ulimit -n"),
        Some(Errno::ADDRNOTAVAIL) => {
            Some("; no local port is free: widen net.ipv4.ip_local_port_range, or keep connections")
        }
        _ => None,
    }
}
