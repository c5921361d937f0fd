//! Serves read-only pages over HTTP/1.1 with an accept loop that enforces limits, independently of
//! the served content.

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

/// Maximum number of concurrent connections, enough for a few clients that stay connected.
const MOST_CONNECTIONS: usize = 64;

/// Time limit for receiving the headers of a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// Pause after a failed accept: if file descriptors have run out, an immediate retry would only burn CPU.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A function that returns the response to a request.
pub(super) type Answer = dyn Fn(&Request<Incoming>) -> Response<Full<Bytes>> + Send + Sync;

/// Serves until `stop` becomes true or its sender is dropped.
pub(super) async fn serve(listener: TcpListener, answer: Arc<Answer>, mut stop: watch::Receiver<bool>) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            // An error means that the sender was dropped.
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
            // An error, for example because the client has closed the connection, is ignored.
            let _ = http.serve_connection(TokioIo::new(stream), answer).await;
            drop(place);
        });
    }
}
