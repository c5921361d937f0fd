//! Parses server-sent events from bytes that may be split anywhere (WHATWG HTML, section 9.2
//! "Server-sent events").
//!
//! The parser supports the features that the streams of inference servers use: `data` and `event` fields,
//! comments, LF, CRLF and CR line ends, and several data lines in one event. An event at the end of the
//! stream is accepted without the blank line after it, because some servers omit that line. Memory is
//! bounded: a line or an event larger than `MAX_EVENT` is an error.

use memchr::memchr2;

/// Size of the largest accepted event, in bytes.
pub(crate) const MAX_EVENT: usize = 16 << 20;

/// An event was larger than `MAX_EVENT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// One event, borrowed from the parser.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Event<'a> {
    /// The `event` field; empty if there is none.
    pub name: &'a [u8],
    /// The `data` lines, joined by line feeds.
    pub data: &'a [u8],
}

/// The parser of one stream.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    /// The beginning of a line whose end has not arrived yet.
    line: Vec<u8>,
    /// Data lines of the current event so far, joined by line feeds.
    data: Vec<u8>,
    has_data: bool,
    name: Vec<u8>,
    /// Whether the last byte was a CR. If an LF follows, it belongs to the same line end.
    after_cr: bool,
    started: bool,
    /// Whether `data` and `name` belong to an event that was already returned.
    handed_out: bool,
}

impl Parser {
    /// Creates a parser at the start of a stream.
    pub(crate) fn new() -> Parser {
        Parser::default()
    }

