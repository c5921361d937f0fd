//! Cells without runs (yet), as explained by `why`: the findings that decide each, and the runs behind them.

use schemars::JsonSchema;
use serde::Serialize;

use super::preview::PendingCell;
use super::workspace::Workspace;
use crate::expand::{Finding, Pending, deciding};
use crate::report::format::{fill, plain};

/// A cell without runs (yet), and the findings that decide it.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WaitingCell {
    #[serde(flatten)]
    cell: PendingCell,
    /// When its runs get ids, in words.
    ids: &'static str,
    /// The findings of earlier sweeps that decide it; empty if the budget skips its sweep.
    decided_by: Vec<Decider>,
}

/// A finding of an earlier sweep that decides a cell.
#[derive(Debug, Serialize, JsonSchema)]
struct Decider {
    /// The earlier sweep.
    sweep: String,
    /// The requested metric, like max_qps_under_slo or ttft_p99.
    metric: String,
    /// The finding in words, with the cell of the sweep that it comes from.
    says: String,
    /// Full ids of its existing runs.
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
