//! What can be wrong with a file, each with its place and its remedy.

use std::io;
use std::path::{Path, PathBuf};

use super::skipped::Reason;

/// Why a data set cannot be read, or not further.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The operating system's word.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What was said.
        source: io::Error,
    },
    /// The file as a whole is not what can be read.
    #[error("{}: {problem}; {remedy}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
        /// What to do.
        remedy: String,
    },
    /// One entry is wrong.
    #[error("{}:{place}: {text}; mend the entry, or leave out such entries with --skip-bad (in a plan: on_bad: skip)", path.display())]
    Entry {
        /// The file.
        path: PathBuf,
        /// The line, from 1, with the entry's number in a JSON array; or `row N`.
        place: String,
        /// Why.
        reason: Reason,
        /// What is wrong, and what was expected.
        text: String,
    },
}

impl DatasetError {
    pub(super) fn read(path: &Path, source: io::Error) -> DatasetError {
        DatasetError::Read { path: path.to_owned(), source }
    }

    pub(super) fn file(path: &Path, problem: impl Into<String>, remedy: impl Into<String>) -> DatasetError {
        DatasetError::File { path: path.to_owned(), problem: problem.into(), remedy: remedy.into() }
    }
}

/// What is wrong with one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bad {
    pub(super) reason: Reason,
    pub(super) text: String,
}

impl Bad {
    pub(super) fn new(reason: Reason, text: impl Into<String>) -> Bad {
        Bad { reason, text: text.into() }
    }
}
