//! One connection of HTTP/2: how it comes to be, the task that drives it, and the places on it.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use tokio::sync::Notify;

use super::failure::failed;
use super::ledger::Ledger;
use super::watched::Watched;
use crate::engine::clock::Clock;
use crate::engine::connector::{Connector, Opening};
use crate::engine::pool::no_connection;
use crate::engine::tally::Failure;
use crate::rows::Outcome;
use crate::units::Nanos;

/// What the server may send before anything is taken back: so much that it never waits for the client. Each frame is taken as
/// soon as it is there.
const WINDOW: u32 = 1 << 30;
/// Largest head that is taken, as over HTTP/1.1.
const MAX_HEAD: u32 = 64 << 10;
/// Streams that were given up and whose last frames are still waited for. A frame of one that is forgotten is answered with
/// a reset.
const MOST_GIVEN_UP: usize = 4096;
/// How long these are waited for.
const GIVEN_UP_FOR: Duration = Duration::from_secs(30);

/// One connection.
pub(crate) struct Session {
    /// Most requests under way that the plan wants on it.
    wanted: u32,
    clock: Clock,
    /// When it was wanted, in nanoseconds since the run's start.
    began: u64,
    state: RefCell<State>,
    /// Something became known: it is open, the server's settings came, it is over.
    changed: Notify,
    /// Places taken: requests under way, and those that wait for it.
    taken: Cell<u32>,
    /// Requests under way.
    under_way: Cell<u32>,
    /// Wakes the task that drives it.
    driver: RefCell<Option<Waker>>,
}

enum State {
    Opening,
    Open(Open),
    Over(Failure),
}

/// What an open connection consists of.
struct Open {
    send: SendRequest<Bytes>,
    ledger: Rc<Ledger>,
    opening: Opening,
    /// When it was open, in nanoseconds since the run's start.
    at: u64,
}

/// How a request came to its connection, where it had to wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waited {
    /// Name lookup, TCP handshake, TLS handshake: as far as they fell into its wait.
    pub(crate) opening: Opening,
}

/// A place on a connection, given back when it is dropped.
pub(crate) struct Lease {
    session: Rc<Session>,
    goes: bool,
    /// The connection is closed when it is given back.
    is_for_once: bool,
    /// What it waited for; none where the connection was there.
    pub(crate) waited: Option<Waited>,
}

impl Session {
    /// A connection that begins to be opened now, within `limit`. To be called within the runtime.
    pub(super) fn start(connector: &Connector, wanted: u32, limit: Nanos) -> Rc<Session> {
        let clock = connector.clock();
        let session = Rc::new(Session {
            wanted,
            clock,
            began: clock.now(),
            state: RefCell::new(State::Opening),
            changed: Notify::new(),
            taken: Cell::new(0),
            under_way: Cell::new(0),
            driver: RefCell::default(),
        });
        tokio::task::spawn_local(Rc::clone(&session).live(connector.clone(), limit));
        session
    }

    /// Opens it and drives it to its end.
    async fn live(self: Rc<Self>, connector: Connector, limit: Nanos) {
        let opened = tokio::time::timeout(Duration::from(limit), open(&connector)).await;
        let failure = match opened {
            // Nobody wants it any longer.
            Ok(Ok(_)) if !matches!(&*self.state.borrow(), State::Opening) => return,
            Ok(Ok((send, connection, ledger, opening))) => {
                let open = Open { send, ledger: Rc::clone(&ledger), opening, at: self.clock.now() };
                *self.state.borrow_mut() = State::Open(open);
                self.changed.notify_waiters();
                self.drive(connection, &ledger).await
            }
            Ok(Err(error)) => no_connection(connector.authority(), Ok(&error)),
            Err(_) => no_connection(connector.authority(), Err(limit)),
        };
        *self.state.borrow_mut() = State::Over(failure);
        self.changed.notify_waiters();
    }

