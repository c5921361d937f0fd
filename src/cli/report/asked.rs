//! Whose report it is.

use crate::cli::options::Folder;
use crate::cli::results::PlanRuns;

/// A plan, those of its runs that are asked about, and where their results lie.
pub(super) struct Asked {
    /// The plan and its runs.
    pub(super) runs: PlanRuns,
    /// Where their results lie.
    pub(super) folder: Folder,
}
