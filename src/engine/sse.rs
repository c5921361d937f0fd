//! Server-sent events out of bytes that may be cut anywhere (WHATWG HTML, section 9.2 "Server-sent events").
//!
//! Kept to what such streams use: `data` and `event` fields, comments, LF, CRLF and CR line ends, several data lines in
//! one event. An event at the end of the stream counts even where the blank line behind it is missing: real servers
//! leave it out. Bounded: a line or an event beyond `MAX_EVENT` is an error, whatever the server sends.

use memchr::memchr2;

/// The largest event that is taken, in bytes.
pub const MAX_EVENT: usize = 16 << 20;

/// An event was larger than `MAX_EVENT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge;

/// One event, borrowed from the parser.
#[derive(Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The `event` field; empty for none.
    pub name: &'a [u8],
    /// The `data` lines, joined by line feeds.
    pub data: &'a [u8],
}

/// The parser of one stream.
#[derive(Debug, Default)]
pub struct Parser {
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    /// Data lines of the event so far, joined.
    data: Vec<u8>,
    has_data: bool,
    name: Vec<u8>,
    /// The last byte was a CR: a LF that follows belongs to it.
    after_cr: bool,
    started: bool,
}

impl Parser {
    /// A parser at the start of a stream.
    pub fn new() -> Parser {
        Parser::default()
    }

    /// Takes the next bytes and hands every event that they complete to `on_event`, until that says stop (false).
    pub fn feed(&mut self, mut bytes: &[u8], on_event: &mut dyn FnMut(Event) -> bool) -> Result<(), TooLarge> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', bytes) else {
                return self.keep(bytes);
            };
            self.after_cr = bytes[end] == b'\r';
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            bytes = rest;
            let goes_on = if self.line.is_empty() {
                self.take_line(line, on_event)?
            } else {
                self.keep(line)?;
                let whole = std::mem::take(&mut self.line);
                let goes_on = self.take_line(&whole, on_event);
                self.line = whole;
                self.line.clear();
                goes_on?
            };
            if !goes_on {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The stream has ended: hands over the event that no blank line closed, if there is one.
    pub fn finish(&mut self, on_event: &mut dyn FnMut(Event) -> bool) -> Result<(), TooLarge> {
        if !self.line.is_empty() {
            let whole = std::mem::take(&mut self.line);
            if !self.take_line(&whole, on_event)? {
                return Ok(());
            }
        }
        self.dispatch(on_event);
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        if self.line.len() + bytes.len() > MAX_EVENT {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn take_line(&mut self, line: &[u8], on_event: &mut dyn FnMut(Event) -> bool) -> Result<bool, TooLarge> {
        let line = match std::mem::replace(&mut self.started, true) {
            false => line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line),
            true => line,
        };
        if line.is_empty() {
            return Ok(self.dispatch(on_event));
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], line[colon + 1..].strip_prefix(b" ").unwrap_or(&line[colon + 1..])),
            None => (line, &[][..]),
        };
        match field {
            b"data" => self.add_data(value)?,
            b"event" => self.name = value.to_vec(),
            // A comment (empty field), `id`, `retry`, or what the standard tells us to ignore.
            _ => {}
        }
        Ok(true)
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

    fn dispatch(&mut self, on_event: &mut dyn FnMut(Event) -> bool) -> bool {
        let goes_on = !std::mem::take(&mut self.has_data) || on_event(Event { name: &self.name, data: &self.data });
        self.data.clear();
        self.name.clear();
        goes_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events(chunks: &[&[u8]]) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut keep = |event: Event| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            found.push((text(event.name), text(event.data)));
            true
        };
        let mut parser = Parser::new();
        chunks.iter().for_each(|chunk| parser.feed(chunk, &mut keep).unwrap());
        parser.finish(&mut keep).unwrap();
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
        let refused = (0..17).map(|_| parser.feed(&chunk, &mut |_| true)).find(Result::is_err);
        assert_eq!(refused, Some(Err(TooLarge)));
    }

    proptest! {
        /// However the bytes are cut, the events are those of the whole.
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
