//! `run --metrics-addr` serves metrics of the running sweep over HTTP, for Prometheus, in a separate
//! thread.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use tokio::sync::watch;

use crate::cli::failure::Failure;
use crate::cli::http;
use crate::report::progress::{Outlook, SweepMetrics};
use crate::sweep::event::Event;

/// Interval between reads of the counters, short enough to keep derived rates up to date.
const LOOK: Duration = Duration::from_secs(1);

/// Content type of the text format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metrics, which are served until this value is dropped.
pub(super) struct MetricsServer {
    metrics: Arc<Mutex<SweepMetrics>>,
    address: SocketAddr,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

/// Parses `ADDRESS:PORT`, or `PORT`, which is a port on loopback.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix("localhost:").or_else(|| text.strip_prefix(':')).unwrap_or(text);
    match port.parse() {
        Ok(port) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        Err(_) => text.parse().map_err(|_| {
            "expected PORT, which uses 127.0.0.1, or an IP address with a port, like 127.0.0.1:9464".to_owned()
        }),
    }
}

impl MetricsServer {
    /// Opens the port and begins to serve.
    pub(super) fn start(address: SocketAddr, plan: &str) -> Result<MetricsServer, Failure> {
        let listener = TcpListener::bind(address).map_err(|error| refused(address, &error))?;
        listener.set_nonblocking(true).map_err(|error| Failure::Unexpected(error.into()))?;
        let address = listener.local_addr().map_err(|error| Failure::Unexpected(error.into()))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::Unexpected(error.into()))?;
        let metrics = Arc::new(Mutex::new(SweepMetrics::new(plan)));
        let (stop, stops) = watch::channel(false);
        let served = Arc::clone(&metrics);
        let serve = move || {
            runtime.block_on(serve(listener, served, stops));
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("metrics".to_owned()).spawn(serve);
        let thread = Some(thread.map_err(|error| Failure::Unexpected(error.into()))?);
        Ok(MetricsServer { metrics, address, stop, thread })
    }

    /// Returns the URL for Prometheus.
    pub(super) fn url(&self) -> String {
        format!("http://{}/metrics", self.address)
    }

    /// Begins a stage.
    pub(super) fn begin(&self, outlook: Outlook) {
        if let Ok(mut metrics) = self.metrics.lock() {
            metrics.begin(outlook);
        }
    }

    /// Records an event.
    pub(super) fn take(&self, event: &Event) {
        if let Ok(mut metrics) = self.metrics.lock() {
            metrics.take(event);
        }
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked no longer serves requests.
            let _ = thread.join();
        }
    }
}

fn refused(address: SocketAddr, error: &std::io::Error) -> Failure {
    Failure::Usage(format!(
        "cannot listen on --metrics-addr {address} ({error}): use another port, or port 0 for any free one"
    ))
}

async fn serve(listener: TcpListener, metrics: Arc<Mutex<SweepMetrics>>, stops: watch::Receiver<bool>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let looked_at = Arc::clone(&metrics);
    let look = async move {
        loop {
            tokio::time::sleep(LOOK).await;
            if let Ok(mut metrics) = looked_at.lock() {
                metrics.look();
            }
        }
    };
    tokio::select! {
        () = look => {}
        () = http::serve(listener, Arc::new(move |request: &_| answer(request, &metrics)), stops) => {}
    }
}

fn answer(request: &Request<Incoming>, metrics: &Mutex<SweepMetrics>) -> Response<Full<Bytes>> {
    let is_read = request.method() == Method::GET || request.method() == Method::HEAD;
    let (status, text) = match request.uri().path() {
        _ if !is_read => (StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".to_owned()),
        "/metrics" => match metrics.lock() {
            Ok(mut metrics) => (StatusCode::OK, metrics.text()),
            Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "the metrics are unavailable\n".to_owned()),
        },
        _ => (StatusCode::NOT_FOUND, "the metrics are at /metrics\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(TEXT));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn a_port_alone_is_of_loopback() {
        for text in ["9464", ":9464", "localhost:9464", "127.0.0.1:9464"] {
            assert_eq!(address(text).expect("an address").to_string(), "127.0.0.1:9464", "{text}");
        }
        assert_eq!(address("[::1]:0").expect("an address").to_string(), "[::1]:0");
        for text in ["", "host:9464", "127.0.0.1", "99999"] {
            assert!(address(text).expect_err(text).contains("127.0.0.1:9464"), "{text}");
        }
    }
}
