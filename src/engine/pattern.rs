//! The request that all requests of a run are: made once, and written with another number and body.

use std::io::Write;

use bytes::Bytes;
use http::{HeaderValue, Uri, header};

use crate::expand::{RunSpec, Shaping};

use super::target::Target;

/// Everything of a request but its number and its body, as it goes over the wire. It holds the key: nothing prints it.
pub(crate) struct Pattern {
    /// Of each class, up to the request's number, the last part of its `x-request-id`; of a run that is no mix there is one.
    before: Vec<Vec<u8>>,
}

impl Pattern {
    /// The requests of `spec` to `target`; `id_prefix` opens the id of each.
    pub(crate) fn new(spec: &RunSpec, target: &Target, id_prefix: &str) -> Pattern {
        let classes = spec.mix.iter().map(|class| &class.shaping);
        let of_run = spec.mix.is_empty().then_some(&spec.shaping);
        let before = classes.chain(of_run).map(|shaping| head(spec, shaping, target, id_prefix)).collect();
        Pattern { before }
    }

    /// The bytes of request `number` of a class with its body.
    pub(crate) fn request(&self, class: usize, number: u64, body: &Bytes) -> Vec<u8> {
        /// Room for the number and for the field of the length.
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

/// The head of requests of one shaping, up to their numbers.
fn head(spec: &RunSpec, shaping: &Shaping, target: &Target, id_prefix: &str) -> Vec<u8> {
    let path = spec.endpoint.api.protocol().path();
    let checked = "the parts of the address were checked when it was read";
    let uri: Uri = format!("{}{path}", target.base).parse().expect(checked);
    let accept = if shaping.stream { "text/event-stream" } else { "application/json" };
    let mut before = format!("POST {uri} HTTP/1.1\r\n").into_bytes();
    let mut field = |name: &str, value: &str| {
        // A value that could end its line is none.
        if let Ok(value) = HeaderValue::try_from(value) {
            before.extend_from_slice(name.as_bytes());
            before.extend_from_slice(b": ");
            before.extend_from_slice(value.as_bytes());
            before.extend_from_slice(b"\r\n");
        }
    };
    field(header::HOST.as_str(), &target.authority);
    field(header::CONTENT_TYPE.as_str(), "application/json");
    field(header::ACCEPT.as_str(), accept);
    field(header::USER_AGENT.as_str(), concat!("sweepline/", env!("CARGO_PKG_VERSION")));
    if let Some(key) = &target.api_key {
        field(header::AUTHORIZATION.as_str(), &format!("Bearer {}", key.reveal()));
    }
    for (name, value) in target.headers(&shaping.fields.headers) {
        field(name, value);
    }
    before.extend_from_slice(format!("x-request-id: {id_prefix}-").as_bytes());
    before
}
