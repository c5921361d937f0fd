//! Parses HTTP/1.1 responses from bytes (RFC 9112). `httparse` parses the head. The framing of the body
//! is parsed by a decoder that accepts bytes split anywhere and returns pieces of its input without a
//! copy. Pure: no sockets, no clocks.
//!
//! This is our own code rather than a library's, because it handles every measured token. A general client
//! passes each chunk through a channel between two tasks, which costs more than all other steps of reading
//! the chunk (docs/ENGINE.md has the figures).

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