    /// Returns the next event in `bytes`, and advances `bytes` to the bytes after it. Returns `None` if all
    /// bytes are consumed; an incomplete event is then kept until more bytes arrive.
    pub(crate) fn next<'a, 'b: 'a>(&'a mut self, bytes: &mut &'b [u8]) -> Result<Option<Event<'a>>, TooLarge> {
        self.release();
        if let Some((data, rest)) = self.whole(bytes) {
            *bytes = rest;
            return Ok(Some(Event { name: &[], data }));
        }
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                *bytes = &bytes[1..];
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', bytes) else {
                let kept = self.keep(bytes);
                *bytes = &[];
                return kept.map(|()| None);
            };
            self.after_cr = bytes[end] == b'\r';
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            *bytes = rest;
            if self.end_line(line)? {
                return Ok(Some(Event { name: &self.name, data: &self.data }));
            }
        }
        Ok(None)
    }

    /// Ends the stream. Returns the last event if no blank line followed it.
    pub(crate) fn finish(&mut self) -> Result<Option<Event<'_>>, TooLarge> {
        self.release();
        if !self.line.is_empty() {
            self.end_line(&[])?;
        }
        Ok(self.dispatch().then_some(Event { name: &self.name, data: &self.data }))
    }

    /// Parses the form that nearly all events have, without copying. Returns the event's data and the bytes
    /// after the event if `bytes` begin with one data line followed by a blank line, and no earlier bytes
    /// are kept; otherwise `None`.
    fn whole<'a>(&self, bytes: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        if !self.started || self.after_cr || self.has_data || !self.line.is_empty() || !self.name.is_empty() {
            return None;
        }
        let value = bytes.strip_prefix(b"data:")?;
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let (data, rest) = value.split_at(memchr2(b'\n', b'\r', value)?);
        let rest = rest.strip_prefix(b"\n\n").or_else(|| rest.strip_prefix(b"\r\n\r\n"))?;
        (data.len() <= MAX_EVENT).then_some((data, rest))
    }

    /// Discards the event that was returned last.
    fn release(&mut self) {
        if std::mem::take(&mut self.handed_out) {
            self.data.clear();
            self.name.clear();
        }
    }

    /// Completes the kept line with `end` and processes it. Returns true if this completed an event.
    fn end_line(&mut self, end: &[u8]) -> Result<bool, TooLarge> {
        if self.line.is_empty() {
            return self.take_line(end);
        }
        self.keep(end)?;
        let whole = std::mem::take(&mut self.line);
        let closed = self.take_line(&whole);
        self.line = whole;
        self.line.clear();
        closed
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        if self.line.len() + bytes.len() > MAX_EVENT {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn take_line(&mut self, line: &[u8]) -> Result<bool, TooLarge> {
        let line = match std::mem::replace(&mut self.started, true) {
            false => line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line),
            true => line,
        };
        if line.is_empty() {
            return Ok(self.dispatch());
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], line[colon + 1..].strip_prefix(b" ").unwrap_or(&line[colon + 1..])),
            None => (line, &[][..]),
        };
        match field {
            b"data" => self.add_data(value)?,
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            // Ignores comments (with an empty field name), `id`, `retry`, and all fields that must be ignored
            // according to the standard.
            _ => {}
        }
        Ok(false)
    }

    fn add_data(&mut self, value: &[u8]) -> Result<(), TooLarge> {
        if self.data.len() + value.len() > MAX_EVENT {
            return Err(TooLarge);
        }
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        Ok(())
    }

    /// Handles a blank line or the end of the stream. Returns whether this completed an event, which
    /// requires at least one data line.
    fn dispatch(&mut self) -> bool {
        if !std::mem::take(&mut self.has_data) {
            self.name.clear();
            return false;
        }
        self.handed_out = true;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events(chunks: &[&[u8]]) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut keep = |event: Event| found.push((text(event.name), text(event.data)));
        let mut parser = Parser::new();
        for mut chunk in chunks.iter().copied() {
            while let Some(event) = parser.next(&mut chunk).unwrap() {
                keep(event);
            }
            assert!(chunk.is_empty());
        }
        if let Some(event) = parser.finish().unwrap() {
            keep(event);
        }
        found
    }

    fn plain(data: &[&str]) -> Vec<(String, String)> {
        data.iter().map(|data| (String::new(), data.to_string())).collect()
    }

    #[test]
    fn line_ends_comments_and_several_data_lines() {
        assert_eq!(events(&[b": ping\n\ndata: a\n\ndata:b\r\n\r\ndata: c\r\r"]), plain(&["a", "b", "c"]));
        assert_eq!(events(&[b"data: a\ndata: b\n\n"]), plain(&["a\nb"]));
        assert_eq!(events(&[b"data: last"]), plain(&["last"]));
        assert_eq!(events(&[b"data: a\r", b"\n\r", b"\ndata: b\n\n"]), plain(&["a", "b"]));
        assert_eq!(events(&[b"event: error\ndata: x\n\n"]), [("error".into(), "x".into())]);
        assert_eq!(events(&[b"\xEF\xBB\xBFdata: a\n\n"]), plain(&["a"]));
        assert_eq!(events(&[b"data\n\n"]), plain(&[""]));
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut parser = Parser::new();
        let chunk = vec![b'x'; 1 << 20];
        let refused = (0..17).any(|_| parser.next(&mut &chunk[..]) == Err(TooLarge));
        assert!(refused);
    }

    proptest! {
        /// However the bytes are split, the events are the same.
        #[test]
        fn cuts_change_nothing(
            lines in proptest::collection::vec("(data: ?[a-z{}\"µ:]{0,12}|: ping|event: e|)", 0..30),
            ends in proptest::collection::vec(0..3usize, 30),
            cuts in proptest::collection::vec(1..9usize, 0..200),
        ) {
            let mut bytes = Vec::new();
            for (line, end) in lines.iter().zip(&ends) {
                bytes.extend_from_slice(line.as_bytes());
                bytes.extend_from_slice([&b"\n"[..], b"\r\n", b"\r"][*end]);
            }
            let mut chunks = Vec::new();
            let mut rest = &bytes[..];
            for cut in cuts {
                let (chunk, tail) = rest.split_at(cut.min(rest.len()));
                chunks.push(chunk);
                rest = tail;
            }
            chunks.push(rest);
            prop_assert_eq!(events(&chunks), events(&[&bytes]));
        }
    }
}
