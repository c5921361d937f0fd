//! The bare reader: hyper's connection API on one thread, with kept connections, each polled in the task of
//! its request. It reads whole responses and stores nothing; it examines only the last bytes, to check that
//! a stream was complete.

pub mod http2;
pub mod open;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderValue, Request, header};
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;

use crate::seen::Seen;

/// The end of every complete stream.
const END: &[u8] = b"data: [DONE]\n\n";

/// A closed loop to run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Closed {
    /// The mock's port.
    pub port: u16,
    /// Body of every request.
    pub body: String,
    /// Tokens of each response, as requested in the body.
    pub tokens: u32,
    /// Requests in flight.
    pub streams: u32,
    /// The minimum duration of the loop …
    pub window: Duration,
    /// … and the minimum number of finished streams.
    pub least: u64,
}

/// The condition that ends all slots.
struct Goal {
    end: Instant,
    least: u64,
    ended: AtomicU64,
}

/// Runs a closed loop on the calling thread.
pub fn closed(order: &Closed) -> Seen {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
    let template = request(order.port, Bytes::from(order.body.clone()));
    let start = Instant::now();
    let goal = Arc::new(Goal { end: start + order.window, least: order.least, ended: AtomicU64::new(0) });
    runtime.block_on(async {
        let slot = |_| tokio::spawn(slot(order.port, template.clone(), Arc::clone(&goal)));
        for slot in (0..order.streams).map(slot).collect::<Vec<_>>() {
            slot.await.expect("a slot of the bare reader");
        }
    });
    let streams = goal.ended.load(Relaxed);
    let seconds = start.elapsed().as_secs_f64();
    Seen { streams, tokens: streams * u64::from(order.tokens), seconds, ..Seen::default() }
}

/// One slot: one connection, one request after the other.
async fn slot(port: u16, template: Request<Full<Bytes>>, goal: Arc<Goal>) {
    let mut connection = Connection::open(port).await;
    loop {
        connection.stream(template.clone()).await;
        let ended = goal.ended.fetch_add(1, Relaxed) + 1;
        if ended >= goal.least && Instant::now() >= goal.end {
            return;
        }
    }
}

/// Returns the request of every stream.
pub fn request(port: u16, body: Bytes) -> Request<Full<Bytes>> {
    let host = HeaderValue::try_from(format!("127.0.0.1:{port}")).expect("a plain address");
    Request::post("/v1/chat/completions")
        .header(header::HOST, host)
        .header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .body(Full::new(body))
        .expect("a plain request")
}

/// One connection and its driver.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: http1::Connection<TokioIo<TcpStream>, Full<Bytes>>,
}

impl Connection {
    /// Opens a connection to the mock.
    pub async fn open(port: u16) -> Connection {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("the mock listens");
        stream.set_nodelay(true).expect("a socket option");
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await.expect("a handshake without bytes");
        Connection { sender, driver }
    }

    /// Sends a request and reads its response to the end.
    pub async fn stream(&mut self, request: Request<Full<Bytes>>) {
        let Connection { sender, driver } = self;
        let mut answer = pin!(sender.send_request(request));
        let response = poll_fn(|cx| {
            // The end of the connection shows in the response.
            let _ = Pin::new(&mut *driver).poll(cx);
            answer.as_mut().poll(cx)
        });
        let mut body = response.await.expect("an answer").into_body();
        let mut whole = false;
        while let Some(data) = next(driver, &mut body).await {
            // The mark may be split between two reads.
            whole = data.ends_with(END) || (!data.is_empty() && END.ends_with(&data));
        }
        assert!(whole, "a stream ended without its end mark");
    }
}

/// Returns the next piece of a body.
async fn next(driver: &mut http1::Connection<TokioIo<TcpStream>, Full<Bytes>>, body: &mut Incoming) -> Option<Bytes> {
    let frame = poll_fn(|cx| match Pin::new(&mut *body).poll_frame(cx) {
        Poll::Pending => {
            let _ = Pin::new(&mut *driver).poll(cx);
            Pin::new(&mut *body).poll_frame(cx)
        }
        ready => ready,
    });
    frame.await.map(|frame| frame.expect("a whole answer").into_data().unwrap_or_default())
}
