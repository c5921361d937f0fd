//! Serves the page over HTTP/1.1, read-only and on loopback only.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
};
use hyper::header::{X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS};
use hyper::{Method, Request, Response, StatusCode};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::guard::{Guard, Wanted};
use crate::cli::http;

/// The served contents.
pub(super) trait Pages: Send + Sync + 'static {
    /// Returns the current page.
    fn page(&self) -> String;
    /// Returns the live state as JSON.
    fn live(&self) -> String;
}

/// Listens on this port of the loopback interface; port 0 picks a free one.
pub(super) async fn listen(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await
}

/// Serves until `stop` becomes true.
pub(super) async fn serve(listener: TcpListener, guard: Guard, pages: Arc<impl Pages>, stop: watch::Receiver<bool>) {
    let answer = move |request: &Request<Incoming>| answer(request, &guard, &*pages);
    http::serve(listener, Arc::new(answer), stop).await;
}

fn answer(request: &Request<Incoming>, guard: &Guard, pages: &impl Pages) -> Response<Full<Bytes>> {
    let (status, kind, text) = match guard.admit(request.method(), request.uri().path(), request.headers()) {
        Ok(Wanted::Page) => (StatusCode::OK, "text/html; charset=utf-8", pages.page()),
        Ok(Wanted::Live) => (StatusCode::OK, "application/json", pages.live()),
        Err(status) => (status, "text/plain; charset=utf-8", format!("{status}\n")),
    };
    let is_head = request.method() == Method::HEAD;
    let length = text.len();
    let body = if is_head { Bytes::new() } else { Bytes::from(text) };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let fixed: [(HeaderName, &'static str); 8] = [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        // The page also declares its own policy, which allows its script by a nonce. Browsers enforce all
        // policies together.
        (CONTENT_SECURITY_POLICY, "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; object-src 'none'"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    headers.extend(fixed.map(|(name, value)| (name, HeaderValue::from_static(value))));
    if is_head {
        headers.insert(hyper::header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}
