//! The client for requests that are not measured: probes, checks, hooks, and pages of metrics. It follows no
//! redirects, retries nothing, and ignores the environment's proxies.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use super::dial::open;
use super::route::Route;
use crate::tls;

/// The time limits of requests.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// Time limit for opening a connection; `None` for no limit of its own.
    pub connect: Option<Duration>,
    /// Time limit for the whole exchange; `None` for no limit.
    pub within: Option<Duration>,
}

/// A client for one server. Clones share their connections.
#[derive(Debug, Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    route: Route,
    http2: bool,
    tls: Option<Handshake>,
    limits: Limits,
    /// Maximum number of unused connections that are kept for later requests.
    keeps: usize,
    unused: Mutex<Vec<Sender>>,
}

/// Headers whose values are never secret.
const PUBLIC: [&str; 3] = ["accept", "content-type", "x-request-id"];

/// The settings of TLS handshakes, and the name that the server's certificate must have.
struct Handshake(TlsConnector, ServerName<'static>);

impl std::fmt::Debug for Handshake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Handshake({:?})", self.1)
    }
}

/// A request.
#[derive(Clone)]
pub struct Request {
    method: Method,
    /// Path and query.
    path: String,
    headers: Vec<(String, String)>,
    body: Bytes,
    within: Option<Duration>,
}

impl std::fmt::Debug for Request {
    /// Writes neither headers nor body, which may contain secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

impl Request {
    /// Creates a request without a body. `path` may have a query.
    pub fn new(method: Method, path: impl Into<String>) -> Request {
        Request { method, path: path.into(), headers: Vec::new(), body: Bytes::new(), within: None }
    }

    /// Creates a GET request.
    pub fn get(path: impl Into<String>) -> Request {
        Request::new(Method::GET, path)
    }

    /// Creates a POST request with a JSON body.
    pub fn post(path: impl Into<String>, json: impl Into<Bytes>) -> Request {
        let request = Request::new(Method::POST, path).header("content-type", "application/json");
        Request { body: json.into(), ..request }
    }

    /// Returns path and query.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Request {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the time limit of this request, instead of the client's.
    pub fn within(self, within: Duration) -> Request {
        Request { within: Some(within), ..self }
    }
}

/// Why a request got no response, or only a part of it.
#[derive(Debug)]
pub enum ClientError {
    /// No connection could be opened.
    Connect(io::Error),
    /// No connection could be opened in time.
    ConnectTimeout,
    /// The response was not complete in time.
    Timeout,
    /// The exchange failed.
    Exchange(hyper::Error),
    /// The request cannot be sent, for example because of a line break in a header.
    Request(http::Error),
}

impl ClientError {
    /// Whether a time limit was reached.
    pub fn is_timeout(&self) -> bool {
        matches!(self, ClientError::ConnectTimeout | ClientError::Timeout)
    }

    /// Whether there was no connection.
    pub fn is_connect(&self) -> bool {
        matches!(self, ClientError::ConnectTimeout | ClientError::Connect(_))
    }

    /// Returns the innermost cause, and its remedy if it is known.
    pub fn words(&self) -> String {
        let cause = match self {
            ClientError::Connect(error) => innermost(error),
            ClientError::Exchange(error) => innermost(error),
            ClientError::Request(error) => error.to_string(),
            ClientError::ConnectTimeout | ClientError::Timeout => "operation timed out".to_owned(),
        };
        tls::in_words(cause)
    }
}

/// The text of the innermost cause of an error, because the outer ones name only the step that failed.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

impl Client {
    /// Creates a client that keeps up to `keeps` unused connections for later requests.
    ///
    /// # Errors
    ///
    /// Fails if the address uses TLS, and its name is not valid or the root certificates cannot be read.
    pub fn new(route: Route, http2: bool, limits: Limits, keeps: usize) -> io::Result<Client> {
        let tls = match route.address().is_https() {
            true => Some(Handshake(tls::connector(route.tls(), http2)?, route.server_name()?)),
            false => None,
        };
        Ok(Client { shared: Arc::new(Shared { route, http2, tls, limits, keeps, unused: Mutex::default() }) })
    }

    /// Sends a request, and returns the response once its head has arrived.
    ///
    /// # Errors
    ///
    /// Fails if there is no response within the time limit.
    pub async fn send(&self, request: Request) -> Result<Response, ClientError> {
        let within = request.within.or(self.shared.limits.within);
        let deadline = within.map(|within| Instant::now() + within);
        bounded(deadline, self.exchange(request, deadline)).await
    }

    async fn exchange(&self, request: Request, deadline: Option<Instant>) -> Result<Response, ClientError> {
        let path = request.path.clone();
        let encoded = self.encode(request).map_err(ClientError::Request)?;
        let mut sender = self.sender(deadline).await?;
        let response = sender.send(encoded).await.map_err(ClientError::Exchange)?;
        let (head, body) = response.into_parts();
        let unused = (self.shared.keeps > 0).then(|| (self.clone(), sender));
        Ok(Response { status: head.status, headers: head.headers, path, body, deadline, unused })
    }

