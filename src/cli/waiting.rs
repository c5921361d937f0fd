//! Cells that are no runs, or not yet, as `why` tells of them: what decides about each, and the runs behind that.

use schemars::JsonSchema;
use serde::Serialize;

use super::preview::PendingCell;
use super::workspace::Workspace;
use crate::expand::{Finding, Pending, deciding};
use crate::report::format::{fill, plain};

/// A cell that is no run, or not yet, with what decides about it.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WaitingCell {
    #[serde(flatten)]
    cell: PendingCell,
    /// When its runs have ids, in words.
    ids: &'static str,
    /// What earlier sweeps say that decides about it; empty where the budget leaves its sweep out.
    decided_by: Vec<Decider>,
}

/// What an earlier sweep says that decides about a cell.
#[derive(Debug, Serialize, JsonSchema)]
struct Decider {
    /// The earlier sweep.
    sweep: String,
    /// What it is asked for, like max_qps_under_slo or ttft_p99.
    metric: String,
    /// What it says, in words, with the cell of it that says so.
    says: String,
    /// Full ids of the runs behind it that are there.
    runs: Vec<String>,
}

impl Decider {
    fn of(workspace: &Workspace, finding: &Finding) -> Decider {
        let is_there = |id: &&_| workspace.disk.record(id).is_some();
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
            0 => "no run of it is there".to_owned(),
            1 => format!("run {}", ids[0]),
            _ => format!("runs {}", ids.join(", ")),
        };
        fill("  ", 4, &plain(&format!("{} of {} ({runs})", self.metric, self.says)))
    }
}

impl WaitingCell {
    /// All that is told of a cell of the workspace's plan.
    pub(super) fn of(workspace: &Workspace, cell: &Pending) -> WaitingCell {
        let found = deciding(workspace.plan(), &workspace.known, cell);
        WaitingCell {
            cell: PendingCell::of(cell),
            ids: cell.state.when_ids_come(),
            decided_by: found.into_iter().map(|finding| Decider::of(workspace, finding)).collect(),
        }
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let PendingCell { sweep, repeats, state, why, .. } = &self.cell;
        let repeats = if *repeats == 1 { String::new() } else { format!(", {repeats} repeats") };
        let heading = fill("", 2, &plain(&format!("{sweep}: {}{repeats}", self.cell.name())));
        let said = fill("", 2, &plain(&format!("{}: {why}; {}", state.words(), self.ids)));
        let deciders: String = self.decided_by.iter().map(Decider::text).collect();
        format!("{heading}{said}{deciders}")
    }
}
