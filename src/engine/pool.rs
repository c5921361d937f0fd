//! The connections of a run: opened ahead, kept, or new for each request, as the spec says.
//!
//! `warm`: a closed loop has one for each of its slots before the run's clock starts, a capped open loop one for each
//! place under its cap; an open loop without a cap a few, and it grows by demand while fill raises its rate (see
//! `demand`). A request that finds none opens its own and says so. `cold`: nothing is opened ahead. `per_request`:
//! nothing is kept; the client closes first, when the answer is whole.
//!
//! A server may close an idle connection at any time. A kept one is looked at before it is used again; one that the
//! server has closed meanwhile is dropped, also when that shows only at the write and nothing of the request was written.
//! Another kept one takes its place, or the request opens its own. A connection that breaks after a byte of the request
//! was written fails that request: nothing is sent twice.
//!
//! Some servers close behind every answer and say nothing of it (llama.cpp's does behind streams): a client that sends again at once
//! crosses the close on its way. When `IN_A_ROW` connections were closed so, without one that served again between them, only those are
//! used again that are still open when `SETTLED` has passed since their answer. One that serves again ends that.

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

/// Most handshakes at once before a run: a server's queue of connections that it has not accepted is short.
pub(crate) const MOST_OPENING: usize = 64;

/// So many connections that a server closed behind their answers make a habit.
const IN_A_ROW: u32 = 3;
/// A close that is seen this long behind an answer was the answer's, and not that of an idle connection: servers keep these for seconds.
const BEHIND_ANSWER: Duration = Duration::from_secs(1);
/// What a server with that habit has closed by then is closed.
const SETTLED: Duration = Duration::from_millis(20);

/// A connection without a request.
struct Idle {
    connection: Connection,
    /// When its last answer was whole; none where it carried none.
    since: Option<Instant>,
}

/// The connections of one run to one target.
pub(crate) struct Pool {
    connector: Connector,
    /// Connections without a request, the last used at the back.
    idle: RefCell<VecDeque<Idle>>,
    /// Connections that the server closed behind their answer, since one served again.
    closed: Cell<u32>,
    keeps: bool,
    /// The longest that opening one may take.
    limit: Nanos,
}

impl Pool {
    /// No connections yet, for a run like `spec`.
    pub(crate) fn new(spec: &RunSpec, connector: Connector) -> Pool {
        let keeps = spec.connections != Connections::PerRequest;
        Pool { connector, idle: RefCell::default(), closed: Cell::new(0), keeps, limit: spec.timeouts.connect }
    }

    /// Opens `count` connections, some at a time. With the first that cannot be opened it is left at those there are: that
    /// is no request's failure, and the requests that find none will try and tell.
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

    /// The run's clock has started: from here on it stamps what the connections see, those too that were opened ahead.
    pub(crate) fn begin(&mut self, clock: Clock) {
        self.connector.begin(clock);
        self.idle.get_mut().iter().for_each(|idle| idle.connection.stamps.begin(clock));
    }

    /// A kept connection that still looks good, the last used first; none where a new one is to be opened.
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

    /// A connection that was used again was closed before anything of an answer came.
    pub(crate) fn was_closed(&self) {
        self.closed.set(self.closed.get().saturating_add(1));
    }

    /// A connection that was used again brought an answer.
    pub(crate) fn served_again(&self) {
        self.closed.set(0);
    }

    /// Takes a connection back that could carry another request.
    pub(crate) fn keep(&self, connection: Connection) {
        if self.keeps {
            self.idle.borrow_mut().push_back(Idle { connection, since: Some(Instant::now()) });
        }
    }

    /// A new connection, and what it cost.
    pub(crate) async fn open(&self) -> Result<(Connection, Opening), Failure> {
        // Seldom needed and large: boxed, it takes no room in the tasks of requests that find a connection.
        let opened = Box::pin(tokio::time::timeout(Duration::from(self.limit), self.connector.open())).await;
        match opened {
            Ok(Ok(opened)) => Ok(opened),
            Ok(Err(error)) => Err(no_connection(self.connector.authority(), Ok(&error))),
            Err(_) => Err(no_connection(self.connector.authority(), Err(self.limit))),
        }
    }
}

/// The failure of a request for which no connection to `authority` could be opened: why, or within which time.
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

/// What to do where it is this machine that does not allow a connection.
fn remedy(error: &io::Error) -> Option<&'static str> {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE) => Some("; raise the limit of open files: ulimit -n"),
        Some(Errno::ADDRNOTAVAIL) => {
            Some("; no local port is free: widen net.ipv4.ip_local_port_range, or keep connections")
        }
        _ => None,
    }
}
