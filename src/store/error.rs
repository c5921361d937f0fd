//! Errors of the results folder. `NotFound`, `OnlyTried`, `Ambiguous`, `Deleted` and `StillThere` are user
//! errors (exit code 2). `Remote` concerns shared results and has its own exit codes. All other errors
//! mean that the folder is locked, full, unreadable or damaged (exit code 5).

use std::io;
use std::path::{Path, PathBuf};

use super::layout::typed_results;
use crate::rows::RowsError;

/// An error in accessing a results folder.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be written because the disk is full, or because a quota or a limit on the size of
    /// files is exceeded.
    #[error(
        "no room to write {path} ({source}): free space or raise the limit, then run the same command again; committed \
         runs are kept"
    )]
    Full {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The user may not write the file, or the file system is read-only.
    #[error("cannot write {path} ({source}): make the results folder writable, or choose another with --results DIR")]
    NotWritable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The file exists, but this user may not read it.
    #[error("cannot read {path} ({source}): make the results folder readable, or choose another with --results DIR")]
    NotReadable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// Any other error of the operating system.
    #[error("cannot {doing} {path}: {source}")]
    Io {
        /// The attempted operation.
        doing: Doing,
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// Another writer is using the folder.
    #[error(
        "{dir} is in use by another sweepline process{}: wait for it to end, or stop it; the lock is released when \
         the process ends, so no lock file needs to be removed",
        pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default()
    )]
    Locked {
        /// The results folder.
        dir: PathBuf,
        /// The process ID of the holder, if it could be read.
        pid: Option<u32>,
    },
    /// Another writer holds this part of the plan.
    #[error(
        "part `{part}` of {dir} is in use by another sweepline process{}: wait for it to end, or stop it; the lock is \
         released when the process ends, so no lock file needs to be removed",
        pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default()
    )]
    PartLocked {
        /// The results folder.
        dir: PathBuf,
        /// The name of the part.
        part: String,
        /// The process ID of the holder, if it could be read; it may be on another host.
        pid: Option<u32>,
    },
    /// A file with unexpected contents.
    #[error("{path} is damaged ({reason})")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// Something other than a folder exists at the path of the inventory.
    #[error(
        "{path} cannot be used as the inventory ({reason}): move it elsewhere, and the next `sweepline run` recreates the inventory"
    )]
    NoInventory {
        /// The path of the inventory.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// A file written by a later version of sweepline.
    #[error(
        "{path} has format {found}, this program reads up to {known}: use a newer sweepline, or another --results DIR"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The format version of the file.
        found: u32,
        /// The newest format version that this program supports.
        known: u32,
    },
    /// The operating system returned no random bits.
    #[error(
        "the operating system returns no random bits for the nonces ({0}): make getrandom(2) or /dev/urandom available"
    )]
    NoRandomBits(io::Error),
    /// A run that is incomplete or damaged, or that this program cannot read.
    #[error("{}: {reason}", dir.display())]
    Unusable {
        /// The run's folder.
        dir: PathBuf,
        /// The problem.
        reason: String,
    },
    /// A run whose result was replaced while it was being read. The replaced result was not kept.
    #[error(
        "{} was replaced while it was being read, and its previous result is gone: run the same command again",
        dir.display()
    )]
    Gone {
        /// The run's folder.
        dir: PathBuf,
    },
    /// A run that has the highest possible attempt number, so it cannot be attempted again.
    #[error("{} has the highest possible attempt number: move it out of the results folder", path.display())]
    LastNumber {
        /// The folder of the attempt with this number.
        path: PathBuf,
    },
    /// A run that was measured, but whose folder was removed.
    #[error(
        "run {id} was measured {measured} but has since been deleted: `sweepline run PLAN{folder}` measures it \
         again; `sweepline verify{folder} --forget {id}` removes it from the inventory",
        folder = typed_results(dir)
    )]
    Deleted {
        /// The results folder.
        dir: PathBuf,
        /// The short id.
        id: String,
        /// When the run was measured.
        measured: String,
    },
    /// A run that cannot be forgotten, because it still exists.
    #[error("run {id} still exists, so there is nothing to forget: `sweepline list{}` shows it", typed_results(dir))]
    StillThere {
        /// The results folder.
        dir: PathBuf,
        /// The short id.
        id: String,
    },
    /// Row files that could not be written or read.
    #[error(transparent)]
    Rows(RowsError),
    /// No run has an id with this prefix.
    #[error("no run in {dir} has an id that begins with `{prefix}`: `sweepline list{}` shows all", typed_results(dir))]
    NotFound {
        /// The results folder.
        dir: PathBuf,
        /// The requested prefix.
        prefix: String,
    },
    /// The only run with this prefix has attempts but no result.
    #[error(
        "run {id} was attempted but has no result in {}: see `sweepline why {id}{}`",
        dir.display(),
        typed_results(dir)
    )]
    OnlyTried {
        /// The results folder.
        dir: PathBuf,
        /// The short id.
        id: String,
    },
    /// A failure to use, reach, read or write shared results.
    #[error("{text}")]
    Remote {
        /// The message, which contains the error, its location and the remedy.
        text: String,
        /// Whether the error may be temporary, so that running the same command again may succeed.
        passes: bool,
    },
    /// Several runs have ids with this prefix.
    #[error("`{prefix}` matches several run ids ({}): give more characters", candidates.join(", "))]
    Ambiguous {
        /// The requested prefix.
        prefix: String,
        /// The matching short ids.
        candidates: Vec<String>,
    },
}

/// The file operation that failed.
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
    /// Converts the operating system's error into a store error whose message states the remedy.
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

    /// Converts the operating system's error from a failed write to a file that is in the results folder
    /// but not part of the store.
    pub fn cannot_write(path: &Path, source: io::Error) -> StoreError {
        StoreError::io(Doing::Write, path, source)
    }

    /// Returns the path of the damaged file or run folder; `None` if the error is not about damage.
    pub fn damaged_file(&self) -> Option<&Path> {
        match self {
            StoreError::Damaged { path, .. } | StoreError::Unusable { dir: path, .. } => Some(path),
            StoreError::Rows(error) => error.damaged_file(),
            _ => None,
        }
    }

    /// Whether this user or this program cannot read an existing file. Such a file is not considered
    /// damaged.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, StoreError::NotReadable { .. } | StoreError::Newer { .. } | StoreError::Remote { .. })
    }

    /// Returns a function that converts the operating system's errors of an operation on `path`.
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
