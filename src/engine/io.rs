//! The socket of a measured connection: stamps what arrives and when a request leaves.
//!
//! The stamp of a read is taken as the bytes reach us, before anything parses them; all events of one read share it.
//! The stamp of a send is taken just before the write call that carries the request.
//!
//! Before a kept connection is used again, the socket itself is asked whether the server has closed it: what tokio knows
//! of a socket is from its last look at all sockets, and a slot that redispatches at once comes before the next one.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::clock::Clock;

/// What the socket saw, shared with the request that uses the connection. Nanoseconds since the run's start.
#[derive(Debug)]
pub struct Stamps {
    clock: Cell<Clock>,
    last_read: Cell<u64>,
    sent: Cell<Option<u64>>,
    armed: Cell<bool>,
    doubted: Cell<bool>,
}

impl Stamps {
    /// Stamps by `clock`.
    pub fn new(clock: Clock) -> Rc<Stamps> {
        Rc::new(Stamps {
            clock: Cell::new(clock),
            last_read: Cell::new(0),
            sent: Cell::new(None),
            armed: Cell::new(false),
            doubted: Cell::new(false),
        })
    }

    /// The run's clock has started: what a connection saw when it was opened ahead is no part of the run.
    pub fn begin(&self, clock: Clock) {
        self.clock.set(clock);
        self.last_read.set(0);
    }

    /// From here on the next write carries a request.
    pub fn arm(&self) {
        self.sent.set(None);
        self.armed.set(true);
    }

    /// The next read asks the socket itself, whatever the runtime believes about it.
    pub fn doubt(&self) {
        self.doubted.set(true);
    }

    /// When the request left, if it did.
    pub fn sent(&self) -> Option<u64> {
        self.sent.get()
    }

    /// When bytes last came.
    pub fn last_read(&self) -> u64 {
        self.last_read.get()
    }
}

/// A TCP connection that stamps.
#[derive(Debug)]
pub struct Stamped {
    stream: TcpStream,
    stamps: Rc<Stamps>,
}

impl Stamped {
    /// Stamps what passes `stream`.
    pub fn new(stream: TcpStream, stamps: Rc<Stamps>) -> Stamped {
        Stamped { stream, stamps }
    }

    fn leaving(&self) {
        if self.stamps.armed.replace(false) {
            self.stamps.sent.set(Some(self.stamps.clock.get().now()));
        }
    }

    /// Reads without waiting; nothing when there is nothing to read.
    fn read_now(&self, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match rustix::io::read(&self.stream, buf.initialize_unfilled()) {
            Ok(read) => {
                buf.advance(read);
                Poll::Ready(Ok(()))
            }
            Err(Errno::AGAIN | Errno::INTR) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }
}

impl AsyncRead for Stamped {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let at_once = if self.stamps.doubted.take() { self.read_now(buf) } else { Poll::Pending };
        match at_once {
            Poll::Ready(result) => result?,
            // This also leaves the waker for what comes later.
            Poll::Pending => ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?,
        }
        self.stamps.last_read.set(self.stamps.clock.get().now());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stamped {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.leaving();
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.leaving();
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
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
