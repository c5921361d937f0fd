//! The HTTP/2 connections of a run. The plan's `connections` has the same meaning as over HTTP/1.1 (see
//! `pool`), but a connection carries several requests: `warm` opens one connection ahead for every N slots
//! of the load, where N is the number of streams per connection; with `cold`, a request that finds no room
//! opens one; `per_request` sends one request on each connection and then closes it.
//!
//! A request takes the first connection with room. If none has room and one is being opened, the request
//! waits for that connection, provided that the plan's number of streams leaves a slot for it; otherwise it
//! opens another. Until the server's settings have arrived, only the request that opened the connection is
//! sent on it. Before that the server's limit on streams is unknown, and the server would refuse streams
//! beyond the limit.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use crate::engine::clock::Clock;
use crate::engine::connector::Connector;
use crate::engine::limit::Timer;
use crate::engine::pool::MOST_OPENING;
use crate::engine::tally::Failure;
use crate::expand::{Http2, RunSpec};
use crate::plan::Connections;
use crate::units::Nanos;

use super::session::{Lease, Session};

/// If unread data has arrived on an idle connection, the connection's task gets this many turns to process
/// the data before the connection is used anyway. The data may be a close, or only a ping.
const LOOKS: u32 = 3;

/// The HTTP/2 connections of one thread to one target.
pub(crate) struct Sessions {
    connector: Connector,
    open: RefCell<Vec<Rc<Session>>>,
    /// Maximum number of concurrent requests on one connection, as specified in the plan.
    streams: u32,
    keeps: bool,
    /// Time limit for opening a connection.
    limit: Nanos,
    /// Whether the run has ended.
    ended: Rc<Cell<bool>>,
    /// Timers of finished requests, for reuse.
    timers: RefCell<Vec<Timer>>,
}

impl Sessions {
    /// Creates an empty set of connections for a run of `spec`.
    pub(crate) fn new(spec: &RunSpec, Http2 { streams }: Http2, connector: Connector) -> Sessions {
        let keeps = spec.connections != Connections::PerRequest;
        let (open, ended, timers) = (RefCell::default(), Rc::default(), RefCell::default());
        Sessions { connector, open, streams, keeps, limit: spec.timeouts.connect, ended, timers }
    }

    /// Writes nothing more to any connection, because the run has ended. A request that was not written before is
    /// never sent, and its row says so.
    pub(crate) fn end(&self) {
        self.ended.set(true);
    }

    /// Opens connections with room for `places` concurrent requests, several connections at a time. Stops
    /// at the first connection that cannot be opened. This is not an error, because requests without a
    /// connection will try again and report the failure.
    pub(crate) async fn open_ahead(&self, places: u32) {
        let mut on_each = self.streams;
        loop {
            let room: u32 = self.open.borrow().iter().map(|session| session.limit()).fold(0, u32::saturating_add);
            let missing = places.saturating_sub(room).div_ceil(on_each.max(1)) as usize;
            if missing == 0 {
                return;
            }
            let started: Vec<_> = (0..missing.min(MOST_OPENING)).map(|_| self.start()).collect();
            for session in &started {
                let settled = tokio::time::timeout(Duration::from(self.limit), session.settle()).await.is_ok();
                if !settled || session.is_over() || session.limit() == 0 {
                    started.iter().filter(|session| session.is_unsettled()).for_each(|session| session.close());
                    self.open.borrow_mut().retain(|session| !session.is_over());
                    return;
                }
                // A server may allow fewer streams than the plan specifies.
                on_each = session.limit();
            }
        }
    }

    /// Sets the run's clock, which has started. From now on it is used for the stamps of all connections,
    /// including those that were opened ahead.
    pub(crate) fn begin(&mut self, clock: Clock) {
        self.connector.begin(clock);
        self.open.get_mut().iter().for_each(|session| session.begin(clock));
    }

    /// Takes a slot for a request that is sent now, on an existing or a new connection.
    pub(crate) async fn lease(&self) -> Result<Lease, Failure> {
        let kept = if self.keeps { self.kept().await? } else { None };
        match kept {
            Some(lease) => Ok(lease),
            None => self.start().first(!self.keeps).await,
        }
    }

    /// Takes a slot on a connection that exists or is being opened; `None` if another must be opened.
    async fn kept(&self) -> Result<Option<Lease>, Failure> {
        let mut looks = 0;
        loop {
            if let Some(session) = self.find(Session::has_room) {
                if looks == LOOKS || !session.has_news() {
                    return Ok(Some(session.lease()));
                }
                looks += 1;
                session.look();
                tokio::task::yield_now().await;
                continue;
            }
            let Some(session) = self.find(Session::may_be_joined) else { return Ok(None) };
            if let Some(lease) = session.join(self.limit, self.connector.authority()).await? {
                return Ok(Some(lease));
            }
        }
    }

    /// Removes connections that are over, and returns the first of the remaining connections that satisfies
    /// the condition, if any.
    fn find(&self, is_so: impl Fn(&Session) -> bool) -> Option<Rc<Session>> {
        let mut open = self.open.borrow_mut();
        open.retain(|session| !session.is_over());
        open.iter().find(|session| is_so(session)).cloned()
    }

    fn start(&self) -> Rc<Session> {
        let session = Session::start(&self.connector, self.streams, self.limit, Rc::clone(&self.ended));
        if self.keeps {
            self.open.borrow_mut().push(Rc::clone(&session));
        }
        session
    }

    /// Takes the timer of an earlier request for reuse, if there is one.
    pub(crate) fn timer(&self) -> Option<Timer> {
        self.timers.borrow_mut().pop()
    }

    /// Takes back the timer of a finished request.
    pub(crate) fn keep_timer(&self, timer: Timer) {
        self.timers.borrow_mut().push(timer);
    }
}
