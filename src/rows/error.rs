//! Errors of row files.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;

use super::column::BadColumn;

/// A row file that could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RowsError {
    /// An error of the operating system.
    #[error("cannot {doing} {path}: {source}")]
    Io {
        /// `read` or `write`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file that is not Parquet, truncated, or damaged.
    #[error("{path} is not a complete Parquet file ({reason})")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The error of the Parquet reader.
        reason: String,
    },
    /// A column without the expected content.
    #[error("{path}: column `{column}` {problem}")]
    Column {
        /// The file.
        path: PathBuf,
        /// The column.
        column: &'static str,
        /// The problem.
        problem: String,
    },
    /// A file that a newer version of the program wrote.
    #[error("{path} has rows of version {found}, but this program reads only up to {known}: use a newer sweepline")]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: u32,
        /// The newest version that this program can read.
        known: u32,
    },
    /// Two files of a run that do not belong together.
    #[error("{path} does not contain the same requests as {other}")]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// The name of the other file of the run.
        other: &'static str,
    },
    /// A journal that is incomplete.
    #[error("{path} is not a finished journal ({reason}): the attempt cannot be committed, run the plan again")]
    Unfinished {
        /// The journal.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
}

impl RowsError {
    /// Returns the file that does not have the expected content, if this is such an error.
    pub fn damaged_file(&self) -> Option<&Path> {
        match self {
            RowsError::Damaged { path, .. } | RowsError::Column { path, .. } | RowsError::Mismatch { path, .. } => {
                Some(path)
            }
            RowsError::Io { .. } | RowsError::Newer { .. } | RowsError::Unfinished { .. } => None,
        }
    }

    /// An error of the operating system while reading `path`.
    pub(crate) fn read(path: &Path, source: io::Error) -> RowsError {
        RowsError::Io { doing: "read", path: path.to_owned(), source }
    }

    /// An error of the operating system while writing `path`.
    pub(crate) fn write(path: &Path, source: io::Error) -> RowsError {
        RowsError::Io { doing: "write", path: path.to_owned(), source }
    }

    /// A column of `path` that could not be stored or loaded.
    pub(crate) fn column(path: &Path, (column, problem): BadColumn) -> RowsError {
        RowsError::Column { path: path.to_owned(), column, problem: problem.to_string() }
    }

    /// An error of the Parquet reader in `path`.
    pub(crate) fn damaged(path: &Path, error: impl Error + 'static) -> RowsError {
        RowsError::Damaged { path: path.to_owned(), reason: error.to_string() }
    }

    /// A failed write of Parquet. Contains the operating system's error if there is one, because it
    /// determines the remedy.
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
