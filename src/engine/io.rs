//! The socket of a measured connection. It stamps the arrival of bytes and the sending of requests.
//!
//! The stamp of a read comes from the kernel if possible (see `stamp`). Otherwise it is taken when the read
//! returns, before the bytes are parsed. All events in one read share its stamp. The stamp of a send is
//! taken just before the write call that carries the request.
//!
//! Before a kept connection is used again, the socket itself is checked for a close by the server. Tokio's
//! readiness state of a socket is only updated when the runtime polls all sockets, and a slot that sends
//! its next request at once does so before the next poll.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::clock::Clock;
use super::stamp::{self, Now};
use crate::network::Stream;

/// Number of bytes that may be read without a pause. After that, time limits are checked and other requests
/// get their turn. Otherwise a server that sends an endless stream without content (only interim responses)
/// would block all other requests, and its own request's time limit would never take effect.
const MOST_AT_ONCE: usize = 256 << 10;

/// One read of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Read {
    /// When the bytes arrived, in nanoseconds since the run's start.
    pub at: u64,
    /// How long the bytes waited in the kernel before they were read, in nanoseconds; `None` if there is no
    /// kernel stamp.
    pub delay: Option<u64>,
}

/// The times at which a socket was last read and written, in nanoseconds since the run's start. Shared with
/// the request that uses the connection.
#[derive(Debug)]
pub(crate) struct Stamps {
    clock: Cell<Clock>,
    last_read: Cell<u64>,
    /// How long the bytes of the last read waited in the kernel; `None` without a kernel stamp.
    delay: Cell<Option<u64>>,
    /// Whether the kernel stamped every read since the request was sent.
    by_kernel: Cell<bool>,
    sent: Cell<Option<u64>>,
    armed: Cell<bool>,
    doubted: Cell<bool>,
}

impl Stamps {
    /// Creates stamps that use `clock`.
    pub(crate) fn new(clock: Clock) -> Rc<Stamps> {
        Rc::new(Stamps {
            clock: Cell::new(clock),
            last_read: Cell::new(0),
            delay: Cell::new(None),
            by_kernel: Cell::new(true),
            sent: Cell::new(None),
            armed: Cell::new(false),
            doubted: Cell::new(false),
        })
    }

    /// Sets the run's clock, which has started. Earlier reads on a connection that was opened ahead do not
    /// belong to the run.
    pub(crate) fn begin(&self, clock: Clock) {
        self.clock.set(clock);
        self.last_read.set(0);
    }

    /// Marks the next write as the one that carries a request.
    pub(crate) fn arm(&self) {
        self.sent.set(None);
        self.by_kernel.set(true);
        self.armed.set(true);
    }

    /// Makes the next read use the socket itself, regardless of the runtime's readiness state.
    pub(crate) fn doubt(&self) {
        self.doubted.set(true);
    }

    /// Returns when the request was sent; `None` if it was not sent.
    pub(crate) fn sent(&self) -> Option<u64> {
        self.sent.get()
    }

    /// Returns when bytes, or the end of the connection, last arrived.
    pub(crate) fn last_read(&self) -> u64 {
        self.last_read.get()
    }

    /// Returns when the bytes of the last read arrived, and how long they waited in the kernel.
    pub(crate) fn last(&self) -> Read {
        Read { at: self.last_read.get(), delay: self.delay.get() }
    }

    /// Whether the kernel stamped all bytes since the request was sent.
    pub(crate) fn by_kernel(&self) -> bool {
        self.by_kernel.get()
    }

    /// Records the last read of a request that shares its connection with others. The read's bytes belong
    /// to this request's response.
    pub(crate) fn saw(&self, read: Read) {
        self.last_read.set(read.at);
        self.delay.set(read.delay);
        self.by_kernel.set(self.by_kernel.get() && read.delay.is_some());
    }

    /// Records when a request that shares its connection with others was sent; `None` if it was not
    /// sent.
    pub(crate) fn left(&self, at: Option<u64>) {
        self.sent.set(at);
    }

    /// Returns the time since the run's start, in nanoseconds.
    pub(crate) fn now(&self) -> u64 {
        self.clock.get().now()
    }

