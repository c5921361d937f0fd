//! A client's connection: reads requests, writes bytes, and notices a disconnect while a response waits.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::answering::Answering;
use super::arrival::Arrival;
pub(super) use super::gone::Gone;
use super::shared::Shared;
use super::timer::now;

/// Maximum size of a request head, in bytes.
const MOST_HEAD: usize = 64 << 10;
/// Maximum size of a request body, in bytes.
pub(super) const MOST_BODY: usize = 64 << 20;
/// Maximum number of bytes of later requests that are read while one request is handled. The limit prevents a
/// client from exhausting the memory. When the limit is reached, a disconnect is noticed only at the next
/// write.
const READ_AHEAD: usize = 1 << 20;
/// Maximum number of header fields in a request.
const MOST_FIELDS: usize = 100;

/// The first bytes of every HTTP/2 connection. No HTTP/1.1 request can begin with them.
const PREFACE: &[u8] = b"PRI * ";

/// The parsed head of a request.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub(super) method: String,
    pub(super) path: String,
    /// Whether the client uses HTTP/1.0, which does not support chunks.
    pub(super) old: bool,
    /// Whether the request arrived over HTTP/2, which uses its own frames instead of chunks.
    pub(super) has_frames: bool,
    pub(super) keep_alive: bool,
    pub(super) request_id: Option<String>,
    pub(super) authorization: Option<String>,
    pub(super) api_key: Option<String>,
    /// The other header fields, by name in lower case, excluding fields that every client sends.
    pub(super) further: BTreeMap<String, String>,
    length: usize,
    chunked: bool,
    expects_continue: bool,
}

/// A complete request.
pub(super) struct Incoming {
    pub(super) head: Head,
    bytes: Vec<u8>,
    body: usize,
    /// When the first byte (`arrival`) and the last byte (`complete`) of the request arrived.
    pub(super) arrival: Arrival,
    pub(super) complete: Arrival,
}

impl Head {
    /// Adds a header field, whose name must be in lower case. If the field is invalid, returns the status
    /// and the message of the error response.
    pub(super) fn take(&mut self, name: &str, value: &str) -> Result<(), (u16, &'static str)> {
        match name {
            "content-length" => self.length = value.trim().parse().map_err(|_| (400, "invalid Content-Length"))?,
            "transfer-encoding" => self.chunked = true,
            "expect" => self.expects_continue = value.eq_ignore_ascii_case("100-continue"),
            "connection" if value.to_ascii_lowercase().contains("close") => self.keep_alive = false,
            "connection" if value.to_ascii_lowercase().contains("keep-alive") => self.keep_alive = true,
            "x-request-id" => self.request_id = Some(value.to_owned()),
            "authorization" => self.authorization = Some(value.to_owned()),
            "x-api-key" => self.api_key = Some(value.to_owned()),
            "host" | "accept" | "content-type" | "user-agent" | "accept-encoding" | "connection" => {}
            _ => drop(self.further.insert(name.to_owned(), value.to_owned())),
        }
        Ok(())
    }
}

impl Incoming {
    /// Creates a request from its head, its body, and the arrivals of its first and last bytes.
    pub(super) fn new(head: Head, body: Vec<u8>, (arrival, complete): (Arrival, Arrival)) -> Incoming {
        Incoming { head, bytes: body, body: 0, arrival, complete }
    }

    /// Returns the body of the request.
    pub(super) fn body(&self) -> &[u8] {
        &self.bytes[self.body..]
    }
}

/// Why a request could not be read: the status and message of the error response, and when the first byte
/// of the request arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unreadable {
    pub(super) status: u16,
    pub(super) message: &'static str,
    pub(super) arrival: Arrival,
}

/// The result of reading the next request.
pub(super) enum Next {
    Request(Incoming),
    /// The connection begins with the HTTP/2 preface.
    Http2,
    Unreadable(Unreadable),
    Closed,
}

/// An HTTP/2 connection whose first bytes have been read.
pub(super) struct Accepted {
    pub(super) stream: TcpStream,
    pub(super) input: Vec<u8>,
    /// When the last byte of `input` arrived.
    pub(super) last: Arrival,
    pub(super) number: u64,
    pub(super) peer_port: u16,
    pub(super) shared: Rc<Shared>,
}

/// The transport on which a response is written.
enum Link {
    /// An HTTP/1.1 connection.
    Tcp(TcpStream),
    /// An HTTP/2 stream.
    Stream(Answering),
}

/// One HTTP/1.1 connection, or one stream of an HTTP/2 connection.
pub(super) struct Conn {
    link: Link,
    input: Vec<u8>,
    /// When the first byte (`first`) and the last byte (`last`) of `input` arrived.
    first: Arrival,
    last: Arrival,
    pub(super) number: u64,
    pub(super) peer_port: u16,
    /// Whether the client has disconnected while its generation continues; its output is then discarded.
    lost: bool,
    pub(super) shared: Rc<Shared>,
}

