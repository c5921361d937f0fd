//! The connections of HTTP/2 of one run to one target. `connections` means what it means over HTTP/1.1 (see `pool`), with
//! requests in the place of one request: `warm` opens ahead as many connections as the load has places, divided by the streams of
//! one; `cold` has the first request that finds no room open one; `per_request` has one request on each, and closes it.
//!
//! A request takes the first connection with room. Where none has any, and one is being opened, it waits for that one, as long
//! as the plan's number of streams leaves it a place; else it opens another. On a connection whose server has not told its settings only
//! the request goes that opened it: how many the server allows is not known before, and a stream too many would be refused.

use std::cell::RefCell;
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

/// How often the task of an idle connection is given a turn to see what has come, before the connection is used all the same: news
/// may be a ping as well as an end.
const LOOKS: u32 = 3;

/// The connections of one run to one target.
pub(crate) struct Sessions {
    connector: Connector,
    open: RefCell<Vec<Rc<Session>>>,
    /// Most requests on one, as the plan wants it.
    streams: u32,
    keeps: bool,
    /// The longest that opening one may take.
    limit: Nanos,
    /// Timers of requests that are over, for the next ones.
    timers: RefCell<Vec<Timer>>,
}

impl Sessions {
    /// No connections yet, for a run like `spec`.
    pub(crate) fn new(spec: &RunSpec, Http2 { streams }: Http2, connector: Connector) -> Sessions {
        let keeps = spec.connections != Connections::PerRequest;
        let (open, timers) = (RefCell::default(), RefCell::default());
        Sessions { connector, open, streams, keeps, limit: spec.timeouts.connect, timers }
    }

    /// Opens connections with room for `places` requests, some at a time. With the first that cannot be opened it is left at
    /// those there are: that is no request's failure, and the requests that find none will try and tell.
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
                // A server may allow fewer than the plan wants.
                on_each = session.limit();
            }
        }
    }

    /// The run's clock has started: from here on it stamps what the connections see, those too that were opened ahead.
    pub(crate) fn begin(&mut self, clock: Clock) {
        self.connector.begin(clock);
        self.open.get_mut().iter().for_each(|session| session.begin(clock));
    }

    /// A place for a request that goes now.
    pub(crate) async fn lease(&self) -> Result<Lease, Failure> {
        let kept = if self.keeps { self.kept().await? } else { None };
        match kept {
            Some(lease) => Ok(lease),
            None => self.start().first(!self.keeps).await,
        }
    }

    /// A place on a connection that is there, or is being opened; none where another is to be opened.
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

    /// The first connection that is like this, without those that are over.
    fn find(&self, is_so: impl Fn(&Session) -> bool) -> Option<Rc<Session>> {
        let mut open = self.open.borrow_mut();
        open.retain(|session| !session.is_over());
        open.iter().find(|session| is_so(session)).cloned()
    }

    fn start(&self) -> Rc<Session> {
        let session = Session::start(&self.connector, self.streams, self.limit);
        if self.keeps {
            self.open.borrow_mut().push(Rc::clone(&session));
        }
        session
    }

    /// A timer of an earlier request.
    pub(crate) fn timer(&self) -> Option<Timer> {
        self.timers.borrow_mut().pop()
    }

    /// Takes back the timer of a request that is over.
    pub(crate) fn keep_timer(&self, timer: Timer) {
        self.timers.borrow_mut().push(timer);
    }
}
