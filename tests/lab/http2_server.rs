//! An HTTP/2 test server for cases that the mock cannot reproduce: settings, ends of connections and of
//! streams, and TLS. It responds to the probe, and sends eight tokens for each measured request.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream};
use http::{Request, Response};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::{LocalSet, spawn_local};
use tokio_rustls::TlsAcceptor;

/// How a server behaves.
#[derive(Clone, Default)]
pub struct Rules {
    /// Number of streams that its settings allow.
    pub streams: Option<u32>,
    /// The reaction to the n-th measured request, counted over all connections.
    pub at: Option<(usize, Meets)>,
    /// Total time of each response.
    pub takes: Duration,
    /// TLS, with these protocols.
    pub alpn: Option<Vec<&'static str>>,
    /// Uses only HTTP/1.1, whatever the client requests.
    pub is_old: bool,
}

/// The reaction to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meets {
    /// The connection accepts no more requests; those in flight get their responses.
    GoAway,
    /// The connection ends with an error.
    Fails,
    /// The connection is reset.
    Drops,
    /// The request's stream is refused, and so are all later ones.
    Refuses,
}

/// The server's record of measured requests.
#[derive(Debug, Default, Clone)]
pub struct Seen {
    /// Request ids in the order of arrival, by connection, from 1.
    pub by_connection: BTreeMap<usize, Vec<String>>,
    /// The most simultaneous streams of measured requests on one connection.
    pub most_at_once: usize,
    /// The URI of every request, whose authority replaces the `Host` header.
    pub uris: Vec<String>,
}

impl Seen {
    /// Returns the ids of all requests.
    pub fn ids(&self) -> Vec<String> {
        self.by_connection.values().flatten().cloned().collect()
    }
}

/// A running server, stopped on drop.
pub struct Server {
    pub port: u16,
    seen: Arc<Mutex<Seen>>,
    over: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

/// State that the connections of a server share.
struct Shared {
    rules: Rules,
    seen: Arc<Mutex<Seen>>,
}

impl Server {
    pub fn start(rules: Rules) -> Server {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (seen, over): (Arc<Mutex<Seen>>, Arc<Notify>) = Default::default();
        let (theirs, end) = (Arc::clone(&seen), Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let shared = Rc::new(Shared { rules, seen: theirs });
            LocalSet::new().block_on(&runtime, async {
                let listener = TcpListener::from_std(listener).unwrap();
                tokio::select! {
                    () = end.notified() => {}
                    () = accept(listener, shared) => {}
                }
            });
        });
        Server { port, seen, over, thread: Some(thread) }
    }

    pub fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.notify_one();
        if let Some(thread) = self.thread.take().filter(|_| !std::thread::panicking()) {
            thread.join().unwrap();
        }
    }
}

async fn accept(listener: TcpListener, shared: Rc<Shared>) {
    let tls = shared.rules.alpn.as_ref().map(|protocols| TlsAcceptor::from(Arc::new(certificate(protocols))));
    for number in 1.. {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (shared, tls) = (Rc::clone(&shared), tls.clone());
        spawn_local(async move {
            match tls {
                None => serve(stream, number, shared, |stream| stream.set_zero_linger().unwrap()).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        serve(stream, number, shared, |_| {}).await;
                    }
                }
            }
        });
    }
}

