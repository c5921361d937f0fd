//! The bare reader over HTTP/2: hyper's client, with all requests on one connection, which a separate task
//! drives.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use super::{Closed, END, Goal, request};
use crate::seen::Seen;

/// The flow-control window, the same as the engine grants to a server.
const WINDOW: u32 = 1 << 30;

/// Runs a closed loop on the calling thread.
pub fn closed(order: &Closed) -> Seen {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
    let mut template = request(order.port, Bytes::from(order.body.clone()));
    let uri = format!("http://127.0.0.1:{}{}", order.port, template.uri());
    *template.uri_mut() = uri.parse::<Uri>().expect("a plain address");
    template.headers_mut().remove(http::header::HOST);
    let start = Instant::now();
    let goal = Arc::new(Goal { end: start + order.window, least: order.least, ended: AtomicU64::new(0) });
    runtime.block_on(async {
        let stream = TcpStream::connect(("127.0.0.1", order.port)).await.expect("the mock listens");
        stream.set_nodelay(true).expect("a socket option");
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(WINDOW).initial_connection_window_size(WINDOW);
        let (sender, driver) = builder.handshake(TokioIo::new(stream)).await.expect("a handshake");
        tokio::spawn(driver);
        let slot = |_| tokio::spawn(slot(sender.clone(), template.clone(), Arc::clone(&goal)));
        for slot in (0..order.streams).map(slot).collect::<Vec<_>>() {
            slot.await.expect("a slot of the bare reader");
        }
    });
    let streams = goal.ended.load(Relaxed);
    let seconds = start.elapsed().as_secs_f64();
    Seen { streams, tokens: streams * u64::from(order.tokens), seconds, ..Seen::default() }
}

/// One slot, which sends one request after another.
async fn slot(mut sender: SendRequest<Full<Bytes>>, template: Request<Full<Bytes>>, goal: Arc<Goal>) {
    loop {
        let mut body = sender.send_request(template.clone()).await.expect("an answer").into_body();
        let mut whole = false;
        while let Some(frame) = body.frame().await {
            let data = frame.expect("a whole answer").into_data().unwrap_or_default();
            whole = data.is_empty() && whole || data.ends_with(END) || (!data.is_empty() && END.ends_with(&data));
        }
        assert!(whole, "a stream ended without its end mark");
        let ended = goal.ended.fetch_add(1, Relaxed) + 1;
        if ended >= goal.least && Instant::now() >= goal.end {
            return;
        }
    }
}
