//! Serves read-only pages over HTTP/1.1 with an accept loop that enforces limits, independently of
//! the served content.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HOST, HeaderMap};
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

/// Whether the only `Host` header of a request is `localhost` or a loopback address, with any port, because a tunnel
/// may lead to this one. A page of another site whose name resolves to this machine (DNS rebinding) sends the name of
/// that site.
pub(super) fn names_loopback(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    hosts.next().is_none() && host.and_then(name_of).is_some_and(is_loopback)
}

/// Returns the name in a `Host` header, without the port and the brackets of an IPv6 address; `None` if the header is
/// invalid.
fn name_of(host: &str) -> Option<&str> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = |text: &str| text.strip_prefix(':').is_some_and(|digits| digits.parse::<u16>().is_ok());
    (port.is_empty() || is_port(port)).then_some(name)
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_names_are_loopback() {
        let is_ours = |hosts: &[&str]| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(HOST, host.parse().expect("a header"));
            }
            names_loopback(&headers)
        };
        for host in ["localhost", "LocalHost:9464", "127.0.0.1", "127.0.0.1:1", "127.8.9.1:80", "[::1]", "[::1]:9464"] {
            assert!(is_ours(&[host]), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:9464",
            "127.0.0.1.evil.example",
            "localhost.evil.example:9464",
            "10.0.0.1:9464",
            "[2001:db8::1]:9464",
            "[::1",
            "::1",
            "127.0.0.1:x",
            "localhost:99999",
            "user@localhost",
        ] {
            assert!(!is_ours(&[host]), "{host}");
        }
        assert!(!is_ours(&[]), "a request must name its host");
        assert!(!is_ours(&["localhost", "evil.example"]), "and only one");
    }
}
