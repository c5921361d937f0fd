//! What can go wrong in the results folder. All but `NotFound`, `Ambiguous`, `Deleted` and `StillThere` mean: the folder is
//! locked, full, unreadable or damaged (exit code 5); those are a user's slip (exit code 2).

use std::io;
use std::path::{Path, PathBuf};

use super::layout::typed_results;
use crate::rows::RowsError;

/// A results folder that could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No space, no quota, or a limit on the size of files.
    #[error(
        "no room to write {path} ({source}): free space or raise the limit, then run the same command again; committed \
         runs are kept"
    )]
    Full {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The folder or its file system is read-only for this user.
    #[error("cannot write {path} ({source}): make the results folder writable, or choose another with --results DIR")]
    NotWritable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file exists and this user may not read it.
    #[error("cannot read {path} ({source}): make the results folder readable, or choose another with --results DIR")]
    NotReadable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Any other refusal of the operating system.
    #[error("cannot {doing} {path}: {source}")]
    Io {
        /// What was tried.
        doing: Doing,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Another writer is at work.
    #[error(
        "{dir} is in use by another sweepline{}: wait for it or end it; the lock goes with the process, there is nothing \
         to remove",
        pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    Locked {
        /// The results folder.
        dir: PathBuf,
        /// The holder's process, where it could be read.
        pid: Option<u32>,
    },
    /// Another writer is at work on this part.
    #[error(
        "part `{part}` of {dir} is in use by another sweepline{}: wait for it or end it; the lock goes with the process, there is \
         nothing to remove",
        pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    PartLocked {
        /// The results folder.
        dir: PathBuf,
        /// The part.
        part: String,
        /// The holder's process, where it could be read; it may be one of another host.
        pid: Option<u32>,
    },
    /// A file that does not hold what it should.
    #[error("{path} is damaged ({reason})")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Something else than a folder in the place of the inventory.
    #[error("{path} cannot be the inventory ({reason}): move it away, and the next `sweepline run` makes it anew")]
    NoInventory {
        /// What lies there.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Written by a later program.
    #[error(
        "{path} has format {found}, this program reads up to {known}: use the newer sweepline, or another --results DIR"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The format in the file.
        found: u32,
        /// The newest format this program knows.
        known: u32,
    },
    /// The operating system gave no random bits.
    #[error(
        "the operating system gives no random bits for the nonces ({0}): make getrandom(2) or /dev/urandom available"
    )]
    NoRandomBits(io::Error),
    /// A run that is not whole, or that this program cannot read.
    #[error("{}: {reason}", dir.display())]
    Unusable {
        /// The run's folder.
        dir: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A run whose result was replaced while it was read, and is not kept.
    #[error("{} was replaced while it was read, and what was there is gone: run the same command again", dir.display())]
    Gone {
        /// The run's folder.
        dir: PathBuf,
    },
    /// A run that has no number left for another attempt.
    #[error("{} has the last number that an attempt can have: move it out of the results folder", path.display())]
    LastNumber {
        /// The folder with that number.
        path: PathBuf,
    },
    /// A run that was measured and whose folder somebody has removed.
    #[error(
        "run {id} was measured {measured}, deleted since: `sweepline run PLAN{folder}` measures it again, `sweepline \
         verify{folder} --forget {id}` forgets it",
        folder = typed_results(dir)
    )]
    Deleted {
        /// The results folder.
        dir: PathBuf,
        /// The short id.
        id: String,
        /// When it was measured.
        measured: String,
    },
    /// A run that cannot be forgotten.
    #[error("run {id} is still there, so there is nothing to forget: `sweepline list{}` shows it", typed_results(dir))]
    StillThere {
        /// The results folder.
        dir: PathBuf,
        /// The short id.
        id: String,
    },
    /// Row files that could not be written or read.
    #[error(transparent)]
    Rows(RowsError),
    /// No run has such an id.
    #[error("no run in {dir} has an id that begins with `{prefix}`: `sweepline list{}` shows all", typed_results(dir))]
    NotFound {
        /// The results folder.
        dir: PathBuf,
        /// What was asked for.
        prefix: String,
    },
    /// The one run with such an id was tried and has no result.
    #[error("run {id} was tried and has no result in {dir}: `sweepline why {id}` says what became of it", dir = dir.display())]
    OnlyTried {
        /// The results folder.
        dir: PathBuf,
        /// The short id.
        id: String,
    },
    /// Several runs have such an id.
    #[error("`{prefix}` is the beginning of several ids ({}): write more digits", candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        prefix: String,
        /// The short ids that begin so.
        candidates: Vec<String>,
    },
}

/// What was tried when the operating system said no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "snake_case")]
pub enum Doing {
    /// Reading a file or listing a folder.
    Read,
    /// Writing or creating a file or folder.
    Write,
    /// Moving a folder.
    Move,
    /// Removing a file.
    Remove,
}

impl StoreError {
    /// The operating system's refusal, told by what the user can do about it.
    pub(crate) fn io(doing: Doing, path: &Path, source: io::Error) -> StoreError {
        let path = path.to_owned();
        match (source.kind(), doing) {
            (io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge, _) => {
                StoreError::Full { path, source }
            }
            (io::ErrorKind::PermissionDenied, Doing::Read) => StoreError::NotReadable { path, source },
            (io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem, _) => {
                StoreError::NotWritable { path, source }
            }
            _ => StoreError::Io { doing, path, source },
        }
    }

    /// The operating system's refusal to write a file that others than the store put into the results folder.
    pub fn cannot_write(path: &Path, source: io::Error) -> StoreError {
        StoreError::io(Doing::Write, path, source)
    }

    /// The file that does not hold what it should, where that is the error.
    pub fn damaged_file(&self) -> Option<&Path> {
        match self {
            StoreError::Damaged { path, .. } | StoreError::Unusable { dir: path, .. } => Some(path),
            StoreError::Rows(error) => error.damaged_file(),
            _ => None,
        }
    }

    /// Whether a file is there that this user or this program cannot read: no damage.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, StoreError::NotReadable { .. } | StoreError::Newer { .. })
    }

    /// A mapper of refusals to do something with `path`.
    pub(crate) fn on(doing: Doing, path: &Path) -> impl Fn(io::Error) -> StoreError {
        move |source| StoreError::io(doing, path, source)
    }
}

impl From<RowsError> for StoreError {
    fn from(error: RowsError) -> StoreError {
        match error {
            RowsError::Io { doing: "read", path, source } => StoreError::io(Doing::Read, &path, source),
            RowsError::Io { path, source, .. } => StoreError::io(Doing::Write, &path, source),
            other => StoreError::Rows(other),
        }
    }
}
