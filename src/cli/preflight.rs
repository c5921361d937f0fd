//! What this machine lacks for the runs of a plan: secrets, certificates, programs and folders.

use std::path::Path;

use super::workspace::Workspace;
use crate::expand::PlannedRun;
use crate::report::format::plain;
use crate::sweep::preflight::{Unmet, unmet};

/// Returns a sentence for each thing that these runs need and this machine lacks, with its place in the plan and
/// the remedy. `folder` is the plan's folder.
pub(super) fn lacking<'r>(
    workspace: &Workspace,
    folder: &Path,
    runs: impl Iterator<Item = &'r PlannedRun>,
) -> Vec<String> {
    let line = |Unmet { endpoint, at, reason }: Unmet| {
        let place = workspace.loaded.place(&at).map(|place| format!(" ({place})")).unwrap_or_default();
        format!("endpoint `{}`: {}{place}", plain(&endpoint), plain(&reason))
    };
    unmet(workspace.plan(), folder, runs).into_iter().map(line).collect()
}
