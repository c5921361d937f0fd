//! Where submissions lie.

use std::path::{Path, PathBuf};

use crate::cli::failure::Failure;
use crate::store::Store;
use crate::submit::record::{Submission, submissions};

/// What was submitted of a plan, the oldest first, each with its folder.
pub(super) fn submitted(store: &Store, plan: &Path) -> Result<Vec<(PathBuf, Submission)>, Failure> {
    let folder = store.layout().submissions();
    submissions(&folder, &whole(plan)).map_err(|error| Failure::Usage(format!("{}: {error}", folder.display())))
}

/// A path from the root, however it was written, and whether or not it is there.
pub(super) fn whole(path: &Path) -> PathBuf {
    let absolute = || std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    std::fs::canonicalize(path).unwrap_or_else(|_| absolute())
}
