//! Reads CSV (RFC 4180): extracts records of bounded size, and their fields.
//!
//! No CSV crate is used, because its buffer would grow without limit after a quote that is never closed.

use super::error::Bad;
use super::skipped::Reason;
use super::text::{Cut, Cutter};

/// The position of the parser within a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    FieldStart,
    Plain,
    Quoted,
    /// After a quote inside a quoted field, which is either the end of the field or the first half
    /// of an escaped quote.
    Quote,
}

impl State {
    /// Returns the state after `byte`.
    fn after(self, byte: u8) -> State {
        match (self, byte) {
            (State::FieldStart | State::Quote, b'"') => State::Quoted,
            (State::Quoted, b'"') => State::Quote,
            (State::Quoted, _) => State::Quoted,
            (_, b',' | b'\n') => State::FieldStart,
            _ => State::Plain,
        }
    }
}

/// Splits a CSV text into records, at line ends that are not within quotes.
#[derive(Default)]
pub(super) struct Records {
    state: State,
    begun: bool,
}

impl Cutter for Records {
    fn see(&mut self, byte: u8) -> Cut {
        let quoted = self.state == State::Quoted;
        self.state = self.state.after(byte);
        if byte == b'\n' && !quoted {
            self.begun = false;
            return Cut::Behind;
        }
        if byte == b'\r' && !self.begun {
            return Cut::Outside;
        }
        self.begun = true;
        Cut::Inside
    }

    fn run(&self, coming: &[u8]) -> usize {
        let end = match self.state {
            State::Plain => memchr::memchr2(b',', b'\n', coming),
            State::Quoted => memchr::memchr(b'"', coming),
            State::FieldStart | State::Quote => return 0,
        };
        end.unwrap_or(coming.len())
    }
}

/// Splits a record into its fields.
pub(super) fn fields(record: &str) -> Result<Vec<String>, Bad> {
    let record = record.strip_suffix('\r').unwrap_or(record);
    let mut fields = vec![String::new()];
    let mut state = State::default();
    for c in record.chars() {
        let before = state;
        state = state.after(u8::try_from(c).unwrap_or(b'x'));
        match (before, c) {
            (State::Quoted, '"') | (State::FieldStart, '"') => {}
            (State::Quoted, _) => push(&mut fields, c),
            (_, ',') => fields.push(String::new()),
            _ => push(&mut fields, c),
        }
    }
    if state == State::Quoted {
        return Err(Bad::new(Reason::Syntax, "a quoted field is not closed before the file ends"));
    }
    Ok(fields)
}

fn push(fields: &mut [String], c: char) {
    fields.last_mut().expect("there is a first field").push(c);
}