impl Conn {
    /// Creates a connection from an accepted socket.
    pub(super) fn new(stream: TcpStream, number: u64, peer_port: u16, shared: Rc<Shared>) -> Conn {
        Conn::through(Link::Tcp(stream), number, peer_port, shared)
    }

    /// Creates one stream of connection `number`, for the response to one request.
    pub(super) fn of_stream(answering: Answering, number: u64, peer_port: u16, shared: Rc<Shared>) -> Conn {
        Conn::through(Link::Stream(answering), number, peer_port, shared)
    }

    fn through(link: Link, number: u64, peer_port: u16, shared: Rc<Shared>) -> Conn {
        let (first, last) = (Arrival::default(), Arrival::default());
        Conn { link, input: Vec::new(), first, last, number, peer_port, lost: false, shared }
    }

    /// Returns the socket and the bytes that were read from it, so that the connection can continue with
    /// HTTP/2; `None` if this is a stream.
    pub(super) fn into_accepted(self) -> Option<Accepted> {
        let Conn { link, input, last, number, peer_port, shared, .. } = self;
        let Link::Tcp(stream) = link else { return None };
        Some(Accepted { stream, input, last, number, peer_port, shared })
    }

    /// Ends the response on a stream: properly if it is `whole`, otherwise with a reset.
    pub(super) fn end_stream(&mut self, whole: bool) {
        if let Link::Stream(answering) = &mut self.link {
            answering.end(whole);
        }
    }

    /// Makes the connection end with a TCP reset when it is dropped.
    pub(super) fn reset_on_drop(&self) {
        if let Link::Tcp(stream) = &self.link {
            // Errors do not matter: this fails only on a socket that is already gone.
            let _ = stream.set_zero_linger();
        }
    }

