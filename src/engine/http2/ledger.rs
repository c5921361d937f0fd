//! Records when the frames of one connection passed through its socket, separately for each stream.
//!
//! Bytes reach a request through the `h2` crate and another task. Their arrival is recorded here, as they
//! are read from the socket, and a request takes the record of each frame together with the frame. A frame
//! therefore has the stamp of the read that contained its last byte, even if the request's task runs much
//! later.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::os::fd::RawFd;
use std::rc::Rc;
use std::task::{Context, Waker};

use super::frames::{Event, Frame, Frames, Kind};
use crate::engine::io::{Read, Stamps, is_silent};

/// The frames that were sent or received on one connection.
pub(crate) struct Ledger {
    /// The stamps of the connection's socket.
    stamps: Rc<Stamps>,
    incoming: RefCell<Frames>,
    outgoing: RefCell<Frames>,
    /// The records of the streams that have a request, by stream number.
    streams: RefCell<HashMap<u32, Rc<Track>>>,
    /// Whether the server's settings have arrived.
    settled: Cell<bool>,
    /// Whether the server accepts no further requests on this connection.
    leaving: Cell<bool>,
    /// The socket's file descriptor; `None` after the socket was closed.
    socket: Cell<Option<RawFd>>,
}

/// The stamps of those frames of one stream that the stream's request has not taken yet.
#[derive(Default)]
pub(super) struct Track {
    /// When the request's head was written, in nanoseconds since the run's start.
    sent: Cell<Option<u64>>,
    /// The task that waits until the request's head is written, if any.
    waits: Cell<Option<Waker>>,
    head: Cell<Option<Read>>,
    /// The stamps of the data frames that the request has not seen yet.
    data: RefCell<VecDeque<Read>>,
    end: Cell<Option<Read>>,
}

impl Ledger {
    /// Creates a ledger for `socket`, on which nothing has been sent or received yet; `stamps` contains the
    /// times of its reads.
    pub(super) fn new(stamps: Rc<Stamps>, socket: RawFd) -> Rc<Ledger> {
        Rc::new(Ledger {
            stamps,
            incoming: RefCell::new(Frames::of_server()),
            outgoing: RefCell::new(Frames::of_client()),
            streams: RefCell::default(),
            settled: Cell::new(false),
            leaving: Cell::new(false),
            socket: Cell::new(Some(socket)),
        })
    }

    /// Returns the stamps of the connection's socket.
    pub(super) fn stamps(&self) -> &Stamps {
        &self.stamps
    }

    /// Whether the server's settings have arrived. If so, the server supports HTTP/2, and its limit on
    /// streams is known.
    pub(super) fn is_settled(&self) -> bool {
        self.settled.get()
    }

    /// Whether the server has announced that it accepts no further requests on this connection.
    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.get()
    }

    /// Whether nothing unread has arrived, neither data nor a close. This checks the socket itself, not the
    /// runtime's readiness state.
    pub(super) fn is_silent(&self) -> bool {
        self.socket.get().is_some_and(is_silent)
    }

    /// Records that the socket is closed.
    pub(super) fn closed(&self) {
        self.socket.set(None);
    }

    /// Starts to record the frames of a new stream.
    pub(super) fn follow(&self, stream: u32) -> Rc<Track> {
        let track = Rc::new(Track::default());
        self.streams.borrow_mut().insert(stream, Rc::clone(&track));
        track
    }

    /// Stops recording the frames of a stream.
    pub(super) fn forget(&self, stream: u32) {
        self.streams.borrow_mut().remove(&stream);
    }

    /// Records the frames in bytes that were just read.
    pub(super) fn came(&self, bytes: &[u8]) {
        let read = self.stamps.last();
        self.incoming.borrow_mut().take(bytes, |event| {
            if let Event::Whole(frame) = event {
                self.received(frame, read);
            }
        });
    }

    fn received(&self, frame: Frame, read: Read) {
        match frame.kind {
            Kind::Settings if frame.tells_settings() => self.settled.set(true),
            Kind::GoAway => self.leaving.set(true),
            Kind::Data | Kind::Headers | Kind::Continuation | Kind::Reset => {
                if let Some(track) = self.streams.borrow().get(&frame.stream) {
                    track.received(frame, read);
                }
            }
            Kind::Settings | Kind::Other => {}
        }
    }

    /// Records the frames in bytes that were written; the call of the write began at `at`, in nanoseconds
    /// since the run's start.
    pub(super) fn went(&self, bytes: &[u8], at: u64) {
        self.outgoing.borrow_mut().take(bytes, |event| {
            if let Event::Begun(Frame { kind: Kind::Headers, stream, .. }) = event
                && let Some(track) = self.streams.borrow().get(&stream)
                && track.sent.get().is_none()
            {
                track.sent.set(Some(at));
                if let Some(waker) = track.waits.take() {
                    waker.wake();
                }
            }
        });
    }
}

impl Track {
    fn received(&self, frame: Frame, read: Read) {
        // The time of a read and the time of a write may come from different processors, so make sure that
        // no response is stamped earlier than its request.
        let read = Read { at: read.at.max(self.sent.get().unwrap_or(0)), ..read };
        let is_head = matches!(frame.kind, Kind::Headers | Kind::Continuation);
        // Header frames after data are trailers, not a head. Interim responses arrive before the final
        // head, so a later head replaces an earlier one.
        if is_head && self.end.get().is_none() && self.data.borrow().is_empty() {
            self.head.set(Some(read));
        }
        if frame.is_shown() {
            self.data.borrow_mut().push_back(read);
        }
        if frame.ends_stream() || frame.kind == Kind::Reset {
            self.end.set(Some(read));
        }
    }

    /// Returns when the request's head was written, in nanoseconds since the run's start. If it has not been
    /// written yet, returns `None`, and the task of `cx` will be woken when it is.
    pub(super) fn sent(&self, cx: &Context<'_>) -> Option<u64> {
        if self.sent.get().is_none() {
            self.waits.set(Some(cx.waker().clone()));
        }
        self.sent.get()
    }

    /// Returns when the request's head was written; `None` if it has not been written.
    pub(super) fn written(&self) -> Option<u64> {
        self.sent.get()
    }

    /// Returns the read with which the head of the response arrived; `None` if it has not arrived.
    pub(super) fn head(&self) -> Option<Read> {
        self.head.get()
    }

    /// Takes the read with which the next data frame arrived. Called once for each data frame that the
    /// request receives.
    pub(super) fn next(&self) -> Option<Read> {
        self.data.borrow_mut().pop_front()
    }

    /// Returns the read with which the end of the response arrived; `None` if it has not arrived.
    pub(super) fn end(&self) -> Option<Read> {
        self.end.get()
    }
}
