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
    /// The operating system failed to read or write the file.
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
    #[error("{path} is not a finished journal ({reason}), so the attempt cannot be committed: run the plan again")]
    Unfinished {
        /// The journal.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
}

impl RowsError {
    /// Returns the path of the file if its content is not as expected; `None` for other errors.
    pub fn damaged_file(&self) -> Option<&Path> {
        match self {
            RowsError::Damaged { path, .. } | RowsError::Column { path, .. } | RowsError::Mismatch { path, .. } => {
                Some(path)
            }
            RowsError::Io { .. } | RowsError::Newer { .. } | RowsError::Unfinished { .. } => None,
        }
    }

    /// Returns the error for a failed read of `path`.
    pub(crate) fn read(path: &Path, source: io::Error) -> RowsError {
        RowsError::Io { doing: "read", path: path.to_owned(), source }
    }

    /// Returns the error for a failed write of `path`.
    pub(crate) fn write(path: &Path, source: io::Error) -> RowsError {
        RowsError::Io { doing: "write", path: path.to_owned(), source }
    }

    /// Returns the error for a column of `path` that could not be stored or loaded.
    pub(crate) fn column(path: &Path, (column, problem): BadColumn) -> RowsError {
        RowsError::Column { path: path.to_owned(), column, problem: problem.to_string() }
    }

    /// Returns the error for a file at `path` that the Parquet reader rejects.
    pub(crate) fn damaged(path: &Path, error: impl Error + 'static) -> RowsError {
        RowsError::Damaged { path: path.to_owned(), reason: error.to_string() }
    }

    /// Converts an error of the Parquet writer. Keeps the operating system's error if there is one, because
    /// the remedy depends on it.
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

    /// Converts an error of the Arrow IPC writer, keeping the operating system's error if there is one.
    pub(crate) fn arrow_write(path: &Path, error: ArrowError) -> RowsError {
        match error {
            ArrowError::IoError(_, source) => RowsError::write(path, source),
            other => RowsError::write(path, io::Error::other(other)),
        }
    }
}
