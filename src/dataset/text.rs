//! Reads the bytes of a file, and extracts entries of bounded size.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use super::error::{Bad, DatasetError};
use super::skipped::Reason;
use crate::units::regular_file;

/// The byte order mark of UTF-8, which some editors and spreadsheets write at the beginning of a text file.
pub(super) const MARK: &[u8] = b"\xef\xbb\xbf";

/// Opens a regular file. Pipes are rejected because they cannot be read twice, and could block the
/// reader forever.
pub(super) fn open(path: &Path) -> Result<File, DatasetError> {
    regular_file::open(path).map_err(|error| DatasetError::read(path, error))
}

/// Returns the first `most` bytes of a file.
pub(super) fn head(path: &Path, most: u64) -> Result<Vec<u8>, DatasetError> {
    let mut bytes = Vec::new();
    open(path)?.take(most).read_to_end(&mut bytes).map_err(|error| DatasetError::read(path, error))?;
    Ok(bytes)
}

/// Opens a text file and skips its byte order mark.
pub(super) fn text(path: &Path) -> Result<BufReader<File>, DatasetError> {
    let mut file = open(path)?;
    let read = |error| DatasetError::read(path, error);
    let mut first = Vec::with_capacity(MARK.len());
    Read::by_ref(&mut file).take(MARK.len() as u64).read_to_end(&mut first).map_err(read)?;
    let start = if first == MARK { MARK.len() } else { 0 };
    file.seek(SeekFrom::Start(start as u64)).map_err(read)?;
    Ok(BufReader::with_capacity(64 * 1024, file))
}

/// One entry as it appears in a text file.
pub(super) struct Piece {
    /// The line in which the entry begins, counted from 1.
    pub(super) line: u64,
    /// The bytes of the entry, or why they were not kept.
    pub(super) bytes: Result<Vec<u8>, Bad>,
}

/// Splits a text into entries by classifying its bytes one after another.
pub(super) trait Cutter {
    /// Classifies the next byte of the text.
    fn see(&mut self, byte: u8) -> Cut;

    /// Returns how many of the next bytes certainly belong to the entry and do not change the state. This
    /// is true for most bytes, so they need not be passed to `see` one by one.
    fn run(&self, coming: &[u8]) -> usize;
}

/// The class of a byte in relation to entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// The byte is outside of entries.
    Outside,
    /// The byte is part of an entry.
    Inside,
    /// The byte ends an entry, but is not part of it.
    Behind,
    /// The byte ends the last entry; the rest of the text is ignored.
    End,
}

/// Splits a text into pieces of at most `most` bytes; a longer piece is read to its end but not
/// kept.
pub(super) struct Pieces<C> {
    text: BufReader<File>,
    cutter: C,
    most: usize,
    line: u64,
    ended: bool,
}

/// A piece that is being read.
#[derive(Default)]
struct Open {
    line: u64,
    bytes: Vec<u8>,
    is_long: bool,
}

impl Open {
    /// Adds bytes. If the piece becomes too long, its bytes are discarded.
    fn push(&mut self, bytes: &[u8], most: usize) {
        self.is_long |= self.bytes.len() + bytes.len() > most;
        if self.is_long {
            self.bytes = Vec::new();
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn close(self, most: usize) -> Piece {
        let too_long = || Bad::new(Reason::TooLong, format!("the entry is longer than {most} bytes (--max-entry)"));
        Piece { line: self.line, bytes: if self.is_long { Err(too_long()) } else { Ok(self.bytes) } }
    }
}

impl<C: Cutter> Pieces<C> {
    pub(super) fn new(text: BufReader<File>, cutter: C, most: usize) -> Pieces<C> {
        Pieces { text, cutter, most, line: 1, ended: false }
    }

    /// Returns the number of the current line, counted from 1.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Returns the classifier of bytes.
    pub(super) fn cutter(&self) -> &C {
        &self.cutter
    }

    /// Returns the next piece; `None` after the last. If the text ends within a piece, returns the
    /// beginning of that piece.
    pub(super) fn next(&mut self) -> io::Result<Option<Piece>> {
        let mut open: Option<Open> = None;
        while !self.ended {
            let buffer = self.text.fill_buf()?;
            if buffer.is_empty() {
                self.ended = true;
                break;
            }
            let (used, closed) = take(buffer, &mut self.cutter, &mut self.line, &mut open, self.most);
            self.text.consume(used);
            match closed {
                Some(Cut::End) => self.ended = true,
                Some(_) => return Ok(open.map(|open| open.close(self.most))),
                None => {}
            }
        }
        Ok(open.map(|open| open.close(self.most)))
    }
}

/// Processes `buffer` up to the end of the current piece. Returns the number of bytes used, and how the
/// piece ended, or `None` if it has not ended.
fn take(
    buffer: &[u8],
    cutter: &mut impl Cutter,
    line: &mut u64,
    open: &mut Option<Open>,
    most: usize,
) -> (usize, Option<Cut>) {
    let mut at = 0;
    while at < buffer.len() {
        let run = cutter.run(&buffer[at..]);
        let (part, cut) = match run {
            0 => (&buffer[at..=at], cutter.see(buffer[at])),
            run => (&buffer[at..at + run], Cut::Inside),
        };
        at += part.len();
        if cut == Cut::Inside {
            open.get_or_insert_with(|| Open { line: *line, ..Open::default() }).push(part, most);
        }
        *line += memchr::memchr_iter(b'\n', part).count() as u64;
        if cut == Cut::End || (cut == Cut::Behind && open.is_some()) {
            return (at, Some(cut));
        }
    }
    (at, None)
}
