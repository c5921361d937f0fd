//! The way to a server: what lies between it and this machine, whatever it computes. Measured on one connection of its own: how
//! long it takes to open, and how long the shortest of a few exchanges takes on it.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderValue, Request, header};
use hyper::body::{Body, Frame, SizeHint};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::probe::Question;
use crate::tls;
use crate::units::Nanos;

/// Exchanges on the connection; the first is not counted where others follow: a server may set something up for it.
const EXCHANGES: usize = 5;
/// How long all of it may take: a server that is slow to say which models it has is no reason to wait.
const WITHIN: Duration = Duration::from_secs(2);
/// How often a connection is opened again to see whether only this machine was slow, where the first took long.
const CONNECTS: usize = 3;

/// A handshake of TCP is one round trip between two kernels: 0.02 to 0.1 ms within a host, 0.05 to 0.3 ms within a rack of
/// 10 Gbit/s Ethernet, and 0.5 to 2 ms between zones of a cloud. What takes longer than this is not near.
const NEAR_CONNECT: Nanos = Nanos::from_millis(1);
/// An exchange is that round trip and what the server does for it: a few milliseconds in Python for a list of models. What
/// takes longer than this is a slow proxy in between, or a tunnel whose near end answers the handshake.
const NEAR_EXCHANGE: Nanos = Nanos::from_millis(10);

/// What was measured; null where it could not be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Way {
    /// The HTTP that was spoken: 1.1 or 2.
    pub http: Option<&'static str>,
    /// The TCP handshake, in nanoseconds: what answers it is one round trip away.
    pub connect_ns: Option<u64>,
    /// The TLS handshake, in nanoseconds; null without TLS.
    pub tls_ns: Option<u64>,
    /// The shortest of a few small exchanges on an open connection, in nanoseconds: the round trip, and what the server does for
    /// an answer.
    pub round_trip_ns: Option<u64>,
}

impl Way {
    /// Why a client cannot be near a server that this is the way to, as `near: true` says; nothing where it can.
    pub fn contradicts_near(&self) -> Option<String> {
        let beyond = |measured: Option<u64>, limit: Nanos| measured.filter(|ns| *ns > limit.0).map(millis);
        let connect = beyond(self.connect_ns, NEAR_CONNECT)
            .map(|took| format!("a connection takes {took} to open (within a host or a rack: below {NEAR_CONNECT})"));
        let exchange = || {
            beyond(self.round_trip_ns, NEAR_EXCHANGE).map(|took| {
                format!("the shortest exchange takes {took} (within a host or a rack: below {NEAR_EXCHANGE})")
            })
        };
        let measured = connect.or_else(exchange)?;
        Some(format!(
            "`near: true`, but {measured}; TTFT holds that way too: run sweepline on the server's host, or remove `near`"
        ))
    }
}

impl fmt::Display for Way {
    /// `HTTP/1.1, connect 0.05 ms, round trip 0.31 ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Way { http, connect_ns, tls_ns, round_trip_ns } = *self;
        let parts = [("connect", connect_ns), ("TLS", tls_ns), ("round trip", round_trip_ns)];
        let parts = parts.into_iter().filter_map(|(name, ns)| Some(format!("{name} {}", millis(ns?))));
        let http = http.map(|version| format!("HTTP/{version}"));
        f.write_str(&http.into_iter().chain(parts).collect::<Vec<_>>().join(", "))
    }
}

fn millis(ns: u64) -> String {
    format!("{:.2} ms", ns as f64 / 1e6)
}

/// Measures the way to the server of `question`, which answers. What fails leaves the rest null: that it can be measured at all
/// the probe has found out otherwise.
pub(super) async fn measure(question: &Question) -> Way {
    let mut way = Way::default();
    // What is known when the time is over counts.
    let _ = timeout(WITHIN, go(question, &mut way)).await;
    way
}

async fn go(question: &Question, way: &mut Way) -> Option<()> {
    let url = question.ready_url().ok()?;
    let (host, port) = (url.host_str()?.trim_matches(['[', ']']).to_owned(), url.port_or_known_default()?);
    let addresses: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), port)).await.ok()?.collect();
    let stream = connect(&addresses, way).await?;
    let asked = asked(question, &url)?;
    if url.scheme() != "https" {
        return exchanges(stream, question.http2, asked, way).await;
    }
    let name = ServerName::try_from(host).ok()?;
    let connector = tls::connector(question.insecure_tls, question.http2).ok()?;
    let begin = Instant::now();
    let stream = connector.connect(name, stream).await.ok()?;
    way.tls_ns = Some(nanos(begin));
    exchanges(stream, question.http2, asked, way).await
}

