//! Locations of submissions.

use std::path::{Path, PathBuf};

use crate::cli::failure::Failure;
use crate::store::Store;
use crate::submit::record::{Submission, submissions};

/// Returns the submissions of a plan with their folders, oldest first.
pub(super) fn submitted(store: &Store, plan: &Path) -> Result<Vec<(PathBuf, Submission)>, Failure> {
    let folder = store.layout().submissions();
    submissions(&folder, &whole(plan)).map_err(|error| Failure::Usage(format!("{}: {error}", folder.display())))
}

/// Makes a path absolute; the file does not have to exist.
pub(super) fn whole(path: &Path) -> PathBuf {
    let absolute = || std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    std::fs::canonicalize(path).unwrap_or_else(|_| absolute())
}