    /// Drives an open connection until it is over; says what a request finds there from then on.
    async fn drive(&self, connection: Connection<Watched, Bytes>, ledger: &Ledger) -> Failure {
        let mut connection = pin!(connection);
        let mut is_settled = false;
        let ended = poll_fn(|cx| {
            let mut driver = self.driver.borrow_mut();
            if !driver.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                *driver = Some(cx.waker().clone());
            }
            drop(driver);
            let polled = connection.as_mut().poll(cx);
            self.close_where_left();
            if ledger.is_settled() && !std::mem::replace(&mut is_settled, true) {
                self.changed.notify_waiters();
            }
            polled
        });
        match ended.await {
            Ok(()) => Failure::new(Outcome::Reset, "the server closed the connection"),
            Err(error) => failed(&error, ledger.is_settled()),
        }
    }

    /// Whether it is over, or takes no further requests: nothing is to be asked of it again.
    pub(super) fn is_over(&self) -> bool {
        match &*self.state.borrow() {
            State::Opening => false,
            State::Open(Open { ledger, .. }) => ledger.is_leaving(),
            State::Over(_) => true,
        }
    }

    /// Whether it is being opened, or the server's settings have not come.
    pub(super) fn is_unsettled(&self) -> bool {
        match &*self.state.borrow() {
            State::Opening => true,
            State::Open(Open { ledger, .. }) => !ledger.is_settled(),
            State::Over(_) => false,
        }
    }

    /// The most requests under way at once: what the plan wants, and not more than what the server allows. Until its
    /// settings have come that is not known, and one may go.
    pub(super) fn limit(&self) -> u32 {
        match &*self.state.borrow() {
            State::Opening => 1,
            State::Open(Open { ledger, .. }) if !ledger.is_settled() => 1,
            State::Open(Open { send, .. }) => {
                let allowed = u32::try_from(send.current_max_send_streams()).unwrap_or(u32::MAX);
                self.wanted.min(allowed)
            }
            State::Over(_) => 0,
        }
    }

    /// Whether a request may go on it now.
    pub(super) fn has_room(&self) -> bool {
        !self.is_over() && !self.is_unsettled() && self.taken.get() < self.limit()
    }

    /// Whether a request may wait for it.
    pub(super) fn may_be_joined(&self) -> bool {
        self.is_unsettled() && self.taken.get() < self.wanted
    }

    /// Whether something has come on it, while no request was under way, that its task has not seen: perhaps its end.
    pub(super) fn has_news(&self) -> bool {
        self.taken.get() == 0
            && matches!(&*self.state.borrow(), State::Open(Open { ledger, .. }) if !ledger.is_silent())
    }

    /// Has its task look at the socket at once, whatever the runtime believes about it.
    pub(super) fn look(&self) {
        if let State::Open(Open { ledger, .. }) = &*self.state.borrow() {
            ledger.stamps().doubt();
        }
        if let Some(driver) = &*self.driver.borrow() {
            driver.wake_by_ref();
        }
    }

    /// The run's clock has started.
    pub(super) fn begin(&self, clock: Clock) {
        if let State::Open(Open { ledger, .. }) = &*self.state.borrow() {
            ledger.stamps().begin(clock);
        }
    }

    /// Closes it where the server takes no further requests on it and none is under way: a server may wait for that.
    fn close_where_left(&self) {
        if self.taken.get() == 0 && matches!(&*self.state.borrow(), State::Open(open) if open.ledger.is_leaving()) {
            self.close();
        }
    }

    /// Closes it when the last request on it has ended.
    pub(super) fn close(&self) {
        // Drops the sender, whose last one ends the connection.
        *self.state.borrow_mut() = State::Over(Failure::new(Outcome::Reset, "the client has closed the connection"));
    }

    /// A place on it for a request that goes now.
    pub(super) fn lease(self: &Rc<Self>) -> Lease {
        self.place().go()
    }

    /// A place on it.
    fn place(self: &Rc<Self>) -> Lease {
        self.taken.set(self.taken.get() + 1);
        Lease { session: Rc::clone(self), goes: false, is_for_once: false, waited: None }
    }

    /// A place on a new connection, whose first request goes as soon as it is open; `is_for_once`: the connection is closed when
    /// the place is given back.
    pub(super) async fn first(self: &Rc<Self>, is_for_once: bool) -> Result<Lease, Failure> {
        let mut lease = self.place().go();
        lease.is_for_once = is_for_once;
        self.until(|session| !matches!(&*session.state.borrow(), State::Opening)).await;
        match &*self.state.borrow() {
            State::Over(failure) => Err(failure.clone()),
            State::Opening => unreachable!("it was waited for"),
            State::Open(Open { opening, .. }) => Ok(lease.after(Waited { opening: *opening })),
        }
    }

    /// A place on a connection that is being opened; none where the server allows fewer. Waits until its settings have come,
    /// no longer than `limit`.
    pub(super) async fn join(self: &Rc<Self>, limit: Nanos, authority: &str) -> Result<Option<Lease>, Failure> {
        let (place, joined) = (self.place(), self.clock.now());
        let settled = self.until(|session| !session.is_unsettled());
        if tokio::time::timeout(Duration::from(limit), settled).await.is_err() {
            return Err(no_connection(authority, Err(limit)));
        }
        let waited = match &*self.state.borrow() {
            State::Over(failure) => return Err(failure.clone()),
            State::Opening => unreachable!("it was waited for"),
            State::Open(open) => Waited { opening: open.shared_with(joined, self.began, self.clock.now()) },
        };
        let goes = self.under_way.get() < self.limit() && !self.is_over();
        Ok(goes.then(|| place.go().after(waited)))
    }

    /// Waits until the server's settings have come, or it is over.
    pub(super) async fn settle(&self) {
        self.until(|session| !session.is_unsettled()).await;
    }

    async fn until(&self, is_so: impl Fn(&Session) -> bool) {
        while !is_so(self) {
            // All is on one thread: nothing changes between the look and the wait.
            self.changed.notified().await;
        }
    }
}