/// Opens the connection; where that takes long, a few times, and the shortest counts.
async fn connect(addresses: &[SocketAddr], way: &mut Way) -> Option<TcpStream> {
    let mut opened = None;
    for _ in 0..CONNECTS {
        let begin = Instant::now();
        let stream = TcpStream::connect(addresses).await.ok()?;
        let took = nanos(begin);
        way.connect_ns = Some(way.connect_ns.map_or(took, |least| least.min(took)));
        stream.set_nodelay(true).ok()?;
        opened = Some(stream);
        if took <= NEAR_CONNECT.0 {
            break;
        }
    }
    opened
}

/// The question of each exchange.
fn asked(question: &Question, url: &reqwest::Url) -> Option<Request<Nothing>> {
    // Over HTTP/2 the address is a part of the request, over HTTP/1.1 a field.
    let path = format!("{}{}", url.path(), url.query().map(|query| format!("?{query}")).unwrap_or_default());
    let authority =
        url.port().map_or(url.host_str()?.to_owned(), |port| format!("{}:{port}", url.host_str().unwrap_or("")));
    let uri = if question.http2 { format!("{}://{authority}{path}", url.scheme()) } else { path };
    let mut request = Request::get(uri).header("x-request-id", "sweepline-probe");
    request = request.header(header::USER_AGENT, concat!("sweepline/", env!("CARGO_PKG_VERSION")));
    if !question.http2 {
        request = request.header(header::HOST, authority);
    }
    if let Some(key) = &question.api_key {
        request = request.header(header::AUTHORIZATION, HeaderValue::try_from(format!("Bearer {key}")).ok()?);
    }
    question.headers.iter().fold(request, |request, [name, value]| request.header(name, value)).body(Nothing).ok()
}

/// Asks a few times on an open connection.
async fn exchanges(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    http2: bool,
    asked: Request<Nothing>,
    way: &mut Way,
) -> Option<()> {
    let io = TokioIo::new(stream);
    let mut sender = if http2 {
        let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.ok()?;
        tokio::spawn(connection);
        Sender::Two(sender)
    } else {
        let (sender, connection) = http1::handshake(io).await.ok()?;
        tokio::spawn(connection);
        Sender::One(sender)
    };
    for number in 0..EXCHANGES {
        let took = sender.exchange(asked.clone()).await?;
        way.http = Some(if http2 { "2" } else { "1.1" });
        way.round_trip_ns = match (number, way.round_trip_ns) {
            (0 | 1, _) | (_, None) => Some(took),
            (_, Some(least)) => Some(least.min(took)),
        };
    }
    Some(())
}

enum Sender {
    One(http1::SendRequest<Nothing>),
    Two(http2::SendRequest<Nothing>),
}

impl Sender {
    /// How long it takes until an answer begins, which is then read to its end.
    async fn exchange(&mut self, request: Request<Nothing>) -> Option<u64> {
        match self {
            Sender::One(sender) => sender.ready().await.ok()?,
            Sender::Two(sender) => sender.ready().await.ok()?,
        }
        let begin = Instant::now();
        let response = match self {
            Sender::One(sender) => sender.send_request(request).await,
            Sender::Two(sender) => sender.send_request(request).await,
        };
        let mut response = response.ok()?;
        let took = nanos(begin);
        let mut body = Pin::new(response.body_mut());
        while let Some(frame) = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            frame.ok()?;
        }
        Some(took)
    }
}

fn nanos(begin: Instant) -> u64 {
    Nanos::from(begin.elapsed()).0
}

/// The body of a request that has none.
#[derive(Debug, Clone, Copy)]
struct Nothing;

impl Body for Nothing {
    type Data = Bytes;
    type Error = Infallible;
    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(None)
    }
    fn is_end_stream(&self) -> bool {
        true
    }
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(connect_ns: u64, round_trip_ns: u64) -> Way {
        Way { connect_ns: Some(connect_ns), round_trip_ns: Some(round_trip_ns), ..Way::default() }
    }

    #[test]
    fn a_near_server_is_near_by_what_was_measured() {
        assert_eq!(Way::default().contradicts_near(), None, "nothing is known");
        assert_eq!(way(1_000_000, 10_000_000).contradicts_near(), None);
        let far = way(2_400_000, 3_000_000).contradicts_near().unwrap();
        assert!(far.contains("a connection takes 2.40 ms to open (within a host or a rack: below 1ms)"), "{far}");
        let behind = way(60_000, 31_000_000).contradicts_near().unwrap();
        assert!(behind.contains("the shortest exchange takes 31.00 ms"), "{behind}");
    }

    #[test]
    fn a_way_is_told_in_one_line() {
        let plain = Way { http: Some("1.1"), ..way(50_000, 310_000) };
        assert_eq!(plain.to_string(), "HTTP/1.1, connect 0.05 ms, round trip 0.31 ms");
        assert_eq!(Way { http: Some("2"), tls_ns: Some(1), ..Way::default() }.to_string(), "HTTP/2, TLS 0.00 ms");
    }
}
