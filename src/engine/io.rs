//! The socket of a measured connection: stamps what arrives and when a request leaves.
//!
//! The stamp of a read is taken as the bytes reach us, before anything parses them; all events of one read share it.
//! The stamp of a send is taken just before the write call that carries the request.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::clock::Clock;

/// What the socket saw, shared with the request that uses the connection. Nanoseconds since the run's start.
#[derive(Debug)]
pub struct Stamps {
    clock: Clock,
    last_read: Cell<u64>,
    sent: Cell<Option<u64>>,
    armed: Cell<bool>,
}

impl Stamps {
    /// Stamps by `clock`.
    pub fn new(clock: Clock) -> Rc<Stamps> {
        Rc::new(Stamps { clock, last_read: Cell::new(0), sent: Cell::new(None), armed: Cell::new(false) })
    }

    /// From here on the next write carries a request.
    pub fn arm(&self) {
        self.sent.set(None);
        self.armed.set(true);
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
            self.stamps.sent.set(Some(self.stamps.clock.now()));
        }
    }
}

impl AsyncRead for Stamped {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.stamps.last_read.set(self.stamps.clock.now());
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
