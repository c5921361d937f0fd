//! Parses HTTP/1.1 responses from bytes (RFC 9112): the head by `httparse`, the framing of the body by a
//! decoder that accepts bytes split anywhere and returns pieces of its input, without a copy. Pure: no
//! sockets, no clocks.
//!
//! Our own rather than a library's, because it handles every measured token: a general client passes each
//! chunk through a channel between two tasks, which costs more than the rest of reading it (docs/ENGINE.md
//! has the figures).

mod body;
mod head;

pub(crate) use body::Body;
pub(crate) use head::Head;

/// The server does not comply with HTTP/1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(pub String);

impl Malformed {
    fn new(text: impl Into<String>) -> Malformed {
        Malformed(text.into())
    }
}
