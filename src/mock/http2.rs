//! Serves HTTP/2 with prior knowledge, on the same port as HTTP/1.1. If a connection begins with the HTTP/2
//! preface, the `h2` crate takes over. Each request is handled as over HTTP/1.1, in its own task.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::RecvStream;
use h2::server::{Builder, SendResponse};
use http::Request;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::spawn_local;

use super::answering::Answering;
use super::arrival::Arrival;
use super::conn::{Accepted, Conn, Head, Incoming, MOST_BODY};
use super::shared::Shared;

/// The flow-control window that a client gets, in bytes.
const WINDOW: u32 = 1 << 20;

/// Serves a connection until it ends; `serve` handles each request.
pub(super) async fn connection<F: Future<Output = ()> + 'static>(
    accepted: Accepted,
    serve: impl Fn(Conn, Incoming) -> F + Copy + 'static,
) {
    let Accepted { stream, input, last, number, peer_port, shared } = accepted;
    let arrivals = Rc::new(Arrivals { last: Cell::new(last), may_read: Cell::new(true) });
    let mut builder = Builder::new();
    builder.initial_window_size(WINDOW).initial_connection_window_size(WINDOW);
    if let Some(streams) = shared.config.http2_streams {
        builder.max_concurrent_streams(streams);
    }
    let socket = Socket { stream, unread: input, arrivals: Rc::clone(&arrivals), shared: Rc::clone(&shared) };
    let Ok(mut connection) = arrivals.paced(builder.handshake::<_, Bytes>(socket)).await else { return };
    while let Some(Ok((request, respond))) = arrivals.paced(connection.accept()).await {
        let asked = Asked { arrival: arrivals.last.get(), request, respond, arrivals: Rc::clone(&arrivals) };
        let shared = Rc::clone(&shared);
        spawn_local(async move {
            let Some((answering, incoming)) = asked.whole().await else { return };
            serve(Conn::of_stream(answering, number, peer_port, shared), incoming).await;
        });
    }
}

/// A request whose head has arrived.
struct Asked {
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
    arrival: Arrival,
    arrivals: Rc<Arrivals>,
}

impl Asked {
    /// Waits for the body of the request. Returns `None` if the client cancelled the request or the body is
    /// too long.
    async fn whole(self) -> Option<(Answering, Incoming)> {
        let Asked { request, respond, arrival, arrivals } = self;
        let (parts, mut body) = request.into_parts();
        let mut bytes = Vec::new();
        while let Some(data) = body.data().await {
            let data = data.ok()?;
            bytes.extend_from_slice(&data);
            if bytes.len() > MOST_BODY {
                return None;
            }
            // This cannot fail, because the bytes have just arrived.
            let _ = body.flow_control().release_capacity(data.len());
        }
        let mut head = Head::default();
        head.method = parts.method.as_str().to_owned();
        head.path = parts.uri.path_and_query().map_or_else(String::new, |path| path.as_str().to_owned());
        (head.has_frames, head.keep_alive) = (true, true);
        for (name, value) in &parts.headers {
            // This fails only for an invalid Content-Length, which is ignored, because frames delimit the
            // body in HTTP/2.
            let _ = head.take(name.as_str(), &String::from_utf8_lossy(value.as_bytes()));
        }
        Some((Answering::new(respond), Incoming::new(head, bytes, (arrival, arrivals.last.get()))))
    }
}

/// The last arrival on an HTTP/2 connection, and whether its socket may be read. The socket is read only once
/// each time the connection is polled, so the last arrival is that of the request being handled.
struct Arrivals {
    last: Cell<Arrival>,
    may_read: Cell<bool>,
}

impl Arrivals {
    /// Runs `work`, which may read from the socket once each time it is polled.
    async fn paced<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            self.may_read.set(true);
            work.as_mut().poll(context)
        })
        .await
    }
}

/// The socket of an HTTP/2 connection, which records the arrivals of its bytes.
struct Socket {
    stream: TcpStream,
    /// Bytes that were read from the socket but not returned yet.
    unread: Vec<u8>,
    arrivals: Rc<Arrivals>,
    shared: Rc<Shared>,
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Socket { stream, unread, arrivals, shared } = self.get_mut();
        while unread.is_empty() {
            if !arrivals.may_read.get() {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            ready!(stream.poll_read_ready(context))?;
            match shared.reader.borrow_mut().read(stream, arrivals.last.get()) {
                Ok(([], _)) => return Poll::Ready(Ok(())),
                Ok((bytes, arrival)) => {
                    unread.extend_from_slice(bytes);
                    arrivals.last.set(arrival);
                    arrivals.may_read.set(false);
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        let taken = unread.len().min(buf.remaining());
        buf.put_slice(&unread[..taken]);
        unread.drain(..taken);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
