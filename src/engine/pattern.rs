//! The parts that all HTTP/1.1 requests of a run have in common. They are encoded once; each request adds
//! its own number and body.

use std::io::Write;

use bytes::Bytes;
use http::{HeaderValue, header};

use crate::expand::{RunSpec, Shaping};
use crate::plan::{Api, TextOrSecret};
use crate::protocol::RequestHeader;

use super::target::{Secret, Target};

/// The encoded bytes of a request except its number and its body. They contain the API key, so they must
/// never be printed.
pub(crate) struct Pattern {
    /// For each class, the bytes up to the request's number, which ends the `x-request-id` field; a run
    /// that is not a mix has one entry.
    before: Vec<Vec<u8>>,
}

impl Pattern {
    /// Creates the pattern of requests to `target` as `spec` defines them. The id of each request begins
    /// with `id_prefix`.
    pub(crate) fn new(spec: &RunSpec, target: &Target, id_prefix: &str) -> Pattern {
        let classes = spec.mix.iter().map(|class| &class.shaping);
        let of_run = spec.mix.is_empty().then_some(&spec.shaping);
        let before = classes.chain(of_run).map(|shaping| head(spec, shaping, target, id_prefix)).collect();
        Pattern { before }
    }

    /// Returns the bytes of a request: request `number` of the run, of class `class`, with its body.
    pub(crate) fn request(&self, class: usize, number: u64, body: &Bytes) -> Vec<u8> {
        /// Bytes reserved for the number and for the `content-length` field.
        const REST: usize = 80;
        let before = &self.before[class];
        let mut bytes = Vec::with_capacity(before.len() + REST + body.len());
        bytes.extend_from_slice(before);
        // Writing to a Vec cannot fail.
        let _ = write!(bytes, "{number}\r\ncontent-length: {}\r\n\r\n", body.len());
        bytes.extend_from_slice(body);
        bytes
    }
}

/// One field of a request's head.
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) value: String,
    /// Whether the value contains a secret.
    pub(crate) is_secret: bool,
}

/// Returns the header fields that all requests of one class share, for either HTTP version.
pub(crate) fn fields(api: Api, shaping: &Shaping, target: &Target) -> Vec<Field> {
    let accept = if shaping.stream { "text/event-stream" } else { "application/json" };
    let plain = |name: header::HeaderName, value: &str| Field {
        name: name.as_str().to_owned(),
        value: value.to_owned(),
        is_secret: false,
    };
    let mut fields = vec![
        plain(header::CONTENT_TYPE, "application/json"),
        plain(header::ACCEPT, accept),
        plain(header::USER_AGENT, concat!("sweepline/", env!("CARGO_PKG_VERSION"))),
    ];
    let key = target.api_key.as_ref().map(Secret::reveal);
    for RequestHeader { name, value, is_secret } in api.protocol().headers(key) {
        fields.push(Field { name: name.to_owned(), value, is_secret });
    }
    let headers = &shaping.fields.headers;
    let secret = |name: &str| headers.iter().any(|(of, value)| of == name && matches!(value, TextOrSecret::Secret(_)));
    fields.extend(target.headers(headers).map(|(name, value)| Field {
        name: name.to_owned(),
        value: value.to_owned(),
        is_secret: secret(name),
    }));
    fields
}

/// Returns the bytes of a request's head up to the request's number, for one class.
fn head(spec: &RunSpec, shaping: &Shaping, target: &Target, id_prefix: &str) -> Vec<u8> {
    let path = spec.endpoint.api.protocol().path();
    let request_target = target.route.request_target(&target.route.address().of_api(path));
    let mut before = format!("POST {request_target} HTTP/1.1\r\n").into_bytes();
    let mut field = |name: &str, value: &str| {
        // Invalid values, for example with a line break, are omitted.
        if let Ok(value) = HeaderValue::try_from(value) {
            before.extend_from_slice(name.as_bytes());
            before.extend_from_slice(b": ");
            before.extend_from_slice(value.as_bytes());
            before.extend_from_slice(b"\r\n");
        }
    };
    field(header::HOST.as_str(), target.authority());
    for Field { name, value, is_secret: _ } in fields(spec.endpoint.api, shaping, target) {
        field(&name, &value);
    }
    if let Some(value) = target.route.forwarding_proxy(false).and_then(|proxy| proxy.authorization()) {
        field(header::PROXY_AUTHORIZATION.as_str(), value);
    }
    before.extend_from_slice(format!("x-request-id: {id_prefix}-").as_bytes());
    before
}
