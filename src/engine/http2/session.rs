//! One HTTP/2 connection: how it is opened, the task that drives it, and the slots that its requests take.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};
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

/// The flow-control window that the server gets, in bytes. It is so large that the server never waits for
/// the client, which takes each frame as soon as it arrives.
const WINDOW: u32 = 1 << 30;
/// Size of the largest accepted head, in bytes; the same as over HTTP/1.1.
const MAX_HEAD: u32 = 64 << 10;
/// Maximum number of cancelled streams that are remembered, because their last frames may still arrive. The
/// client responds to a frame of a forgotten stream with a reset.
const MOST_GIVEN_UP: usize = 4096;
/// How long cancelled streams are remembered.
const GIVEN_UP_FOR: Duration = Duration::from_secs(30);

/// One HTTP/2 connection.
pub(crate) struct Session {
    /// Maximum number of requests in flight on this connection, as specified in the plan.
    wanted: u32,
    clock: Clock,
    /// When opening the connection began, in nanoseconds since the run's start.
    began: u64,
    state: RefCell<State>,
    /// Signals a change of state: the connection is open, the server's settings have arrived, or
    /// the connection is over.
    changed: Notify,
    /// Number of slots taken: requests in flight, and requests that wait for the connection.
    taken: Cell<u32>,
    /// Number of requests in flight.
    under_way: Cell<u32>,
    /// Wakes the task that drives the connection.
    driver: RefCell<Option<Waker>>,
    /// Whether the run has ended, so that nothing more may be written.
    ended: Rc<Cell<bool>>,
}

enum State {
    Opening,
    Open(Open),
    Over(Failure),
}

/// The parts of an open connection.
struct Open {
    send: SendRequest<Bytes>,
    ledger: Rc<Ledger>,
    opening: Opening,
    /// When opening the connection was complete, in nanoseconds since the run's start.
    at: u64,
}

/// The wait of a request for a connection that was being opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waited {
    /// The parts of the name lookup, the TCP handshake and the TLS handshake that the request waited for.
    pub(crate) opening: Opening,
}

/// A slot on a connection, released when it is dropped.
pub(crate) struct Lease {
    session: Rc<Session>,
    goes: bool,
    /// Whether the connection is closed when the slot is released.
    is_for_once: bool,
    /// How long the request waited for each step of opening the connection; `None` if the connection was
    /// already open.
    pub(crate) waited: Option<Waited>,
}

