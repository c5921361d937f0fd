//! A place in a file, in the form in which editors and terminals show it.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::plan::text::span::clamp;

/// A place in a file, in the form in which editors and terminals show it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl Place {
    /// The place of a byte in `text`.
    pub(crate) fn of(file: &Path, text: &str, byte: usize) -> Place {
        let before = &text[..clamp(byte..byte, text).start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Place {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}
