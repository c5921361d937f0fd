//! Cells without runs (yet), as explained by `why`. Shows the findings that decide each cell, and the runs
//! on which they are based.

use schemars::JsonSchema;
use serde::Serialize;

use super::preview::PendingCell;
use super::workspace::Workspace;
use crate::expand::{Finding, Pending, deciding};
use crate::report::format::{fill, plain};

/// A cell without runs (yet), and the findings that decide whether it gets runs.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WaitingCell {
    #[serde(flatten)]
    cell: PendingCell,
    /// When the runs of the cell get ids, as text.
    ids: &'static str,
    /// The findings of earlier sweeps on which the cell depends; empty if the budget skips its
    /// sweep.
    decided_by: Vec<Decider>,
}

/// A finding of an earlier sweep on which a cell depends.
#[derive(Debug, Serialize, JsonSchema)]
struct Decider {
    /// The earlier sweep.
    sweep: String,
    /// The requested metric, like max_qps_under_slo or ttft_p99.
    metric: String,
    /// The finding as text, with the cell of the earlier sweep.
    says: String,
    /// Full ids of the existing runs on which the finding is based.
    runs: Vec<String>,
}

impl Decider {
    fn of(workspace: &Workspace, finding: &Finding) -> Decider {
        let is_there = |id: &&_| workspace.disk.is_whole(id);
        Decider {
            sweep: finding.sweep.to_string(),
            metric: finding.metric.to_string(),
            says: finding.words(),
            runs: finding.runs.iter().filter(is_there).map(ToString::to_string).collect(),
        }
    }

    fn text(&self) -> String {
        let ids: Vec<&str> = self.runs.iter().filter_map(|id| id.get(..8)).collect();
        let runs = match ids.len() {
            0 => "none of its runs exists".to_owned(),
            1 => format!("run {}", ids[0]),
            _ => format!("runs {}", ids.join(", ")),
        };
        fill("  ", 4, &plain(&format!("{} of {} ({runs})", self.metric, self.says)))
    }
}

impl WaitingCell {
    /// Returns the explanation of a cell of the workspace's plan.
    pub(super) fn of(workspace: &Workspace, cell: &Pending) -> WaitingCell {
        let found = deciding(workspace.plan(), &workspace.known, cell);
        WaitingCell {
            cell: PendingCell::of(cell),
            ids: cell.state.when_ids_come(),
            decided_by: found.into_iter().map(|finding| Decider::of(workspace, finding)).collect(),
        }
    }

    /// Returns the text for people.
    pub(super) fn text(&self) -> String {
        let PendingCell { sweep, repeats, state, why, .. } = &self.cell;
        let repeats = if *repeats == 1 { String::new() } else { format!(", {repeats} repeats") };
        let heading = fill("", 2, &plain(&format!("{sweep}: {}{repeats}", self.cell.name())));
        let said = fill("", 2, &plain(&format!("{}: {why}; {}", state.words(), self.ids)));
        let deciders: String = self.decided_by.iter().map(Decider::text).collect();
        format!("{heading}{said}{deciders}")
    }
}