impl Open {
    /// The parts of its opening that fell into the wait of a request that came at `joined` and may go at `now`. The wait for
    /// the server's settings is a part of the TCP handshake: nothing else of a row could say it.
    fn shared_with(&self, joined: u64, began: u64, now: u64) -> Opening {
        let Opening { dns, tls, .. } = self.opening;
        let since = |from: u64, to: u64| to.saturating_sub(from.max(joined));
        let dns = dns.map(|took| since(began, began + took));
        let tls = tls.map(|took| since(self.at.saturating_sub(took), self.at));
        let others = dns.unwrap_or(0) + tls.unwrap_or(0);
        Opening { dns, connect: Some(now.saturating_sub(joined).saturating_sub(others)), tls }
    }
}

impl Lease {
    fn go(mut self) -> Lease {
        let under_way = &self.session.under_way;
        under_way.set(under_way.get() + 1);
        self.goes = true;
        self
    }

    fn after(mut self, waited: Waited) -> Lease {
        self.waited = Some(waited);
        self
    }

    /// What is needed to send a request; an error where the connection is over.
    pub(super) fn open(&self) -> Result<(SendRequest<Bytes>, Rc<Ledger>), Failure> {
        match &*self.session.state.borrow() {
            State::Open(Open { send, ledger, .. }) => Ok((send.clone(), Rc::clone(ledger))),
            State::Over(failure) => Err(failure.clone()),
            State::Opening => Err(Failure::new(Outcome::Connect, "the connection is not open")),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Session { taken, under_way, .. } = &*self.session;
        taken.set(taken.get() - 1);
        if self.goes {
            under_way.set(under_way.get() - 1);
        }
        if self.is_for_once {
            self.session.close();
        }
        self.session.close_where_left();
    }
}

/// Opens a connection and begins to speak HTTP/2 on it. The server has answered nothing yet.
async fn open(
    connector: &Connector,
) -> io::Result<(SendRequest<Bytes>, Connection<Watched, Bytes>, Rc<Ledger>, Opening)> {
    let (socket, stamps, opening) = connector.socket().await?;
    let watched = Watched::new(socket, stamps);
    let ledger = watched.ledger();
    let mut builder = Builder::new();
    builder
        .enable_push(false)
        .initial_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_header_list_size(MAX_HEAD)
        .max_concurrent_reset_streams(MOST_GIVEN_UP)
        .reset_stream_duration(GIVEN_UP_FOR)
        // What a server still sends for requests that were given up is no reason to end a connection.
        .max_local_error_reset_streams(None);
    let (send, connection) = builder.handshake(watched).await.map_err(io::Error::other)?;
    Ok((send, connection, ledger, opening))
}
