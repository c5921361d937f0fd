//! Detects the container and the format of a file from its content, regardless of its name.

use std::path::Path;

use super::error::DatasetError;
use super::mapping::Mapping;
use super::options::Format;
use super::shape::needs;
use super::text;
use super::value::{Fields, get, shown};

/// How a file stores its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    /// One JSON array.
    Array,
    /// One JSON object per line.
    Lines,
    /// Comma-separated values with a header.
    Csv,
    /// A Parquet file.
    Parquet,
}

/// Number of bytes at the beginning of a file from which its container is detected.
const HEAD_BYTES: u64 = 64 * 1024;

/// The first bytes of the kinds of files that cannot be read directly, each with the problem and the remedy.
const FOREIGN: [(&[u8], &str, &str); 5] = [
    (b"\x1f\x8b", "it is compressed (gzip)", "unpack it first: gunzip FILE"),
    (b"\x28\xb5\x2f\xfd", "it is compressed (zstd)", "unpack it first: unzstd FILE"),
    (b"PK\x03\x04", "it is a zip archive", "unpack it first: unzip FILE"),
    (b"\xff\xfe", "it is UTF-16", "convert it first: iconv -f UTF-16 -t UTF-8 FILE"),
    (b"\xfe\xff", "it is UTF-16", "convert it first: iconv -f UTF-16 -t UTF-8 FILE"),
];

/// Detects the container of a file.
pub(super) fn container(path: &Path) -> Result<Container, DatasetError> {
    let head = text::head(path, HEAD_BYTES)?;
    if head.starts_with(b"PAR1") {
        return Ok(Container::Parquet);
    }
    if let Some((_, problem, remedy)) = FOREIGN.iter().find(|(mark, ..)| head.starts_with(mark)) {
        return Err(DatasetError::file(path, *problem, *remedy));
    }
    let text = head.strip_prefix(text::MARK).unwrap_or(&head);
    match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'[') => Ok(Container::Array),
        Some(b'{') => Ok(Container::Lines),
        Some(_) if text.contains(&0) => {
            Err(DatasetError::file(path, "it is not text or Parquet", "give it a JSON, JSONL, CSV or Parquet file"))
        }
        Some(_) => Ok(Container::Csv),
        None => Err(DatasetError::file(path, "the file is empty", "download or write it again")),
    }
}

/// Returns the format of entries with these `fields`; `None` if it is unknown.
pub(super) fn format(fields: &Fields, mapping: &Mapping) -> Option<Format> {
    let has = |name: &&str| fields.contains_key(*name);
    let known = Format::ALL.iter().copied().find(|format| match format {
        Format::Columns => false,
        // Other files may also have fields with these names, but only in a message tree is `prompt` itself
        // a message.
        Format::Oasst => needs(*format).iter().all(has) && fields["prompt"].is_object(),
        other => needs(*other).iter().all(has),
    });
    let is_mapped = || mapping.all().any(|name| get(fields, name).is_some());
    if mapping.columns.is_empty() {
        known.or_else(|| is_mapped().then_some(Format::Columns))
    } else {
        Some(Format::Columns)
    }
}

/// Formats a list of field names for messages.
pub(super) fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const MOST: usize = 20;
    let mut shown: Vec<String> = names.take(MOST + 1).map(shown).collect();
    if shown.len() > MOST {
        shown[MOST] = "…".to_owned();
    }
    shown.join(", ")
}
