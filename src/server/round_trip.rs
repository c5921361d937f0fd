//! Measures the network path to a server on a separate connection: the time to open the connection, and the
//! shortest of a few exchanges on it.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, header};
use hyper::body::{Body, Frame, SizeHint};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::probe::Question;
use super::way::{NEAR_CONNECT, Way};
use crate::network::{Opened, Transport, open};
use crate::tls;
use crate::units::Nanos;

/// Number of exchanges on the connection. The first exchange is ignored if others follow, because the
/// server may need extra time for it.
const EXCHANGES: usize = 5;
/// Total time limit of the measurement, so that a server that is slow to list its models does not delay the
/// sweep.
const WITHIN: Duration = Duration::from_secs(2);
/// Maximum number of times that a connection is opened. If the first connection took long to open, the others
/// show whether only this machine was slow.
const CONNECTS: usize = 3;

/// Measures the network path to the server of `question`, which has already responded to the probe. Blocks
/// for at most two seconds. If a step fails, the remaining values stay `None`; this is not an error,
/// because the server can still be measured.
pub fn measure_way(question: &Question) -> Way {
    let mut way = Way::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    if let Ok(runtime) = runtime {
        // Values that were measured before a timeout are kept.
        let _ = runtime.block_on(async { timeout(WITHIN, measure(question, &mut way)).await });
    }
    way
}

async fn measure(question: &Question, way: &mut Way) -> Option<()> {
    let route = &question.route;
    let tls = match route.address().is_https() {
        true => Some((tls::connector(route.tls(), question.http2).ok()?, route.server_name().ok()?)),
        false => None,
    };
    let asked = asked(question)?;
    let opened = connect(question, tls.as_ref(), way).await?;
    exchanges(opened.transport, question.http2, asked, way).await
}

/// Opens a connection; returns `None` if this fails. If it takes long, a few more connections are opened, and
/// the shortest time is recorded.
async fn connect(
    question: &Question,
    tls: Option<&(TlsConnector, ServerName<'static>)>,
    way: &mut Way,
) -> Option<Opened> {
    let mut last = None;
    for _ in 0..CONNECTS {
        let opened = open(&question.route, question.http2, tls).await.ok()?;
        let took = nanos(opened.connect);
        way.connect_ns = Some(way.connect_ns.map_or(took, |least| least.min(took)));
        way.tls_ns = opened.tls.map(nanos);
        last = Some(opened);
        if took <= NEAR_CONNECT.0 {
            break;
        }
    }
    last
}

/// Builds the request of each exchange; `None` if this fails.
fn asked(question: &Question) -> Option<Request<Nothing>> {
    let (route, path) = (&question.route, question.ready_path());
    // Over HTTP/2, the host is part of the request's URI; over HTTP/1.1, it is a header field.
    let uri = if question.http2 { route.http2_uri(&path) } else { route.request_target(&path) };
    let mut request = Request::get(uri).header("x-request-id", "sweepline-probe");
    request = request.header(header::USER_AGENT, concat!("sweepline/", env!("CARGO_PKG_VERSION")));
    if !question.http2 {
        request = request.header(header::HOST, route.authority());
    }
    if let Some(value) = route.forwarding_proxy(question.http2).and_then(|proxy| proxy.authorization()) {
        request = request.header(header::PROXY_AUTHORIZATION, value);
    }
    for header in question.api.protocol().headers(question.api_key.as_deref()) {
        request = request.header(header.name, header.encoded().ok()?);
    }
    question.headers.iter().fold(request, |request, [name, value]| request.header(name, value)).body(Nothing).ok()
}

/// Makes a few exchanges on an open connection, and records the shortest time. Returns `None` if an exchange
/// fails; no more exchanges are then made.
async fn exchanges(stream: Box<dyn Transport>, http2: bool, asked: Request<Nothing>, way: &mut Way) -> Option<()> {
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
    /// Sends a request and reads the response to its end. Returns the time until the response began, in
    /// nanoseconds; `None` if the exchange failed.
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
        let took = nanos(begin.elapsed());
        let mut body = Pin::new(response.body_mut());
        while let Some(frame) = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            frame.ok()?;
        }
        Some(took)
    }
}

fn nanos(duration: Duration) -> u64 {
    Nanos::from(duration).0
}

/// An empty request body.
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