    fn encode(&self, request: Request) -> Result<http::Request<Payload>, http::Error> {
        let Shared { route, http2, .. } = &*self.shared;
        let uri = if *http2 { route.http2_uri(&request.path) } else { route.request_target(&request.path) };
        let mut encoded = http::Request::builder().method(request.method).uri(uri);
        if !http2 {
            encoded = encoded.header(header::HOST, route.authority());
        }
        let has = |wanted: &str| request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
        if !has("accept") {
            encoded = encoded.header(header::ACCEPT, "*/*");
        }
        if !has("user-agent") {
            encoded = encoded.header(header::USER_AGENT, concat!("sweepline/", env!("CARGO_PKG_VERSION")));
        }
        if let Some(value) = route.forwarding_proxy(*http2).and_then(|proxy| proxy.authorization()) {
            encoded = encoded.header(header::PROXY_AUTHORIZATION, value);
        }
        for (name, value) in &request.headers {
            let mut value = HeaderValue::try_from(value)?;
            // HTTP/2 keeps sensitive values out of its tables.
            value.set_sensitive(!PUBLIC.iter().any(|public| public.eq_ignore_ascii_case(name)));
            encoded = encoded.header(name, value);
        }
        let body = Some(request.body).filter(|body| !body.is_empty());
        encoded.body(Payload(body))
    }

    /// Takes an unused connection, or opens a new one until `deadline`.
    async fn sender(&self, deadline: Option<Instant>) -> Result<Sender, ClientError> {
        while let Some(mut sender) = self.unused() {
            if sender.is_ready().await {
                return Ok(sender);
            }
        }
        let limit = self.shared.limits.connect.map(|limit| Instant::now() + limit);
        match limit.into_iter().chain(deadline).min() {
            Some(until) => timeout_at(until, self.open()).await.map_err(|_| ClientError::ConnectTimeout)?,
            None => self.open().await,
        }
    }

    fn unused(&self) -> Option<Sender> {
        self.shared.unused.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    async fn open(&self) -> Result<Sender, ClientError> {
        let Shared { route, http2, tls, .. } = &*self.shared;
        let tls = tls.as_ref().map(|Handshake(connector, name)| (connector.clone(), name.clone()));
        let opened = open(route, *http2, tls.as_ref()).await.map_err(ClientError::Connect)?;
        let io = TokioIo::new(opened.transport);
        if *http2 {
            let (sender, connection) =
                http2::handshake(TokioExecutor::new(), io).await.map_err(ClientError::Exchange)?;
            // Errors of the connection are reported to its requests.
            tokio::spawn(async move { drop(connection.await) });
            return Ok(Sender::Http2(sender));
        }
        let (sender, connection) = http1::handshake(io).await.map_err(ClientError::Exchange)?;
        tokio::spawn(async move { drop(connection.await) });
        Ok(Sender::Http1(sender))
    }

    fn keep(&self, sender: Sender) {
        let mut unused = self.shared.unused.lock().unwrap_or_else(PoisonError::into_inner);
        if unused.len() < self.shared.keeps {
            unused.push(sender);
        }
    }
}

/// Awaits `work` until `deadline`, if there is one.
async fn bounded<T>(
    deadline: Option<Instant>,
    work: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ClientError> {
    match deadline {
        Some(deadline) => timeout_at(deadline, work).await.unwrap_or(Err(ClientError::Timeout)),
        None => work.await,
    }
}

/// The sending end of a connection.
#[derive(Debug)]
enum Sender {
    Http1(http1::SendRequest<Payload>),
    Http2(http2::SendRequest<Payload>),
}

impl Sender {
    async fn is_ready(&mut self) -> bool {
        match self {
            Sender::Http1(sender) => sender.ready().await.is_ok(),
            Sender::Http2(sender) => sender.ready().await.is_ok(),
        }
    }

    async fn send(&mut self, request: http::Request<Payload>) -> hyper::Result<http::Response<Incoming>> {
        match self {
            Sender::Http1(sender) => sender.send_request(request).await,
            Sender::Http2(sender) => sender.send_request(request).await,
        }
    }
}

/// A response whose head has arrived.
#[derive(Debug)]
pub struct Response {
    status: StatusCode,
    headers: HeaderMap,
    /// Path and query of the request.
    path: String,
    body: Incoming,
    deadline: Option<Instant>,
    /// The connection, which is kept for later requests once the body has been read; `None` if it is not
    /// kept.
    unused: Option<(Client, Sender)>,
}

impl Response {
    /// Returns the status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the header fields.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Returns a header field as text; `None` if it is absent or not ASCII.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns path and query of the request.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the length of the body in bytes, if the server states it.
    pub fn content_length(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    /// Returns the next part of the body; `None` at its end.
    ///
    /// # Errors
    ///
    /// Fails if the connection breaks, or the time limit is reached.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ClientError> {
        loop {
            let body = &mut self.body;
            let next = async {
                match poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
                    Some(frame) => frame.map(Some).map_err(ClientError::Exchange),
                    None => Ok(None),
                }
            };
            let Some(frame) = bounded(self.deadline, next).await? else {
                if let Some((client, sender)) = self.unused.take() {
                    client.keep(sender);
                }
                return Ok(None);
            };
            // Frames without data are trailers.
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
    }
}

/// The body of a request, which is sent in one piece; `None` once it has been sent, or if there is none.
#[derive(Debug)]
struct Payload(Option<Bytes>);

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}
