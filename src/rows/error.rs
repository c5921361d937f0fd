//! What can go wrong with row files.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;

use super::column::BadColumn;

/// A row file that could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RowsError {
    /// The operating system said no.
    #[error("cannot {doing} {path}: {source}")]
    Io {
        /// `read` or `write`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Not Parquet, cut, or damaged.
    #[error("{path} is not a whole Parquet file ({reason})")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the Parquet reader said.
        reason: String,
    },
    /// A column that is not what it should be.
    #[error("{path}: column `{column}` {problem}")]
    Column {
        /// The file.
        path: PathBuf,
        /// The column.
        column: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// Written by a later program.
    #[error("{path} has rows of version {found}, this program reads up to {known}: use the newer sweepline")]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: u32,
        /// The newest version this program knows.
        known: u32,
    },
    /// Two files of a run that do not fit together.
    #[error("{path} does not hold the same requests as {other}")]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// The name of the other file beside it.
        other: &'static str,
    },
    /// A journal that ends before its end.
    #[error("{path} is not a finished journal ({reason}): the attempt cannot be committed, run the plan again")]
    Unfinished {
        /// The journal.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
}

impl RowsError {
    /// The file that does not hold what it should, where that is the error.
    pub fn damaged_file(&self) -> Option<&Path> {
        match self {
            RowsError::Damaged { path, .. } | RowsError::Column { path, .. } | RowsError::Mismatch { path, .. } => {
                Some(path)
            }
            RowsError::Io { .. } | RowsError::Newer { .. } | RowsError::Unfinished { .. } => None,
        }
    }

    /// An operating system's refusal to read `path`.
    pub(crate) fn read(path: &Path, source: io::Error) -> RowsError {
        RowsError::Io { doing: "read", path: path.to_owned(), source }
    }

    /// An operating system's refusal to write `path`.
    pub(crate) fn write(path: &Path, source: io::Error) -> RowsError {
        RowsError::Io { doing: "write", path: path.to_owned(), source }
    }

    /// A column of `path` that could not be stored or loaded.
    pub(crate) fn column(path: &Path, (column, problem): BadColumn) -> RowsError {
        RowsError::Column { path: path.to_owned(), column, problem: problem.to_string() }
    }

    /// What the Parquet reader said of `path`.
    pub(crate) fn damaged(path: &Path, error: impl Error + 'static) -> RowsError {
        RowsError::Damaged { path: path.to_owned(), reason: error.to_string() }
    }

    /// A failed write of Parquet: the operating system's word where it was that, which decides what to advise.
    pub(crate) fn parquet_write(path: &Path, error: ParquetError) -> RowsError {
        match error {
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(source) => RowsError::write(path, *source),
                Err(inner) => match inner.downcast::<ArrowError>() {
                    Ok(arrow) => RowsError::arrow_write(path, *arrow),
                    Err(other) => RowsError::write(path, io::Error::other(other)),
                },
            },
            other => RowsError::write(path, io::Error::other(other)),
        }
    }

    /// A failed write of Arrow IPC.
    pub(crate) fn arrow_write(path: &Path, error: ArrowError) -> RowsError {
        match error {
            ArrowError::IoError(_, source) => RowsError::write(path, source),
            other => RowsError::write(path, io::Error::other(other)),
        }
    }
}
