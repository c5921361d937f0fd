//! Parses HTTP/1.1 responses from bytes (RFC 9112). `httparse` parses the head. The framing of the body is
//! parsed by a decoder that accepts bytes split anywhere and passes on pieces of its input without copying
//! them. The module uses no sockets and no clocks.
//!
//! This is our own code, not a library, because it handles every measured token. A general-purpose client
//! passes each chunk through a channel between two tasks, which takes longer than all other steps of
//! reading the chunk together (docs/ENGINE.md has the figures).

mod body;
mod head;

pub(crate) use body::Body;
pub(crate) use head::Head;

/// The error for a response that does not comply with HTTP/1; contains the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(pub String);

impl Malformed {
    fn new(text: impl Into<String>) -> Malformed {
        Malformed(text.into())
    }
}
