//! Finds where the body of a response ends, and which of the received bytes belong to it.

use super::Malformed;

/// Maximum total size of the chunk extensions and trailers in one body, in bytes. They contain nothing that
/// is measured.
const MAX_ASIDE: usize = 64 << 10;

/// A body that is being received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Body {
    framing: Framing,
    /// Bytes of chunk extensions and trailers so far.
    aside: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// The length is known; this many bytes have not arrived yet.
    Length(u64),
    /// The body ends when the connection closes.
    UntilClose,
    /// The body has chunked transfer encoding; contains the position within its chunks.
    Chunked(Chunk),
    /// The body is complete.
    Ended,
}

/// The position of the parser within the chunks of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chunk {
    /// In the digits of a chunk's size.
    Size { size: u64, digits: u8 },
    /// After the digits of the size, before the end of the line.
    Extension { size: u64 },
    /// In the data of a chunk; this many bytes of it have not arrived yet.
    Data(u64),
    /// After the data of a chunk, before the line end that follows it.
    DataEnd { cr: bool },
    /// In the trailer lines after the last chunk; `empty` is true while the current line is empty.
    Trailer { empty: bool },
}

/// The result of processing some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fed {
    /// Number of the bytes that belong to the response.
    pub taken: usize,
    /// Whether the body is complete now.
    pub ended: bool,
}

impl Body {
    /// Creates an empty body, which is already complete.
    pub(crate) fn empty() -> Body {
        Body::of(Framing::Ended)
    }

    /// Creates a body of `length` bytes.
    pub(crate) fn of_length(length: u64) -> Body {
        Body::of(if length == 0 { Framing::Ended } else { Framing::Length(length) })
    }

    /// Creates a body with chunked transfer encoding.
    pub(crate) fn chunked() -> Body {
        Body::of(Framing::Chunked(Chunk::Size { size: 0, digits: 0 }))
    }

    /// Creates a body that ends when the connection closes.
    pub(crate) fn until_close() -> Body {
        Body::of(Framing::UntilClose)
    }

    fn of(framing: Framing) -> Body {
        Body { framing, aside: 0 }
    }

    /// Whether the body ends only when the connection closes.
    pub(crate) fn ends_with_connection(&self) -> bool {
        self.framing == Framing::UntilClose
    }

    /// Whether the body is complete.
    pub(crate) fn has_ended(&self) -> bool {
        self.framing == Framing::Ended
    }

    /// Processes the next received bytes and passes every piece of data to `on_data`; stops if `on_data`
    /// returns an error.
    pub(crate) fn feed<E: From<Malformed>>(
        &mut self,
        bytes: &[u8],
        mut on_data: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Fed, E> {
        let mut rest = bytes;
        while !rest.is_empty() && !self.has_ended() {
            match &mut self.framing {
                Framing::Ended => {}
                Framing::UntilClose => on_data(std::mem::take(&mut rest))?,
                Framing::Length(left) | Framing::Chunked(Chunk::Data(left)) => {
                    let here = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    let (data, behind) = rest.split_at(here);
                    *left -= here as u64;
                    rest = behind;
                    if *left == 0 {
                        self.framing = match self.framing {
                            Framing::Chunked(_) => Framing::Chunked(Chunk::DataEnd { cr: false }),
                            _ => Framing::Ended,
                        };
                    }
                    on_data(data)?;
                }
                Framing::Chunked(chunk) => {
                    if let Some((next, behind)) = chunk.line(rest) {
                        (self.framing, rest) = (Framing::Chunked(next), behind);
                        continue;
                    }
                    let (byte, behind) = (rest[0], &rest[1..]);
                    rest = behind;
                    let (next, aside) = chunk.take(byte)?;
                    self.aside += usize::from(aside);
                    if self.aside > MAX_ASIDE {
                        return Err(Malformed::new("more than 64 KiB of chunk extensions and trailers").into());
                    }
                    self.framing = next.map_or(Framing::Ended, Framing::Chunked);
                }
            }
        }
        Ok(Fed { taken: bytes.len() - rest.len(), ended: self.has_ended() })
    }
}

impl Chunk {
    /// Processes everything between the data of two chunks at once, if it has the form that nearly all
    /// servers use: a line end, the digits of the next chunk's size, and another line end. Returns `None`
    /// if it must be processed byte by byte.
    fn line(self, bytes: &[u8]) -> Option<(Chunk, &[u8])> {
        let bytes = match self {
            Chunk::DataEnd { cr: false } => bytes.strip_prefix(b"\r\n")?,
            Chunk::Size { digits: 0, .. } => bytes,
            _ => return None,
        };
        let (mut size, mut digits) = (0, 0);
        for byte in bytes.iter().take(8) {
            let Some(digit) = char::from(*byte).to_digit(16) else { break };
            (size, digits) = (size << 4 | u64::from(digit), digits + 1);
        }
        let rest = bytes[digits..].strip_prefix(b"\r\n")?;
        (digits > 0 && size > 0).then_some((Chunk::Data(size), rest))
    }

