//! The plan of a report.

use crate::cli::options::Folder;
use crate::cli::results::PlanRuns;

/// A plan, its selected runs, and the location of their results.
pub(super) struct Asked {
    /// The plan and its runs.
    pub(super) runs: PlanRuns,
    /// The location of their results.
    pub(super) folder: Folder,
}