    /// Waits for the next complete request.
    pub(super) async fn next(&mut self) -> Result<Next, Gone> {
        if self.input.is_empty() && self.fill().await? == 0 {
            return Ok(Next::Closed);
        }
        let arrival = self.first;
        let unreadable = |(status, message)| Ok(Next::Unreadable(Unreadable { status, message, arrival }));
        let (head, start) = loop {
            if self.input.starts_with(PREFACE) {
                return Ok(Next::Http2);
            }
            match parse(&self.input) {
                Ok(Some(parsed)) => break parsed,
                Ok(None) if self.input.len() > MOST_HEAD => return unreadable((431, "the request head is too long")),
                Ok(None) => {}
                Err(refusal) => return unreadable(refusal),
            }
            if self.fill().await? == 0 {
                return Err(Gone);
            }
        };
        if head.chunked {
            return unreadable((411, "send the body with a Content-Length, not in chunks"));
        }
        if head.length > MOST_BODY {
            return unreadable((413, "the body is longer than 64 MiB"));
        }
        let end = start + head.length;
        if head.expects_continue && self.input.len() < end {
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        while self.input.len() < end {
            if self.fill().await? == 0 {
                return Err(Gone);
            }
        }
        let complete = self.last;
        let rest = self.input.split_off(end);
        let bytes = std::mem::replace(&mut self.input, rest);
        // For the bytes of later requests, only the arrival of the last read is known.
        self.first = self.last;
        Ok(Next::Request(Incoming { head, bytes, body: start, arrival, complete }))
    }

    /// Whether the client has disconnected while its generation continues.
    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Writes all bytes. With `finish_abandoned`, a disconnect is not an error; later bytes are then
    /// discarded.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        if self.lost {
            return Ok(());
        }
        let written = self.write_all(bytes).await;
        if self.shared.config.finish_abandoned {
            self.lost = written.is_err();
            return Ok(());
        }
        written
    }

    async fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), Gone> {
        if let Link::Stream(answering) = &mut self.link {
            return answering.write(bytes).await;
        }
        while let (Link::Tcp(stream), false) = (&self.link, bytes.is_empty()) {
            match stream.try_write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.room().await?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Gone),
            }
        }
        Ok(())
    }

    /// Waits until the socket accepts more bytes; fails if the client disconnects.
    async fn room(&mut self) -> Result<(), Gone> {
        poll_fn(|context| match &self.link {
            Link::Tcp(stream) => match stream.poll_write_ready(context) {
                Poll::Ready(_) => Poll::Ready(Ok(())),
                Poll::Pending => self.poll_gone(context).map(Err),
            },
            Link::Stream(_) => Poll::Ready(Ok(())),
        })
        .await
    }

    /// Waits for `future`; fails if the client disconnects first. Data that the client sends in the
    /// meantime is kept for later.
    pub(super) async fn or_gone<F: Future>(&mut self, future: F) -> Result<F::Output, Gone> {
        let mut future = pin!(future);
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => self.poll_gone(context).map(Err),
        })
        .await
    }

    /// Waits for a step of a generation. Fails if the client disconnects first, unless `finish_abandoned`
    /// is set.
    pub(super) async fn generating<F: Future>(&mut self, future: F) -> Result<F::Output, Gone> {
        if self.shared.config.finish_abandoned { Ok(future.await) } else { self.or_gone(future).await }
    }

    /// Waits until the monotonic clock reads `at` nanoseconds.
    pub(super) async fn wait_until(&mut self, at: u64) -> Result<(), Gone> {
        let sleep = self.shared.timer.at(at);
        self.generating(sleep).await
    }

    /// Waits until the client disconnects.
    pub(super) async fn wait_for_end(&mut self) -> Gone {
        match self.or_gone(std::future::pending::<Gone>()).await {
            Ok(gone) | Err(gone) => gone,
        }
    }

    /// Closes the sending side and continues to read for up to a second. If a socket is closed with unread
    /// bytes, the kernel sends a reset, and a client that is still sending would lose the response.
    pub(super) async fn close_politely(&mut self) {
        let deadline = self.shared.timer.at(now() + 1_000_000_000);
        let rest = async {
            if let Link::Tcp(stream) = &mut self.link {
                // An error does not matter: it means that the client is gone, and the next read
                // also reports this.
                let _ = stream.shutdown().await;
            }
            while self.fill().await.is_ok_and(|read| read > 0) {
                self.input.clear();
            }
        };
        tokio::select! {
            () = deadline => {}
            () = rest => {}
        }
    }

    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<Gone> {
        if let Link::Stream(answering) = &mut self.link {
            return answering.poll_gone(context);
        }
        while let (Link::Tcp(stream), true) = (&self.link, self.input.len() < READ_AHEAD) {
            if ready!(stream.poll_read_ready(context)).is_err() {
                return Poll::Ready(Gone);
            }
            match self.try_fill() {
                Ok(0) => return Poll::Ready(Gone),
                Err(error) if !passing(&error) => return Poll::Ready(Gone),
                _ => {}
            }
        }
        Poll::Pending
    }

    /// Waits for bytes and reads them. Returns their number; 0 means that the client has closed its side.
    async fn fill(&mut self) -> Result<usize, Gone> {
        loop {
            let Link::Tcp(stream) = &self.link else { return Err(Gone) };
            stream.readable().await.map_err(|_| Gone)?;
            match self.try_fill() {
                Ok(read) => return Ok(read),
                Err(error) if passing(&error) => {}
                Err(_) => return Err(Gone),
            }
        }
    }

    fn try_fill(&mut self) -> io::Result<usize> {
        let Link::Tcp(stream) = &self.link else { return Ok(0) };
        let mut reader = self.shared.reader.borrow_mut();
        let (bytes, arrival) = reader.read(stream, self.last)?;
        if self.input.is_empty() {
            self.first = arrival;
        }
        self.last = arrival;
        self.input.extend_from_slice(bytes);
        Ok(bytes.len())
    }
}

fn passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Parses the head of a request. Returns the head and where the body starts; `None` if the head is
/// incomplete. If the head is invalid, the error is the status and the message of the error response.
fn parse(input: &[u8]) -> Result<Option<(Head, usize)>, (u16, &'static str)> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let start = match request.parse(input) {
        Ok(httparse::Status::Complete(start)) => start,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err((431, "the request has too many header fields")),
        Err(_) => return Err((400, "not an HTTP/1 request")),
    };
    let old = request.version == Some(0);
    let mut head = Head {
        method: request.method.unwrap_or_default().to_owned(),
        path: request.path.unwrap_or_default().to_owned(),
        old,
        keep_alive: !old,
        ..Head::default()
    };
    for field in request.headers.iter() {
        head.take(&field.name.to_ascii_lowercase(), &String::from_utf8_lossy(field.value))?;
    }
    Ok(Some((head, start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_in_any_case_and_in_parts() {
        let text =
            b"POST /v1/completions HTTP/1.1\r\ncontent-LENGTH: 5\r\nX-Request-Id: r1\r\nConnection: Close\r\n\r\nhello";
        for cut in 0..text.len() - 5 {
            assert!(parse(&text[..cut]).unwrap().is_none());
        }
        let (head, start) = parse(text).unwrap().unwrap();
        assert_eq!((head.method.as_str(), head.length, head.keep_alive, start), ("POST", 5, false, text.len() - 5));
        assert_eq!(head.request_id.as_deref(), Some("r1"));
        let (head, _) = parse(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").unwrap().unwrap();
        assert!(head.old && head.keep_alive);
        assert_eq!(parse(b"\x16\x03\x01\x02").unwrap_err().0, 400);
        assert_eq!(parse(b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n").unwrap_err().0, 400);
    }
}
