//! One HTTP/1.1 connection. The task of a request uses the connection to write the request and read the
//! response. The pool decides which connection a request gets.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::http::{Body, Head, Malformed};
use super::io::Stamps;
use super::limit::Timer;
use super::socket::Socket;
use super::tally::Failure;
use crate::rows::Outcome;

/// Maximum size of one read, in bytes. A longer burst takes several reads, each with its own stamp.
const READ: usize = 64 << 10;

thread_local! {
    /// The read buffer of all connections of a thread. A connection borrows it for one read, so that idle
    /// connections, of which there may be ten thousand, hold no buffers.
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ].into_boxed_slice());
}

/// One HTTP/1.1 connection.
pub(crate) struct Connection {
    socket: Socket,
    /// Bytes that were read but not processed yet: an incomplete head, or the bytes after a complete one.
    unread: Vec<u8>,
    /// The times at which the connection's socket was read and written.
    pub stamps: Rc<Stamps>,
    /// The timer of the last request, for reuse by the next one; `None` if there is none to reuse.
    pub timer: Option<Timer>,
}

/// A request that is being sent.
pub(crate) struct Outgoing {
    bytes: Vec<u8>,
    written: usize,
    /// Why the rest of the request cannot be sent; `None` without an error. The error is reported only if no
    /// response arrives.
    error: Option<io::Error>,
}

impl Outgoing {
    /// Creates a request from its encoded bytes, none of which have been written yet.
    pub(crate) fn new(bytes: Vec<u8>) -> Outgoing {
        Outgoing { bytes, written: 0, error: None }
    }

    /// Whether the whole request has been written.
    pub(crate) fn is_sent(&self) -> bool {
        self.written == self.bytes.len()
    }
}

/// The result of reading a part of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More of the body will follow.
    More,
    /// The body is complete.
    Whole {
        /// Whether no bytes arrived after the end of the body, so that the connection may carry another
        /// request.
        clean: bool,
    },
}

impl Connection {
    /// Creates a connection that has not carried any data yet.
    pub(crate) fn new(socket: Socket, stamps: Rc<Stamps>) -> Connection {
        Connection { socket, unread: Vec::new(), stamps, timer: None }
    }

    /// Whether another request can be sent on this connection now: neither data nor a close has
    /// arrived since its last response.
    pub(crate) fn is_reusable(&mut self, cx: &mut Context<'_>) -> bool {
        if let Socket::Plain(stream) = &self.socket {
            return self.unread.is_empty() && stream.is_silent();
        }
        // With TLS, readable data may be messages of the TLS protocol itself, so they are read and
        // decoded here.
        self.stamps.doubt();
        self.unread.is_empty() && self.poll_read(cx, |_| ()).is_pending()
    }

    /// Writes as much of the request as the socket accepts, and reads until the head of the response is
    /// complete. The first write that succeeds is stamped as the send.
    ///
    /// A server may respond before it has read the whole request; such a response is accepted. Fails with
    /// `Reset` or `Malformed`.
    pub(crate) fn poll_head(&mut self, request: &mut Outgoing, cx: &mut Context<'_>) -> Poll<Result<Head, Failure>> {
        self.write(request, cx);
        if request.written == 0
            && let Some(error) = request.error.take()
        {
            // Nothing was sent, so no response can arrive.
            return Poll::Ready(Err(broken(&error)));
        }
        loop {
            let mut unread = std::mem::take(&mut self.unread);
            let read = self.poll_read(cx, |bytes| match bytes.is_empty() {
                true => Ok(None),
                false => head(&mut unread, bytes).map(Some),
            });
            self.unread = unread;
            return Poll::Ready(match ready!(read) {
                Ok(Ok(Some(None))) => continue,
                Ok(Ok(Some(Some(head)))) => Ok(head),
                Ok(Ok(None)) => {
                    let end = || io::Error::new(io::ErrorKind::UnexpectedEof, "closed before a response arrived");
                    Err(broken(&request.error.take().unwrap_or_else(end)))
                }
                Ok(Err(malformed)) => Err(malformed.into()),
                Err(error) => Err(broken(&error)),
            });
        }
    }

