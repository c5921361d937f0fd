//! One HTTP/1.1 connection that the engine owns: a request is written, its answer read, in the task of the request. Which
//! connection a request gets is the pool's matter.

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

/// Bytes of one read. A longer burst is read in several, each with its own stamp.
const READ: usize = 64 << 10;

thread_local! {
    /// What all connections of a thread read into, borrowed for the length of one read: ten thousand idle ones then hold no
    /// buffer of their own.
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ].into_boxed_slice());
}

/// One connection.
pub(crate) struct Connection {
    socket: Socket,
    /// Bytes that came with a head, or a part of one, and are not taken yet.
    unread: Vec<u8>,
    /// What its socket saw.
    pub stamps: Rc<Stamps>,
    /// The timer of its last request, for the next one.
    pub timer: Option<Timer>,
}

/// A request on its way.
pub(crate) struct Outgoing {
    bytes: Vec<u8>,
    written: usize,
    /// Why the rest will never go: told only when no answer comes either.
    error: Option<io::Error>,
}

impl Outgoing {
    /// A request of which nothing was written yet.
    pub(crate) fn new(bytes: Vec<u8>) -> Outgoing {
        Outgoing { bytes, written: 0, error: None }
    }

    /// Whether all of it was written.
    pub(crate) fn is_sent(&self) -> bool {
        self.written == self.bytes.len()
    }
}

/// What a read of the body came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More is to come.
    More,
    /// The body is whole; whether the connection may carry another request as far as it is concerned: nothing lies behind
    /// its end.
    Whole {
        /// Nothing but the answer came.
        clean: bool,
    },
}

impl Connection {
    /// A connection over which nothing has passed.
    pub(crate) fn new(socket: Socket, stamps: Rc<Stamps>) -> Connection {
        Connection { socket, unread: Vec::new(), stamps, timer: None }
    }

    /// Whether another request can be sent on it now: nothing came since its last answer, not even its end.
    pub(crate) fn is_reusable(&mut self, cx: &mut Context<'_>) -> bool {
        if let Socket::Plain(stream) = &self.socket {
            return self.unread.is_empty() && stream.is_silent();
        }
        // TLS has messages of its own, which are no answer.
        self.stamps.doubt();
        self.unread.is_empty() && self.poll_read(cx, |_| ()).is_pending()
    }

    /// Writes what of the request the socket takes, and reads until the head of the answer is there. The first write that
    /// succeeds is stamped as the send.
    ///
    /// A server may answer before it has read everything: the answer counts. Fails with `Reset` or `Malformed`.
    pub(crate) fn poll_head(&mut self, request: &mut Outgoing, cx: &mut Context<'_>) -> Poll<Result<Head, Failure>> {
        self.write(request, cx);
        if request.written == 0
            && let Some(error) = request.error.take()
        {
            // Nothing has left: no answer can come.
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
                    let end = || io::Error::new(io::ErrorKind::UnexpectedEof, "closed before an answer came");
                    Err(broken(&request.error.take().unwrap_or_else(end)))
                }
                Ok(Err(malformed)) => Err(malformed.into()),
                Err(error) => Err(broken(&error)),
            });
        }
    }

    /// Reads once and hands the data in it to `on_data`, whose failure ends it. A request that is not wholly written goes on
    /// being written.
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
            true => Err(Failure::new(Outcome::Reset, "the connection was closed before the answer was whole")),
            false => feed(body, bytes, on_data),
        }));
        Poll::Ready(read.unwrap_or_else(|error| Err(broken(&error))))
    }

    /// Writes as much of the request as the socket takes.
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

    /// Reads once and shows the bytes to `look`; none of them: the other side has closed.
    fn poll_read<T>(&mut self, cx: &mut Context<'_>, look: impl FnOnce(&[u8]) -> T) -> Poll<io::Result<T>> {
        BUFFER.with_borrow_mut(|buffer| {
            let mut buffer = ReadBuf::new(buffer);
            ready!(Pin::new(&mut self.socket).poll_read(cx, &mut buffer))?;
            Poll::Ready(Ok(look(buffer.filled())))
        })
    }
}

/// The head in what is unread and the bytes that come after it; leaves as unread what lies behind it, or all.
fn head(unread: &mut Vec<u8>, bytes: &[u8]) -> Result<Option<Head>, Malformed> {
    // Heads come in one piece but for the strangest of servers.
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

/// A connection that broke under a request.
pub(crate) fn broken(error: &io::Error) -> Failure {
    // What TLS cannot read is no broken wire.
    let outcome = match error.kind() {
        io::ErrorKind::InvalidData => Outcome::Malformed,
        _ => Outcome::Reset,
    };
    Failure::new(outcome, format!("the connection broke: {error}"))
}
