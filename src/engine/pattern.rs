//! The common pattern of all requests of a run. It is created once, and each request is written
//! with its own number and body.

use std::io::Write;

use bytes::Bytes;
use http::{HeaderValue, Uri, header};

use crate::expand::{RunSpec, Shaping};
use crate::plan::TextOrSecret;

use super::target::Target;

/// Everything in a request except its number and its body, as sent over the wire. It holds the key, so it
/// is never printed.
pub(crate) struct Pattern {
    /// For each class, everything up to the request's number, which is the last part of its `x-request-id`;
    /// a run that is not a mix has one entry.
    before: Vec<Vec<u8>>,
}

impl Pattern {
    /// Creates the pattern of `spec` to `target`; `id_prefix` begins the id of each request.
    pub(crate) fn new(spec: &RunSpec, target: &Target, id_prefix: &str) -> Pattern {
        let classes = spec.mix.iter().map(|class| &class.shaping);
        let of_run = spec.mix.is_empty().then_some(&spec.shaping);
        let before = classes.chain(of_run).map(|shaping| head(spec, shaping, target, id_prefix)).collect();
        Pattern { before }
    }

    /// Returns the bytes of request `number` of a class with its body.
    pub(crate) fn request(&self, class: usize, number: u64, body: &Bytes) -> Vec<u8> {
        /// Room for the number and for the header field with the length.
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
    /// The value holds a secret.
    pub(crate) is_secret: bool,
}

/// Returns the fields that all requests of one shape share, for either HTTP version.
pub(crate) fn fields(shaping: &Shaping, target: &Target) -> Vec<Field> {
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
    fields.extend(
        target
            .api_key
            .iter()
            .map(|key| Field { is_secret: true, ..plain(header::AUTHORIZATION, &format!("Bearer {}", key.reveal())) }),
    );
    let headers = &shaping.fields.headers;
    let secret = |name: &str| headers.iter().any(|(of, value)| of == name && matches!(value, TextOrSecret::Secret(_)));
    fields.extend(target.headers(headers).map(|(name, value)| Field {
        name: name.to_owned(),
        value: value.to_owned(),
        is_secret: secret(name),
    }));
    fields
}

/// Returns the head of requests of one shaping, up to their numbers.
fn head(spec: &RunSpec, shaping: &Shaping, target: &Target, id_prefix: &str) -> Vec<u8> {
    let path = spec.endpoint.api.protocol().path();
    let checked = "the parts of the address were checked when it was read";
    let uri: Uri = format!("{}{path}", target.base).parse().expect(checked);
    let mut before = format!("POST {uri} HTTP/1.1\r\n").into_bytes();
    let mut field = |name: &str, value: &str| {
        // A value that contains a line break is invalid.
        if let Ok(value) = HeaderValue::try_from(value) {
            before.extend_from_slice(name.as_bytes());
            before.extend_from_slice(b": ");
            before.extend_from_slice(value.as_bytes());
            before.extend_from_slice(b"\r\n");
        }
    };
    field(header::HOST.as_str(), &target.authority);
    for Field { name, value, is_secret: _ } in fields(shaping, target) {
        field(&name, &value);
    }
    before.extend_from_slice(format!("x-request-id: {id_prefix}-").as_bytes());
    before
}
