//! Iterates over the entries of a file of any kind, one at a time.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::array::Elements;
use super::csv::{self, Records};
use super::detect::Container;
use super::entry::Entry;
use super::error::{Bad, DatasetError};
use super::lines::Lines;
use super::parquet::Rows;
use super::record::Place;
use super::skipped::Reason;
use super::text::{self, Cutter, Piece, Pieces};
use super::value;

/// The entries of a file.
pub(super) struct Entries {
    path: PathBuf,
    source: Source,
    /// Number of entries that have been read so far.
    read: u64,
}

enum Source {
    Array(Pieces<Elements>),
    Lines(Pieces<Lines>),
    Csv { pieces: Pieces<Records>, header: Vec<String> },
    Parquet(Box<Rows>),
    Ended,
}

impl Entries {
    /// Opens a file whose entries have at most `most` bytes; `wanted` selects the columns that are read
    /// from a Parquet file.
    pub(super) fn open(
        path: &Path,
        container: Container,
        most: usize,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Entries, DatasetError> {
        let source = match container {
            Container::Array => Source::Array(Pieces::new(text::text(path)?, Elements::default(), most)),
            Container::Lines => Source::Lines(Pieces::new(text::text(path)?, Lines::default(), most)),
            Container::Csv => {
                let mut pieces = Pieces::new(text::text(path)?, Records::default(), most);
                let header = header(path, &mut pieces)?;
                Source::Csv { pieces, header }
            }
            Container::Parquet => Source::Parquet(Box::new(Rows::open(path, most, wanted)?)),
        };
        Ok(Entries { path: path.to_owned(), source, read: 0 })
    }

    /// Returns the names of all columns; `None` if the file does not declare them.
    pub(super) fn header(&self) -> Option<&[String]> {
        match &self.source {
            Source::Csv { header, .. } => Some(header),
            Source::Parquet(rows) => Some(rows.columns()),
            _ => None,
        }
    }

    /// Returns the next entry; `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, DatasetError> {
        let path = &self.path;
        let read = |error| DatasetError::read(path, error);
        let mut is_listed = false;
        let entry = match &mut self.source {
            Source::Array(pieces) => match pieces.next().map_err(read)? {
                Some(piece) => {
                    is_listed = true;
                    Some(json(piece))
                }
                None if pieces.cutter().is_whole() => None,
                None => {
                    let cut = Bad::new(Reason::Syntax, "the file ends before its list does: it is truncated");
                    let place = Place { line: pieces.line(), entry: None };
                    let entry = Entry { place, fields: Err(cut) };
                    self.source = Source::Ended;
                    Some(entry)
                }
            },
            Source::Lines(pieces) => pieces.next().map_err(read)?.map(json),
            Source::Csv { pieces, header } => pieces.next().map_err(read)?.map(|piece| record(piece, header)),
            Source::Parquet(rows) => rows.next()?,
            Source::Ended => None,
        };
        self.read += 1;
        let number = is_listed.then_some(self.read);
        Ok(entry.map(|entry| Entry { place: Place { entry: number, ..entry.place }, ..entry }))
    }
}

/// Converts the bytes of a piece to text.
fn utf8(bytes: Vec<u8>) -> Result<String, Bad> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to() + 1;
        Bad::new(Reason::NotUtf8, format!("byte {at} of the entry is not UTF-8"))
    })
}

/// Parses an entry in JSON. If parsing fails, the entry's place is the line of the error.
fn json(piece: Piece) -> Entry {
    let mut line = piece.line;
    let fields = piece.bytes.and_then(utf8).and_then(|text| match serde_json::from_str(&text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(other) => Err(value::wrong("the entry", &other, "a JSON object")),
        Err(error) => {
            line += (error.line() as u64).saturating_sub(1);
            let text = error.to_string();
            let text = text.split(" at line ").next().unwrap_or_default();
            // An entry may begin anywhere in its first line, so columns in that line are counted from the
            // beginning of the entry.
            let of = if error.line() == 1 { " of the entry" } else { "" };
            Err(Bad::new(Reason::Syntax, format!("not JSON: {text} (column {}{of})", error.column())))
        }
    });
    Entry { place: Place { line, entry: None }, fields }
}

/// Parses an entry in CSV. Empty fields are treated as missing.
fn record(piece: Piece, header: &[String]) -> Entry {
    let fields = piece.bytes.and_then(utf8).and_then(|text| csv::fields(&text)).and_then(|values| {
        if values.len() != header.len() {
            let text = format!("{} fields, but the header has {}", values.len(), header.len());
            return Err(Bad::new(Reason::Syntax, text));
        }
        let values = values.into_iter().map(|value| if value.is_empty() { Value::Null } else { Value::String(value) });
        Ok(header.iter().cloned().zip(values).collect())
    });
    Entry { place: Place { line: piece.line, entry: None }, fields }
}

/// Reads the header of a CSV file and returns the names of its columns.
fn header<C: Cutter>(path: &Path, pieces: &mut Pieces<C>) -> Result<Vec<String>, DatasetError> {
    let remedy = "give it a JSON, JSONL, CSV (with a header) or Parquet file";
    let first = pieces.next().map_err(|error| DatasetError::read(path, error))?;
    let first = first.ok_or_else(|| DatasetError::file(path, "the file is empty", "download or write it again"))?;
    let fields = first.bytes.and_then(utf8).and_then(|text| csv::fields(&text));
    let names = fields
        .map_err(|bad| DatasetError::file(path, format!("its first line is not a header: {}", bad.text), remedy))?;
    let names: Vec<String> = names.iter().map(|name| name.trim().to_owned()).collect();
    let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
    match twice {
        Some((_, name)) => {
            let problem = format!("its header has the column `{}` twice", value::shown(name));
            Err(DatasetError::file(path, problem, "rename one of them"))
        }
        None => Ok(names),
    }
}

/// Reads a file to its end and returns its SHA-256, as 64 hex digits.
pub fn digest(path: &Path) -> Result<String, DatasetError> {
    use sha2::{Digest, Sha256};
    struct Hashed(Sha256);
    impl std::io::Write for Hashed {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut file: File = text::open(path)?;
    let mut hash = Hashed(Sha256::new());
    std::io::copy(&mut file, &mut hash).map_err(|error| DatasetError::read(path, error))?;
    Ok(hash.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