/// Returns a self-signed certificate, made by `openssl req -x509 -newkey ec -pkeyopt
/// ec_paramgen_curve:prime256v1 -nodes -days 36500`.
fn certificate(protocols: &[&str]) -> ServerConfig {
    let certificate = CertificateDer::from_slice(include_bytes!("tls/cert.der"));
    let key = PrivateKeyDer::try_from(&include_bytes!("tls/key.der")[..]).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_no_client_auth().with_single_cert(vec![certificate], key.clone_key()).unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    config
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin + 'static>(
    stream: S,
    connection: usize,
    shared: Rc<Shared>,
    reset: fn(&S),
) {
    if shared.rules.is_old {
        return serve_http1(stream).await;
    }
    let mut builder = Builder::new();
    if let Some(streams) = shared.rules.streams {
        builder.max_concurrent_streams(streams);
    }
    // The socket is kept outside, so that it can be reset.
    let stream = Rc::new(RefCell::new(stream));
    let Ok(mut served) = builder.handshake::<_, Bytes>(Lent(Rc::clone(&stream))).await else { return };
    let at_once = Rc::new(Cell::new(0));
    while let Some(Ok((request, mut respond))) = served.accept().await {
        shared.seen.lock().unwrap().uris.push(request.uri().to_string());
        let id = request.headers().get("x-request-id").map_or("", |id| id.to_str().unwrap()).to_owned();
        if id.is_empty() || id == "sweepline-probe" {
            spawn_local(answer_probe(request, respond, shared.rules.takes));
            continue;
        }
        let number = {
            let mut seen = shared.seen.lock().unwrap();
            seen.by_connection.entry(connection).or_default().push(id);
            at_once.set(at_once.get() + 1);
            seen.most_at_once = seen.most_at_once.max(at_once.get());
            seen.by_connection.values().map(Vec::len).sum::<usize>()
        };
        let meets = shared.rules.at.filter(|(at, meets)| number == *at || number > *at && *meets == Meets::Refuses);
        match meets.map(|(_, meets)| meets) {
            None => {}
            Some(Meets::GoAway) => served.graceful_shutdown(),
            Some(Meets::Fails) => served.abrupt_shutdown(Reason::INTERNAL_ERROR),
            Some(Meets::Drops) => {
                reset(&stream.borrow());
                return;
            }
            Some(Meets::Refuses) => {
                at_once.set(at_once.get() - 1);
                respond.send_reset(Reason::REFUSED_STREAM);
                continue;
            }
        }
        let (takes, at_once) = (shared.rules.takes, Rc::clone(&at_once));
        spawn_local(async move {
            // The rows show if the client closed the connection.
            let _ = answer(request, respond, takes).await;
            at_once.set(at_once.get() - 1);
        });
    }
}

async fn answer(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    takes: Duration,
) -> Result<(), h2::Error> {
    whole(request).await?;
    let response = Response::builder().header("content-type", "text/event-stream").body(()).unwrap();
    let mut send = respond.send_response(response, false)?;
    for word in 0..8 {
        tokio::time::sleep(takes / 8).await;
        let event = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"w{word} \"}}}}]}}\n\n");
        send.send_data(event.into(), false)?;
    }
    let usage =
        r#"{"choices":[{"delta":{},"finish_reason":"length"}],"usage":{"prompt_tokens":9,"completion_tokens":8}}"#;
    send.send_data(format!("data: {usage}\n\ndata: [DONE]\n\n").into(), true)
}

async fn answer_probe(request: Request<RecvStream>, mut respond: SendResponse<Bytes>, takes: Duration) {
    if request.method() == "GET" {
        tokio::time::sleep(takes).await;
    }
    if whole(request).await.is_ok()
        && let Ok(mut send) = respond.send_response(Response::new(()), false)
    {
        let _ = send.send_data(PROBED.into(), true);
    }
}

async fn whole(request: Request<RecvStream>) -> Result<(), h2::Error> {
    let mut body = request.into_body();
    while let Some(data) = body.data().await {
        let length = data?.len();
        body.flow_control().release_capacity(length)?;
    }
    Ok(())
}

/// The response to every request from the probe.
const PROBED: &str = r#"{"data":[{"id":"tiny"}],"model":"tiny","choices":[{"message":{"content":"hi"}}],"usage":{"completion_tokens":1}}"#;

/// Serves only HTTP/1.1, with one request per connection.
async fn serve_http1(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|four| four == b"\r\n\r\n") {
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let answer = match bytes.starts_with(b"PRI ") {
        true => "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
        false => format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{PROBED}", PROBED.len()),
    };
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// A stream that its owner can also access.
struct Lent<S>(Rc<RefCell<S>>);

mod lent {
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

    use super::Lent;

    impl<S: AsyncRead + Unpin> AsyncRead for Lent<S> {
        fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut *self.0.borrow_mut()).poll_read(cx, buf)
        }
    }

    impl<S: AsyncWrite + Unpin> AsyncWrite for Lent<S> {
        fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            Pin::new(&mut *self.0.borrow_mut()).poll_write(cx, bytes)
        }
        fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut *self.0.borrow_mut()).poll_flush(cx)
        }
        fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut *self.0.borrow_mut()).poll_shutdown(cx)
        }
    }
}
