//! The request that all requests of a run are: made once, and copied with another number and body.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use http_body_util::Full;

use crate::expand::RunSpec;
use crate::plan::Api;

use super::target::Target;

/// The header that lets a server's log be matched with the rows.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Everything of a request but its number and its body.
#[derive(Debug)]
pub struct Pattern {
    uri: Uri,
    headers: HeaderMap,
    id_prefix: String,
}

impl Pattern {
    /// The requests of `spec` to `target`; `id_prefix` opens the id of each.
    pub fn new(spec: &RunSpec, target: &Target, id_prefix: String) -> Pattern {
        let api = match spec.endpoint.api {
            Api::Chat => "/chat/completions",
            Api::Completions => "/completions",
        };
        let checked = "the parts of the address were checked when it was read";
        let accept = if spec.shaping.stream { "text/event-stream" } else { "application/json" };
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::try_from(&target.authority).expect(checked));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        let agent = concat!("sweepline/", env!("CARGO_PKG_VERSION"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
        // Replaced in each request: the place for it is there.
        headers.insert(REQUEST_ID, HeaderValue::from_static(""));
        if let Some(key) = &target.api_key
            && let Ok(mut value) = HeaderValue::try_from(format!("Bearer {}", key.reveal()))
        {
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        Pattern { uri: format!("{}{api}", target.base).parse().expect(checked), headers, id_prefix }
    }

    /// Request `number` with its body.
    pub fn request(&self, number: u64, body: Bytes) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        let id = HeaderValue::try_from(format!("{}-{number}", self.id_prefix));
        request.headers_mut().insert(REQUEST_ID, id.expect("run ids are hexadecimal"));
        request
    }
}