    /// Processes one byte that is not data. Returns the next position, which is `None` if the body is
    /// complete, and whether the byte is part of an extension or a trailer.
    fn take(self, byte: u8) -> Result<(Option<Chunk>, bool), Malformed> {
        Ok(match self {
            Chunk::Size { size, digits } => (Some(Chunk::size(size, digits, byte)?), false),
            Chunk::Extension { size } => (Some(Chunk::extension(size, byte)), !is_line_end(byte)),
            Chunk::DataEnd { cr } => match (byte, cr) {
                (b'\r', false) => (Some(Chunk::DataEnd { cr: true }), false),
                (b'\n', _) => (Some(Chunk::Size { size: 0, digits: 0 }), false),
                _ => return Err(Malformed::new("a chunk is longer than its stated size")),
            },
            Chunk::Trailer { empty } => match byte {
                b'\r' => (Some(self), false),
                b'\n' if empty => (None, false),
                b'\n' => (Some(Chunk::Trailer { empty: true }), false),
                _ => (Some(Chunk::Trailer { empty: false }), true),
            },
            Chunk::Data(_) => unreachable!("data is processed in pieces"),
        })
    }

    fn size(size: u64, digits: u8, byte: u8) -> Result<Chunk, Malformed> {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            b'\r' | b'\n' | b';' | b' ' | b'\t' if digits > 0 => return Ok(Chunk::extension(size, byte)),
            _ => return Err(Malformed::new(format!("a chunk's size has the byte {byte:#04x}"))),
        };
        if digits >= 15 {
            return Err(Malformed::new("a chunk's size has more than 15 digits"));
        }
        Ok(Chunk::Size { size: size << 4 | u64::from(digit), digits: digits + 1 })
    }

    fn extension(size: u64, byte: u8) -> Chunk {
        match (byte, size) {
            (b'\n', 0) => Chunk::Trailer { empty: true },
            (b'\n', size) => Chunk::Data(size),
            _ => Chunk::Extension { size },
        }
    }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the data, the number of bytes taken, and whether the body ended; the result does not
    /// depend on how the bytes are split.
    fn fed(mut body: Body, bytes: &[u8], cuts: &[usize]) -> Result<(Vec<u8>, usize, bool), Malformed> {
        let (mut data, mut taken, mut rest) = (Vec::new(), 0, bytes);
        for cut in cuts.iter().copied().chain([usize::MAX]) {
            let (piece, behind) = rest.split_at(cut.min(rest.len()));
            rest = behind;
            let fed = body.feed(piece, |bytes| {
                data.extend_from_slice(bytes);
                Ok::<(), Malformed>(())
            })?;
            taken += fed.taken;
            if fed.ended {
                break;
            }
        }
        Ok((data, taken, body.has_ended()))
    }

    #[test]
    fn every_framing() {
        assert_eq!(fed(Body::of_length(3), b"abcd", &[]), Ok((b"abc".to_vec(), 3, true)));
        assert_eq!(fed(Body::of_length(0), b"abcd", &[]), Ok((vec![], 0, true)));
        assert_eq!(fed(Body::until_close(), b"abcd", &[]), Ok((b"abcd".to_vec(), 4, false)));
        let chunks = b"3\r\nabc\r\n1;x=\"y\"\r\nd\r\n0\r\nexpires: never\r\n\r\nHTTP";
        assert_eq!(fed(Body::chunked(), chunks, &[]), Ok((b"abcd".to_vec(), chunks.len() - 4, true)));
        assert_eq!(fed(Body::chunked(), b"3\nabc\n0\n\n", &[]), Ok((b"abc".to_vec(), 9, true)));
        assert_eq!(fed(Body::chunked(), b"3\r\nab", &[]), Ok((b"ab".to_vec(), 5, false)));
    }

    #[test]
    fn chunks_that_are_none() {
        for bytes in [&b"x\r\n"[..], b"\r\n", b"3\r\nabcd\r\n", b"10000000000000000\r\n", b"-1\r\n"] {
            assert!(fed(Body::chunked(), bytes, &[]).is_err(), "{}", String::from_utf8_lossy(bytes));
        }
        let endless = [b"0\r\n".to_vec(), vec![b'x'; MAX_ASIDE + 1]].concat();
        assert!(fed(Body::chunked(), &endless, &[]).is_err(), "trailers are bounded");
        let many = [b"1\r\nx\r\n".repeat(MAX_ASIDE), b"0\r\n\r\n".to_vec()].concat();
        assert_eq!(fed(Body::chunked(), &many, &[]).map(|(data, ..)| data.len()), Ok(MAX_ASIDE), "chunks are not");
    }

    proptest! {
        /// Chunked data is returned unchanged, however the wire splits it.
        #[test]
        fn chunks_come_out_as_they_went_in(
            chunks in prop::collection::vec((prop::collection::vec(any::<u8>(), 1..40), "(;[a-z=]{0,5})?"), 0..12),
            cuts in prop::collection::vec(1..7usize, 0..300),
        ) {
            let mut wire = Vec::new();
            for (data, extension) in &chunks {
                wire.extend_from_slice(format!("{:x}{extension}\r\n", data.len()).as_bytes());
                wire.extend_from_slice(data);
                wire.extend_from_slice(b"\r\n");
            }
            wire.extend_from_slice(b"0\r\n\r\n");
            let data: Vec<u8> = chunks.iter().flat_map(|(data, _)| data.clone()).collect();
            prop_assert_eq!(fed(Body::chunked(), &wire, &cuts), Ok((data, wire.len(), true)));
        }

        /// No input makes the decoder panic.
        #[test]
        fn anything_is_taken_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = fed(Body::chunked(), &bytes, &[3, 5, 1]);
        }
    }
}