    /// Reads a part of the body and passes its data to `on_data`; stops if `on_data` fails. Also continues
    /// to write a request that has not been written completely.
    pub(crate) fn poll_body(
        &mut self,
        request: &mut Outgoing,
        body: &mut Body,
        cx: &mut Context<'_>,
        on_data: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Poll<Result<Progress, Failure>> {
        if !request.is_sent() {
            self.write(request, cx);
        }
        if body.has_ended() {
            return Poll::Ready(Ok(Progress::Whole { clean: self.unread.is_empty() }));
        }
        if !self.unread.is_empty() {
            let unread = std::mem::take(&mut self.unread);
            let progress = feed(body, &unread, on_data);
            self.unread = unread;
            self.unread.clear();
            return Poll::Ready(progress);
        }
        let read = ready!(self.poll_read(cx, |bytes| match bytes.is_empty() {
            true if body.ends_with_connection() => Ok(Progress::Whole { clean: false }),
            true => Err(Failure::new(Outcome::Reset, "the connection was closed before the response was complete")),
            false => feed(body, bytes, on_data),
        }));
        Poll::Ready(read.unwrap_or_else(|error| Err(broken(&error))))
    }

    /// Writes as much of the request as the socket accepts.
    fn write(&mut self, request: &mut Outgoing, cx: &mut Context<'_>) {
        while !request.is_sent() && request.error.is_none() {
            match self.poll_write(&request.bytes[request.written..], cx) {
                Poll::Ready(Ok(written)) => request.written += written,
                Poll::Ready(Err(error)) => request.error = Some(error),
                Poll::Pending => break,
            }
        }
        if let Socket::Tls(stream) = &mut self.socket
            && let Poll::Ready(Err(error)) = Pin::new(stream.as_mut()).poll_flush(cx)
        {
            request.error.get_or_insert(error);
        }
    }

    fn poll_write(&mut self, bytes: &[u8], cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match ready!(Pin::new(&mut self.socket).poll_write(cx, bytes)) {
            Ok(0) => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            other => Poll::Ready(other),
        }
    }

    /// Reads once and passes the bytes to `look`. If there are no bytes, the server has closed the
    /// connection.
    fn poll_read<T>(&mut self, cx: &mut Context<'_>, look: impl FnOnce(&[u8]) -> T) -> Poll<io::Result<T>> {
        BUFFER.with_borrow_mut(|buffer| {
            let mut buffer = ReadBuf::new(buffer);
            ready!(Pin::new(&mut self.socket).poll_read(cx, &mut buffer))?;
            Poll::Ready(Ok(look(buffer.filled())))
        })
    }
}

/// Returns the head if the bytes in `unread` and the new bytes together contain a complete one. Afterwards
/// `unread` contains the bytes after the head; if the head is incomplete, it contains all bytes.
fn head(unread: &mut Vec<u8>, bytes: &[u8]) -> Result<Option<Head>, Malformed> {
    // Nearly all servers send the head in one piece, so this is the usual case.
    if unread.is_empty() {
        let head = Head::parse(bytes)?;
        unread.extend_from_slice(&bytes[head.as_ref().map_or(0, |head| head.length)..]);
        return Ok(head);
    }
    unread.extend_from_slice(bytes);
    let head = Head::parse(unread)?;
    unread.drain(..head.as_ref().map_or(0, |head| head.length));
    Ok(head)
}

fn feed(body: &mut Body, bytes: &[u8], on_data: impl FnMut(&[u8]) -> Result<(), Failure>) -> Result<Progress, Failure> {
    let fed = body.feed(bytes, on_data)?;
    Ok(if fed.ended { Progress::Whole { clean: fed.taken == bytes.len() } } else { Progress::More })
}

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Failure {
        Failure::new(Outcome::Malformed, malformed.0)
    }
}

/// Returns the failure of a connection that broke during a request.
pub(crate) fn broken(error: &io::Error) -> Failure {
    // `InvalidData` means that TLS could not decode the data, not that the connection broke.
    let outcome = match error.kind() {
        io::ErrorKind::InvalidData => Outcome::Malformed,
        _ => Outcome::Reset,
    };
    Failure::new(outcome, format!("the connection broke: {error}"))
}