impl Session {
    /// Starts to open a connection for at most `wanted` requests at a time; opening may take at most
    /// `limit`. Nothing more is written once `ended` is true. Must be called within the runtime.
    pub(super) fn start(connector: &Connector, wanted: u32, limit: Nanos, ended: Rc<Cell<bool>>) -> Rc<Session> {
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
            ended,
        });
        tokio::task::spawn_local(Rc::clone(&session).live(connector.clone(), limit));
        session
    }

    /// Opens the connection and drives it until it ends.
    async fn live(self: Rc<Self>, connector: Connector, limit: Nanos) {
        let opened = tokio::time::timeout(Duration::from(limit), open(&connector)).await;
        let failure = match opened {
            // The session was closed while the connection was being opened.
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

    /// Drives an open connection until it is over. Returns the failure of every request that tries to use
    /// it afterwards.
    async fn drive(&self, connection: Connection<Watched, Bytes>, ledger: &Ledger) -> Failure {
        let mut connection = pin!(connection);
        let mut is_settled = false;
        let ended = poll_fn(|cx| {
            let mut driver = self.driver.borrow_mut();
            if !driver.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                *driver = Some(cx.waker().clone());
            }
            drop(driver);
            if self.ended.get() {
                return Poll::Ready(Ok(()));
            }
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

    /// Whether the connection must not be used for new requests, because it is over or the server accepts
    /// no more.
    pub(super) fn is_over(&self) -> bool {
        match &*self.state.borrow() {
            State::Opening => false,
            State::Open(Open { ledger, .. }) => ledger.is_leaving(),
            State::Over(_) => true,
        }
    }

    /// Whether the connection is still being opened, or is open but the server's settings have not arrived.
    pub(super) fn is_unsettled(&self) -> bool {
        match &*self.state.borrow() {
            State::Opening => true,
            State::Open(Open { ledger, .. }) => !ledger.is_settled(),
            State::Over(_) => false,
        }
    }

    /// Returns the maximum number of requests in flight: the plan's limit or the server's, whichever is
    /// lower. Until the server's settings arrive the limit is unknown, and one request is allowed.
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

    /// Whether another request can be sent on the connection now.
    pub(super) fn has_room(&self) -> bool {
        !self.is_over() && !self.is_unsettled() && self.taken.get() < self.limit()
    }

    /// Whether another request may wait for the connection, which is not ready for it yet.
    pub(super) fn may_be_joined(&self) -> bool {
        self.is_unsettled() && self.taken.get() < self.wanted
    }

    /// Whether unread data has arrived on the connection while no request is in flight; the data may be the
    /// end of the connection.
    pub(super) fn has_news(&self) -> bool {
        self.taken.get() == 0
            && matches!(&*self.state.borrow(), State::Open(Open { ledger, .. }) if !ledger.is_silent())
    }

    /// Makes the connection's task read the socket at once, regardless of the runtime's readiness state.
    pub(super) fn look(&self) {
        if let State::Open(Open { ledger, .. }) = &*self.state.borrow() {
            ledger.stamps().doubt();
        }
        if let Some(driver) = &*self.driver.borrow() {
            driver.wake_by_ref();
        }
    }

    /// Sets the run's clock, which has started.
    pub(super) fn begin(&self, clock: Clock) {
        if let State::Open(Open { ledger, .. }) = &*self.state.borrow() {
            ledger.stamps().begin(clock);
        }
    }

    /// Closes the connection if the server accepts no further requests on it and no request is in flight. A
    /// server that shuts down may be waiting for the connection to close.
    fn close_where_left(&self) {
        if self.taken.get() == 0 && matches!(&*self.state.borrow(), State::Open(open) if open.ledger.is_leaving()) {
            self.close();
        }
    }

    /// Marks the connection as over. It is closed as soon as its last request has ended.
    pub(super) fn close(&self) {
        // This drops the session's sender. The connection ends when the last sender is dropped.
        *self.state.borrow_mut() = State::Over(Failure::new(Outcome::Reset, "the client has closed the connection"));
    }

    /// Takes a slot on the connection for a request that is sent now.
    pub(super) fn lease(self: &Rc<Self>) -> Lease {
        self.place().go()
    }

    /// Takes a slot on the connection, for a request that is not sent yet.
    fn place(self: &Rc<Self>) -> Lease {
        self.taken.set(self.taken.get() + 1);
        Lease { session: Rc::clone(self), goes: false, is_for_once: false, waited: None }
    }

    /// Takes a slot on a new connection for its first request, and waits until the connection is open. If
    /// `is_for_once` is set, the connection is closed when the slot is released.
    pub(super) async fn first(self: &Rc<Self>, is_for_once: bool) -> Result<Lease, Failure> {
        let mut lease = self.place().go();
        lease.is_for_once = is_for_once;
        self.until(|session| !matches!(&*session.state.borrow(), State::Opening)).await;
        match &*self.state.borrow() {
            State::Over(failure) => Err(failure.clone()),
            State::Opening => unreachable!("it waited for this"),
            State::Open(Open { opening, .. }) => Ok(lease.after(Waited { opening: *opening })),
        }
    }

    /// Takes a slot on a connection that is being opened, and waits until the server's settings
    /// have arrived, for at most `limit`. Returns `None` if the server does not allow another
    /// concurrent request on this connection.
    pub(super) async fn join(self: &Rc<Self>, limit: Nanos, authority: &str) -> Result<Option<Lease>, Failure> {
        let (place, joined) = (self.place(), self.clock.now());
        let settled = self.until(|session| !session.is_unsettled());
        if tokio::time::timeout(Duration::from(limit), settled).await.is_err() {
            return Err(no_connection(authority, Err(limit)));
        }
        let waited = match &*self.state.borrow() {
            State::Over(failure) => return Err(failure.clone()),
            State::Opening => unreachable!("it waited for this"),
            State::Open(open) => Waited { opening: open.shared_with(joined, self.began, self.clock.now()) },
        };
        let goes = self.under_way.get() < self.limit() && !self.is_over();
        Ok(goes.then(|| place.go().after(waited)))
    }

    /// Waits until the server's settings have arrived or the connection is over.
    pub(super) async fn settle(&self) {
        self.until(|session| !session.is_unsettled()).await;
    }

    async fn until(&self, is_so: impl Fn(&Session) -> bool) {
        while !is_so(self) {
            // All tasks of a connection run on one thread, so nothing changes between the check and the
            // wait.
            self.changed.notified().await;
        }
    }
}

impl Open {
    /// Returns how long a request waited for each step of opening the connection; the request arrived at
    /// `joined` and may be sent at `now`. The wait for the server's settings counts as part of the TCP
    /// handshake, because a row has no other field for it.
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

    /// Returns the sender for a request and the connection's ledger; an error if the connection is not
    /// open.
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

/// Opens a connection and starts HTTP/2 on it. Does not wait for the server's settings.
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
        // Without this setting, a connection would end if the server sent too many frames for cancelled
        // requests.
        .max_local_error_reset_streams(None);
    let (send, connection) = builder.handshake(watched).await.map_err(io::Error::other)?;
    Ok((send, connection, ledger, opening))
}
