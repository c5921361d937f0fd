//! The request that all requests of a run are: made once, and written with another number and body.

use std::io::Write;

use bytes::Bytes;
use http::{HeaderValue, Uri, header};

use crate::expand::RunSpec;

use super::target::Target;

/// Everything of a request but its number and its body, as it goes over the wire. It holds the key: nothing prints it.
pub struct Pattern {
    /// Up to the request's number, the last part of its `x-request-id`.
    before: Vec<u8>,
}

impl Pattern {
    /// The requests of `spec` to `target`; `id_prefix` opens the id of each.
    pub fn new(spec: &RunSpec, target: &Target, id_prefix: &str) -> Pattern {
        let path = spec.endpoint.api.protocol().path();
        let checked = "the parts of the address were checked when it was read";
        let uri: Uri = format!("{}{path}", target.base).parse().expect(checked);
        let accept = if spec.shaping.stream { "text/event-stream" } else { "application/json" };
        let mut before = format!("POST {uri} HTTP/1.1\r\n").into_bytes();
        let mut field = |name: header::HeaderName, value: &str| {
            // A value that could end its line is none.
            if let Ok(value) = HeaderValue::try_from(value) {
                before.extend_from_slice(name.as_str().as_bytes());
                before.extend_from_slice(b": ");
                before.extend_from_slice(value.as_bytes());
                before.extend_from_slice(b"\r\n");
            }
        };
        field(header::HOST, &target.authority);
        field(header::CONTENT_TYPE, "application/json");
        field(header::ACCEPT, accept);
        field(header::USER_AGENT, concat!("sweepline/", env!("CARGO_PKG_VERSION")));
        if let Some(key) = &target.api_key {
            field(header::AUTHORIZATION, &format!("Bearer {}", key.reveal()));
        }
        before.extend_from_slice(format!("x-request-id: {id_prefix}-").as_bytes());
        Pattern { before }
    }

    /// The bytes of request `number` with its body.
    pub fn request(&self, number: u64, body: &Bytes) -> Vec<u8> {
        /// Room for the number and for the field of the length.
        const REST: usize = 80;
        let mut bytes = Vec::with_capacity(self.before.len() + REST + body.len());
        bytes.extend_from_slice(&self.before);
        // Writing to a Vec cannot fail.
        let _ = write!(bytes, "{number}\r\ncontent-length: {}\r\n\r\n", body.len());
        bytes.extend_from_slice(body);
        bytes
    }
}
