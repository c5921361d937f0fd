//! The body of a response that should be an event stream and is something else: a whole response, an error, a page, or
//! lines of JSON.

/// Maximum size of the kept beginning of such a body, in bytes. Whole responses are smaller.
const MOST_BYTES: usize = 1 << 20;
/// How the lines of an event stream begin.
const FIELDS: [&[u8]; 5] = [b"data", b"event", b":", b"id", b"retry"];
/// The first bytes of data that gzip has compressed (RFC 1952, 2.3.1).
const GZIP: &[u8] = &[0x1f, 0x8b];

/// Decides from the first bytes of a body whether it is an event stream, and keeps it if it is not.
#[derive(Debug)]
pub(crate) struct OtherBody {
    /// The content type or encoding that is not that of an event stream; `None` if there is none.
    kind: Option<Box<str>>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Nothing but line ends and spaces has arrived.
    Undecided,
    /// The body is an event stream.
    Events,
    /// The body is something else.
    Other(Vec<u8>),
}

impl OtherBody {
    /// Creates the state of a body of which nothing has arrived. `kind` is the content type or encoding, unless it is
    /// that of an event stream.
    pub(crate) fn new(kind: Option<&str>) -> OtherBody {
        OtherBody { kind: kind.map(Into::into), state: State::Undecided }
    }

    /// Takes the next bytes of the body. Returns false if they belong to an event stream.
    #[inline]
    pub(crate) fn takes(&mut self, bytes: &[u8]) -> bool {
        !matches!(self.state, State::Events) && self.takes_first_or_other(bytes)
    }

    /// Like [`OtherBody::takes`]. It is a function of its own because it is rarely called.
    #[cold]
    fn takes_first_or_other(&mut self, bytes: &[u8]) -> bool {
        if let State::Undecided = self.state {
            self.state = match first_line(bytes) {
                [] => return false,
                start if is_other(start, self.kind.is_some()) => State::Other(Vec::new()),
                _ => State::Events,
            };
        }
        let State::Other(kept) = &mut self.state else { return false };
        let room = MOST_BYTES.saturating_sub(kept.len());
        kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        true
    }

    /// Returns the body and its kind if it is not an event stream.
    pub(crate) fn body(&self) -> Option<(&[u8], String)> {
        let State::Other(kept) = &self.state else { return None };
        let kind = match &self.kind {
            Some(kind) => kind.to_string(),
            None if kept.starts_with(GZIP) => "compressed with gzip".to_owned(),
            None => "without a content type, or with that of an event stream".to_owned(),
        };
        Some((kept, kind))
    }
}

/// Returns the bytes from the first that is neither a byte order mark nor white space.
fn first_line(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes).trim_ascii_start()
}

/// Whether a body that begins like this is not an event stream. Some servers send event streams with another content
/// type, and some send JSON or a page with the content type of an event stream.
fn is_other(start: &[u8], has_other_kind: bool) -> bool {
    let is_field = FIELDS.iter().any(|field| start.starts_with(field) || field.starts_with(start));
    let is_known = matches!(start.first(), Some(b'{' | b'[' | b'<')) || start.starts_with(GZIP);
    !is_field && (is_known || has_other_kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_other(kind: Option<&str>, bytes: &[u8]) -> bool {
        OtherBody::new(kind).takes(bytes)
    }

    #[test]
    fn the_first_bytes_decide() {
        assert!(!is_other(None, b"data: {}\n\n") && !is_other(Some("application/json"), b"\n\ndata: {}\n\n"));
        assert!(!is_other(None, b"d") && !is_other(None, b": comment") && !is_other(None, b"unknown: field"));
        assert!(is_other(None, b"{\"error\":1}") && is_other(None, b"<html>") && is_other(None, b"\x1f\x8b\x08"));
        assert!(is_other(Some("text/plain"), b"no capacity"));
        let mut body = OtherBody::new(Some("text/html"));
        assert!(!body.takes(b"\r\n") && body.takes(b"<p>") && body.takes(b"data: "));
        assert_eq!(body.body(), Some((&b"<p>data: "[..], "text/html".to_owned())));
    }
}
