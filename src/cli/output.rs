//! Data on stdout, errors on stderr. A closed output pipe (`| head`) is not an error. Texts from a plan, a
//! server or a file cannot move the cursor or reverse the direction of text.

use std::io::{BufWriter, ErrorKind, Write};

use serde::Serialize;

use crate::cli::failure::Failure;
use crate::report::format::fitted;
use crate::units::text::{is_unseen, page};

/// Prints a text for people, and adds a line end if it is missing.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    write(&page(text))
}

/// Prints a text for people, wrapped to the width of the screen, if there is one.
pub(super) fn print_fitted(text: &str) -> Result<(), Failure> {
    print(&fitted(text))
}

fn write(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    match write!(stdout, "{text}{end}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Unexpected(error.into())),
        _ => Ok(()),
    }
}

/// Prints a value as indented JSON. Characters that a terminal interprets or hides are written as escapes,
/// which does not change the value.
pub(super) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let mut stdout = Escaped(BufWriter::new(std::io::stdout().lock()));
    let written = serde_json::to_writer_pretty(&mut stdout, value).map_err(std::io::Error::from);
    match written.and_then(|()| stdout.0.write_all(b"\n")).and_then(|()| stdout.0.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Unexpected(error.into())),
        _ => Ok(()),
    }
}

/// Escapes all invisible characters of a JSON text except line ends. They can occur only within
/// strings.
struct Escaped<W>(W);

impl<W: Write> Write for Escaped<W> {
    /// Expects whole characters, because `serde_json` never splits a character between writes.
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = std::str::from_utf8(bytes).map_err(|error| std::io::Error::new(ErrorKind::InvalidData, error))?;
        let mut rest = text;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_unseen(*c) && *c != '\n') {
            self.0.write_all(&rest.as_bytes()[..at])?;
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                write!(self.0, "\\u{unit:04x}")?;
            }
            rest = &rest[at + c.len_utf8()..];
        }
        self.0.write_all(rest.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}
