//! The texts of a plan: its file, the fragments that it uses, and the values that are set on the
//! command line.
//!
//! The texts are concatenated in one string, so that a place in any of them is a single number. The
//! file of a span, a tree or an error follows from this number and need not be stored, and sorting by
//! place also sorts by file.

use std::path::{Path, PathBuf};

use crate::plan::text::place::Place;

/// Named texts, in the order in which they were read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources {
    text: String,
    files: Vec<File>,
}

/// The name of a text, and its start in the common string.
#[derive(Debug, Clone)]
struct File {
    name: PathBuf,
    start: usize,
}

/// One of the texts of a plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'s> {
    /// The name in messages: the path as given, or `--set` for the command line.
    pub name: &'s Path,
    /// The text.
    pub text: &'s str,
    /// The start of the text in the common string.
    pub start: usize,
}

impl Sources {
    /// Adds a text. Returns the offset that converts places in the text to places in the common
    /// string.
    pub(crate) fn add(&mut self, name: &Path, text: &str) -> usize {
        if !self.files.is_empty() {
            // Separates the end of one text from the start of the next.
            self.text.push('\n');
        }
        let start = self.text.len();
        self.text.push_str(text);
        self.files.push(File { name: name.to_owned(), start });
        start
    }

    /// The common string, in which spans are ranges of bytes.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The sources with the same names and another common string of the same length.
    pub(crate) fn with_text(&self, text: String) -> Sources {
        Sources { text, files: self.files.clone() }
    }

    /// The text that contains a byte of the common string.
    pub(crate) fn of(&self, byte: usize) -> Source<'_> {
        let after = self.files.partition_point(|file| file.start <= byte);
        let Some(file) = self.files.get(after.saturating_sub(1)) else {
            return Source { name: Path::new(""), text: "", start: 0 };
        };
        let end = self.files.get(after).map_or(self.text.len(), |next| next.start - 1);
        Source { name: &file.name, text: &self.text[file.start..end], start: file.start }
    }

    /// The file, line and column of a byte of the common string.
    pub(crate) fn place(&self, byte: usize) -> Place {
        let source = self.of(byte);
        source.place(byte.saturating_sub(source.start))
    }

    /// The name of the first text, which is the plan's.
    pub(crate) fn first_name(&self) -> &Path {
        self.files.first().map_or(Path::new(""), |file| &file.name)
    }
}

impl Source<'_> {
    /// The file, line and column of a byte of this text.
    pub(crate) fn place(&self, byte: usize) -> Place {
        Place::of(self.name, self.text, byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_belongs_to_one_text() {
        let mut sources = Sources::default();
        let starts = ["ab\nc", "", "é\nd"].map(|text| sources.add(Path::new(text.trim()), text));
        assert_eq!(starts, [0, 5, 6]);
        let place = |byte| sources.place(byte).to_string();
        assert_eq!([0, 3, 4].map(place), ["ab\nc:1:1", "ab\nc:2:1", "ab\nc:2:2"]);
        assert_eq!(place(5), ":1:1");
        assert_eq!([6, 8, 9, 99].map(place), ["é\nd:1:1", "é\nd:1:2", "é\nd:2:1", "é\nd:2:2"]);
        assert_eq!(sources.first_name(), Path::new("ab\nc"));
    }
}
