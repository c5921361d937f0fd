//! Writes to the socket: frames the body, combines small writes and, if configured, splits writes at
//! arbitrary places.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::config::{Config, Cut};
use super::conn::{Conn, Gone};
use super::random::random;
use super::timer::now;

/// Number of bytes that are collected before a write if there is no wait between tokens. This is large
/// enough to make system calls cheap, and small enough to stay in the processor's caches.
const COALESCE: usize = 32 << 10;

/// The largest piece of a random split, in bytes. It is shorter than any event, but longer than a
/// character.
const LARGEST_CUT: usize = 32;

/// How the end of a body is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// By chunked transfer encoding.
    Chunked,
    /// By Content-Length or by the end of the connection.
    Plain,
}

/// The bytes of one response that are to be sent to the client.
pub(super) struct Wire {
    pending: Vec<u8>,
    framing: Framing,
    chunk_bytes: Option<usize>,
    /// Ends of the HTTP chunks in `pending`; only used if `chunk_bytes` is set.
    borders: Vec<usize>,
    cut: Option<ChaCha8Rng>,
    pause: u64,
    writes: u32,
}

impl Wire {
    /// Creates an empty buffer for the bytes of response `number`.
    pub(super) fn new(config: &Config, framing: Framing, number: u64) -> Wire {
        Wire {
            pending: Vec::new(),
            framing,
            chunk_bytes: config.chunk_bytes.map(|bytes| bytes as usize),
            borders: Vec::new(),
            cut: (config.cut == Cut::Random).then(|| random(config.seed, b"cut ", number)),
            pause: config.cut_pause.0,
            writes: 0,
        }
    }

    /// Appends bytes that precede the body.
    pub(super) fn head(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        self.border();
    }

    /// Appends bytes of the body that belong together. They become one chunk, unless chunks have a fixed
    /// size.
    pub(super) fn body(&mut self, parts: &[&[u8]]) {
        match self.chunk_bytes {
            None => self.chunk(parts),
            Some(size) => {
                for piece in parts.concat().chunks(size) {
                    self.chunk(&[piece]);
                    self.border();
                }
            }
        }
    }

    /// Ends the body.
    pub(super) fn end(&mut self) {
        if self.framing == Framing::Chunked {
            self.pending.extend_from_slice(b"0\r\n\r\n");
            self.border();
        }
    }

    /// Whether enough bytes are collected for a write.
    pub(super) fn full(&self) -> bool {
        self.pending.len() >= COALESCE
    }

    /// Writes pending bytes.
    pub(super) async fn flush(&mut self, conn: &mut Conn) -> Result<(), Gone> {
        if self.cut.is_none() && self.borders.is_empty() {
            conn.write(&self.pending).await?;
        } else {
            self.flush_in_pieces(conn).await?;
        }
        self.pending.clear();
        self.borders.clear();
        self.writes += 1;
        // A stream that never waits must not prevent others from running.
        if self.writes.is_multiple_of(16) {
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    async fn flush_in_pieces(&mut self, conn: &mut Conn) -> Result<(), Gone> {
        let mut start = 0;
        while start < self.pending.len() {
            let end = match &mut self.cut {
                Some(random) => start + random.random_range(1..=LARGEST_CUT),
                None => self.borders.iter().copied().find(|border| *border > start).unwrap_or(usize::MAX),
            };
            let end = end.min(self.pending.len());
            conn.write(&self.pending[start..end]).await?;
            start = end;
            if self.pause > 0 && start < self.pending.len() {
                conn.wait_until(now() + self.pause).await?;
            }
        }
        Ok(())
    }

    fn chunk(&mut self, parts: &[&[u8]]) {
        let chunked = self.framing == Framing::Chunked;
        if chunked {
            push_hex(&mut self.pending, parts.iter().map(|part| part.len()).sum());
            self.pending.extend_from_slice(b"\r\n");
        }
        for part in parts {
            self.pending.extend_from_slice(part);
        }
        if chunked {
            self.pending.extend_from_slice(b"\r\n");
        }
    }

    fn border(&mut self) {
        if self.chunk_bytes.is_some() {
            self.borders.push(self.pending.len());
        }
    }
}

/// Appends a number as hexadecimal digits without leading zeros. `write!` is avoided because this runs for
/// every token.
fn push_hex(bytes: &mut Vec<u8>, number: usize) {
    let digits = (usize::BITS - number.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        bytes.push(b"0123456789abcdef"[(number >> (4 * digit)) & 15]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_has_no_leading_zeros() {
        for number in [0, 1, 15, 16, 255, 256, 4095, 65_536, usize::MAX] {
            let mut bytes = Vec::new();
            push_hex(&mut bytes, number);
            assert_eq!(String::from_utf8(bytes).unwrap(), format!("{number:x}"));
        }
    }

    #[test]
    fn chunks_are_one_per_event_or_of_a_size() {
        let mut wire = Wire::new(&Config::default(), Framing::Chunked, 1);
        wire.body(&[b"da", b"ta"]);
        wire.end();
        assert_eq!(wire.pending, b"4\r\ndata\r\n0\r\n\r\n");
        let mut wire = Wire::new(&Config { chunk_bytes: Some(3), ..Config::default() }, Framing::Chunked, 1);
        wire.body(&[b"da", b"ta"]);
        assert_eq!(wire.pending, b"3\r\ndat\r\n1\r\na\r\n");
        assert_eq!(wire.borders, [8, 14]);
        let mut wire = Wire::new(&Config::default(), Framing::Plain, 1);
        wire.body(&[b"da", b"ta"]);
        wire.end();
        assert_eq!(wire.pending, b"data");
    }
}
