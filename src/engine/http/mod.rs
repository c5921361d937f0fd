//! HTTP/1.1 answers out of bytes (RFC 9112): the head by `httparse`, the body's framing by a decoder that takes bytes cut
//! anywhere and hands out pieces of what it was given, without a copy. Pure: no sockets, no clocks.
//!
//! Ours and not a library's, because it is in every measured token: a general client hands each chunk through a channel
//! between two tasks, which costs more than the rest of reading it (docs/ENGINE.md has the figures).

mod body;
mod head;

pub(crate) use body::Body;
pub(crate) use head::Head;

/// The server does not speak HTTP/1 as it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(pub String);

impl Malformed {
    fn new(text: impl Into<String>) -> Malformed {
        Malformed(text.into())
    }
}