    /// Calls `write`. The first write that succeeds after `arm` is stamped with the instant before its
    /// call.
    fn stamp_write(&self, write: impl FnOnce() -> Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if !self.armed.get() {
            return write();
        }
        let at = self.clock.get().now();
        let written = write();
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.armed.set(false);
            self.sent.set(Some(at));
        }
        written
    }

    /// Records a read of `bytes` bytes with the kernel's stamp, if any. Zero bytes mean the end of the
    /// connection, which the kernel does not stamp.
    fn came(&self, bytes: usize, kernel: Option<i64>) {
        let origin = self.clock.get().origin();
        let earliest = origin + self.last_read.get().max(self.sent.get().unwrap_or(0));
        let (at, delay) = stamp::arrival(kernel, Now::read(), earliest);
        self.last_read.set(at.saturating_sub(origin));
        self.delay.set(delay);
        self.by_kernel.set(self.by_kernel.get() && (delay.is_some() || bytes == 0));
    }
}

/// A connection whose reads and sends are stamped. The kernel stamps only what arrives over TCP.
#[derive(Debug)]
pub(crate) struct Stamped {
    stream: Stream,
    stamps: Rc<Stamps>,
    /// Number of bytes that may still be read before the next pause.
    left: Cell<usize>,
}

impl Stamped {
    /// Creates a socket that stamps the reads and sends of `stream`.
    pub(crate) fn new(stream: Stream, stamps: Rc<Stamps>) -> Stamped {
        stamp::enable(&stream);
        Stamped { stream, stamps, left: Cell::new(MOST_AT_ONCE) }
    }

    /// Whether nothing can be read now, not even a close. This checks the socket itself, not the runtime's
    /// readiness state.
    pub(crate) fn is_silent(&self) -> bool {
        is_silent(self.stream.as_raw_fd())
    }

    /// Reads and stamps the available bytes without waiting. Returns their number.
    #[expect(unsafe_code, reason = "the buffer of a read is not initialized before it is read into")]
    fn receive(&self, buf: &mut ReadBuf<'_>) -> io::Result<usize> {
        // SAFETY: nothing is read from the unfilled part, and none of its bytes becomes uninitialized.
        let room = unsafe { buf.unfilled_mut() };
        let (read, kernel) = stamp::receive(self.stream.as_fd(), room)?;
        // SAFETY: the kernel has written that many bytes.
        unsafe { buf.assume_init(read) };
        buf.advance(read);
        self.stamps.came(read, kernel);
        self.left.set(self.left.get().saturating_sub(read));
        Ok(read)
    }

    /// Reads if the runtime considers the socket readable; returns `None` if it is not.
    fn receive_ready(&self, buf: &mut ReadBuf<'_>) -> io::Result<Option<()>> {
        let room = buf.remaining();
        let mut read = None;
        let result = self.stream.try_read(|| {
            let got = self.receive(buf)?;
            read = Some(got);
            // A read that does not fill the buffer has emptied the socket. Reporting `WouldBlock` here
            // saves the next read, which would find nothing.
            if 0 < got && got < room { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        });
        match result {
            _ if read.is_some() => Ok(Some(())),
            Err(error) if would_wait(&error) => Ok(None),
            other => other.map(Some),
        }
    }
}

/// Whether this error only means that there was no data to read.
fn would_wait(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

impl AsRawFd for Stamped {
    fn as_raw_fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }
}

/// Whether nothing can be read from an open socket now, not even a close. This checks the socket itself,
/// not the runtime's readiness state.
pub(crate) fn is_silent(socket: RawFd) -> bool {
    let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
    matches!(recv(socket, &mut [0], flags), Err(Errno::EAGAIN))
}

impl AsyncRead for Stamped {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.stamps.doubted.take() {
            match self.receive(buf) {
                Err(error) if would_wait(&error) => {}
                result => return Poll::Ready(result.map(drop)),
            }
        }
        if self.left.get() == 0 {
            self.left.set(MOST_AT_ONCE);
            // Wakes this task again after the runtime has polled its timers and other tasks. The first poll
            // is never ready.
            let _ = pin!(tokio::task::yield_now()).poll(cx);
            return Poll::Pending;
        }
        loop {
            // This also registers the waker for later data.
            if self.stream.poll_read_ready(cx)?.is_pending() {
                self.left.set(MOST_AT_ONCE);
                return Poll::Pending;
            }
            if let Some(()) = self.receive_ready(buf)? {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for Stamped {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let Stamped { stream, stamps, .. } = self.get_mut();
        stamps.stamp_write(|| Pin::new(stream).poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Stamped { stream, stamps, .. } = self.get_mut();
        stamps.stamp_write(|| Pin::new(stream).poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
