//! Parses the name of a sweep of a plan, or of some cells of a sweep, like `limit` or `limit/vllm · chat`.

use super::workspace::Workspace;
use crate::cli::failure::Failure;
use crate::expand::{Pending, PlannedRun};
use crate::report::Trail;
use crate::sweep::event::planned_name;

/// Maximum number of cells listed if none matches.
const MOST_NAMED: usize = 5;

/// The selected cells of a sweep.
pub(super) struct SweepCell<'a> {
    sweep: &'a str,
    /// Values, on any axis, that a cell must have to be selected; empty if all cells are selected.
    values: Vec<&'a str>,
}

impl<'a> SweepCell<'a> {
    /// Parses `text`: a sweep of the plan, optionally followed by a slash or a colon and values of its
    /// cells; `None` if it does not name a sweep.
    pub(super) fn named(workspace: &'a Workspace, text: &'a str) -> Option<SweepCell<'a>> {
        let of = |sweep: &'a String| {
            let rest = text.strip_prefix(sweep.as_str())?;
            let cell = if rest.is_empty() { rest } else { rest.strip_prefix(['/', ':'])? };
            let values = cell.split(['·', ',']).map(str::trim).filter(|value| !value.is_empty()).collect();
            Some(SweepCell { sweep, values })
        };
        workspace.plan().sweeps.keys().find_map(of)
    }

    /// Whether the selection includes the cell with this display name.
    fn means(&self, sweep: &str, name: &str) -> bool {
        let parts: Vec<&str> = name.split(" · ").collect();
        sweep == self.sweep && self.values.iter().all(|value| parts.contains(value))
    }

    /// Returns the searches and ladders of the selected cells.
    pub(super) fn choices<'w>(&self, workspace: &'w Workspace) -> Vec<&'w Trail> {
        workspace.trails.iter().filter(|trail| self.means(&trail.sweep, &trail.cell)).collect()
    }

    /// Returns the plan's runs in the selected cells.
    pub(super) fn runs<'w>(&self, workspace: &'w Workspace) -> Vec<&'w PlannedRun> {
        let is_meant = |run: &&PlannedRun| self.means(&run.sweep, &run_name(run));
        workspace.expansion.runs.iter().filter(is_meant).collect()
    }

    /// Returns the selected cells without runs (yet).
    pub(super) fn waiting(&self, workspace: &Workspace) -> Vec<Pending> {
        let is_meant = |cell: &&Pending| self.means(&cell.sweep, &cell_name(cell));
        workspace.expansion.pending.iter().filter(is_meant).cloned().collect()
    }

    /// Returns the error that no cell of the sweep matches, with some of the existing cells.
    pub(super) fn none(&self, workspace: &Workspace) -> Failure {
        let all = SweepCell { sweep: self.sweep, values: Vec::new() };
        let choices = all.choices(workspace);
        let mut names: Vec<String> = choices.iter().map(|trail| trail.cell.clone()).collect();
        if choices.is_empty() {
            names.extend(all.runs(workspace).into_iter().map(planned_name));
        }
        names.extend(all.waiting(workspace).iter().map(cell_name));
        names.dedup();
        let more = names.len().saturating_sub(MOST_NAMED);
        names.truncate(MOST_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        Failure::Usage(format!(
            "sweep `{}` has no cell with {}; its cells are {}{more}",
            self.sweep,
            self.values.join(" and "),
            names.join("; "),
        ))
    }
}

/// Returns the values of a run, followed by the parts of its display name. A load occurs both as `8` and as
/// `batch 8`.
fn run_name(run: &PlannedRun) -> String {
    let values = run.cell.iter().map(|(_, value)| value.to_string());
    values.chain(planned_name(run).split(" · ").map(str::to_owned)).collect::<Vec<_>>().join(" · ")
}

fn cell_name(cell: &Pending) -> String {
    cell.cell.iter().map(|(_, value)| value.to_string()).collect::<Vec<_>>().join(" · ")
}
