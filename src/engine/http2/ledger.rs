//! Records when the frames of one connection passed its socket, separately for each stream.
//!
//! Bytes reach a request through the `h2` crate and another task. Their arrival is recorded here, where
//! they pass, and a request takes the record of each frame together with the frame. The stamp of a frame
//! is therefore that of the read which brought its last byte, even if the request gets its turn much
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
    /// The last stamps of the connection's socket.
    stamps: Rc<Stamps>,
    incoming: RefCell<Frames>,
    outgoing: RefCell<Frames>,
    /// Streams that have a request, by number.
    streams: RefCell<HashMap<u32, Rc<Track>>>,
    /// Whether the server's settings have arrived.
    settled: Cell<bool>,
    /// Whether the server accepts no further requests on this connection.
    leaving: Cell<bool>,
    /// The socket, as long as it is open.
    socket: Cell<Option<RawFd>>,
}

/// The frames of one stream that its request has not taken yet.
#[derive(Default)]
pub(super) struct Track {
    /// When the request's head was written, in nanoseconds since the run's start.
    sent: Cell<Option<u64>>,
    /// The task that waits until the head is written.
    waits: Cell<Option<Waker>>,
    head: Cell<Option<Read>>,
    /// The stamps of the data frames that the request has not seen yet.
    data: RefCell<VecDeque<Read>>,
    end: Cell<Option<Read>>,
}

impl Ledger {
    /// Creates a ledger for `socket`, on which nothing has been sent or received yet; `stamps`
    /// stamps the reads.
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

    /// Returns the last stamps of the connection's socket.
    pub(super) fn stamps(&self) -> &Stamps {
        &self.stamps
    }

    /// Whether the server's settings have arrived: it supports HTTP/2, and its limit on streams is known.
    pub(super) fn is_settled(&self) -> bool {
        self.settled.get()
    }

    /// Whether the server has announced that it accepts no further requests on this connection.
    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.get()
    }

    /// Whether nothing unread has arrived, neither data nor a close. The socket itself is checked.
    pub(super) fn is_silent(&self) -> bool {
        self.socket.get().is_some_and(is_silent)
    }

    /// Records that the socket is closed.
    pub(super) fn closed(&self) {
        self.socket.set(None);
    }

    /// Starts recording a new stream.
    pub(super) fn follow(&self, stream: u32) -> Rc<Track> {
        let track = Rc::new(Track::default());
        self.streams.borrow_mut().insert(stream, Rc::clone(&track));
        track
    }

    /// Stops recording a stream.
    pub(super) fn forget(&self, stream: u32) {
        self.streams.borrow_mut().remove(&stream);
    }

    /// Records bytes that were just read.
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

    /// Records bytes taken by a write whose call began at `at`.
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
        // The clocks for a stamp and for a write are read by different processors, so make sure
        // that a response comes after its request.
        let read = Read { at: read.at.max(self.sent.get().unwrap_or(0)), ..read };
        let is_head = matches!(frame.kind, Kind::Headers | Kind::Continuation);
        // Only trailers can follow data. Interim responses come before the head, so the last one counts.
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

    /// Returns when the request's head was written, in nanoseconds since the run's start. If it has not
    /// been written yet, the task of `cx` will be woken.
    pub(super) fn sent(&self, cx: &Context<'_>) -> Option<u64> {
        if self.sent.get().is_none() {
            self.waits.set(Some(cx.waker().clone()));
        }
        self.sent.get()
    }

    /// Returns when the head of the response arrived.
    pub(super) fn head(&self) -> Option<Read> {
        self.head.get()
    }

    /// Returns the arrival time of the data frame that is being returned now.
    pub(super) fn next(&self) -> Option<Read> {
        self.data.borrow_mut().pop_front()
    }

    /// Returns when the end of the response arrived.
    pub(super) fn end(&self) -> Option<Read> {
        self.end.get()
    }
}
