//! The socket of an HTTP/2 connection, with a ledger of the frames that pass through it.

use std::io;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::ledger::Ledger;
use crate::engine::io::Stamps;
use crate::engine::socket::Socket;

/// A socket with a ledger of its frames.
pub(super) struct Watched {
    socket: Socket,
    ledger: Rc<Ledger>,
}

impl Watched {
    /// Wraps `socket`; `stamps` records the times of its reads.
    pub(super) fn new(socket: Socket, stamps: Rc<Stamps>) -> Watched {
        let ledger = Ledger::new(stamps, socket.tcp().as_raw_fd());
        Watched { socket, ledger }
    }

    /// Returns the ledger.
    pub(super) fn ledger(&self) -> Rc<Ledger> {
        Rc::clone(&self.ledger)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.ledger.closed();
    }
}

impl AsyncRead for Watched {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Watched { socket, ledger } = self.get_mut();
        let before = buf.filled().len();
        ready!(Pin::new(socket).poll_read(cx, buf))?;
        ledger.came(&buf.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Watched { socket, ledger } = self.get_mut();
        let at = ledger.stamps().now();
        let written = ready!(Pin::new(socket).poll_write(cx, bytes))?;
        ledger.went(&bytes[..written], at);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Watched { socket, ledger } = self.get_mut();
        let at = ledger.stamps().now();
        let written = ready!(Pin::new(socket).poll_write_vectored(cx, bufs))?;
        let mut left = written;
        for bytes in bufs {
            let taken = left.min(bytes.len());
            ledger.went(&bytes[..taken], at);
            left -= taken;
        }
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}
