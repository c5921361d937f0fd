//! A plan on a cluster: `submit`, `status` and `cancel`.

pub(super) mod cancel;
mod jobs;
pub(super) mod status;
pub(super) mod submit;
mod to_kubernetes;
mod to_slurm;
mod work;

use std::path::{Path, PathBuf};

use crate::cli::failure::Failure;
use crate::store::Store;
use crate::submit::record::{Submission, submissions};

/// What was submitted of a plan, the oldest first.
fn submitted(store: &Store, plan: &Path) -> Result<Vec<Submission>, Failure> {
    let folder = store.layout().submissions();
    submissions(&folder, &whole(plan)).map_err(|error| Failure::Usage(format!("{}: {error}", folder.display())))
}

/// A path from the root, however it was written.
fn whole(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
