//! Errors of data sets, each with its place and remedy.

use std::io;
use std::path::{Path, PathBuf};

use super::skipped::Reason;
use crate::units::regular_file;

/// Why a data set cannot be read, or why reading it ended early.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The operating system cannot read the file.
    #[error("cannot read {}: {source}; {}", path.display(), regular_file::remedy(.source))]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The file as a whole has a problem.
    #[error("{}: {problem}; {remedy}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
        /// The remedy.
        remedy: String,
    },
    /// One entry is invalid.
    #[error(
        "{}:{place}: {text}; fix the entry, or skip such entries with --skip-bad (in a plan: `on_bad: skip`)",
        path.display()
    )]
    Entry {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1 (with the entry's number in a JSON array), or `row N` in a Parquet
        /// file.
        place: String,
        /// The kind of problem.
        reason: Reason,
        /// Describes the problem, and what was expected.
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

/// The problem of one entry.
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
