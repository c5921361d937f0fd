//! Pages over HTTP/1.1 that only read: an accept loop with bounds, and nothing of what is served.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

/// Most connections at once: a few readers that stay connected, and no more.
const MOST_CONNECTIONS: usize = 64;

/// How long a request may take to come.
const PATIENCE: Duration = Duration::from_secs(10);

/// Pause after a failed accept: out of file descriptors, trying again at once would only burn the core.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers a request.
pub(super) type Answer = dyn Fn(&Request<Incoming>) -> Response<Full<Bytes>> + Send + Sync;

/// Serves until `stop` turns true.
pub(super) async fn serve(listener: TcpListener, answer: Arc<Answer>, mut stop: watch::Receiver<bool>) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            // An error says that nobody is left who could stop it.
            _ = stop.wait_for(|stop| *stop) => return,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else { continue };
        let answer = Arc::clone(&answer);
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let response = answer(&request);
                async { Ok::<_, Infallible>(response) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(32 * 1024);
            // What a reader breaks off is its affair.
            let _ = http.serve_connection(TokioIo::new(stream), answer).await;
            drop(place);
        });
    }
}
