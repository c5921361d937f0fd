//! Searches and ladders in a preview: which of their runs come, only measuring tells; how they stand, and what they may take, is known.

use schemars::JsonSchema;
use serde::Serialize;

use crate::expand::{Chooses, Pool};
use crate::sweep::choose::{Chosen, most_runs};
use crate::units::text::counted;

use super::super::workspace::Workspace;

/// How one search or ladder stands.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChoiceState {
    /// Its sweep.
    pub sweep: String,
    /// Its cell but for the load: endpoint, model, scenario and values on further axes.
    pub cell: String,
    /// `search`, or `ladder`.
    pub chooses: &'static str,
    /// The axis whose value is chosen: `qps` or `batch_size`.
    pub axis: &'static str,
    /// The lightest load that may be run.
    pub from: f64,
    /// The heaviest load that may be run.
    pub to: f64,
    /// Runs that it takes at most, those that are there among them.
    pub most_runs: usize,
    /// Full ids of its runs that are there, in the order in which they were asked for: the evidence of its decisions.
    pub finished: Vec<String>,
    /// Full id of the run that it asks for next; null at its end.
    pub next: Option<String>,
    /// How it stands, or how it ended, in words.
    pub standing: String,
    #[serde(skip)]
    confirms: Option<String>,
}

/// Every search and ladder of the plan, in its order.
pub(super) fn choices(workspace: &Workspace) -> Vec<ChoiceState> {
    workspace
        .expansion
        .pools
        .iter()
        .zip(&workspace.chosen)
        .map(|(pool, chosen)| ChoiceState::of(pool, chosen))
        .collect()
}

impl ChoiceState {
    fn of(pool: &Pool, chosen: &Chosen) -> ChoiceState {
        let id = |at: &usize| pool.members[*at].run.id.to_string();
        let (chooses, confirms) = match &pool.chooses {
            Chooses::Search { confirm, .. } => ("search", confirm.map(|window| window.to_string())),
            Chooses::Ladder { .. } => ("ladder", None),
        };
        let loads = pool.loads();
        ChoiceState {
            sweep: pool.sweep.to_string(),
            cell: pool.name(),
            chooses,
            axis: pool.chooses.axis(),
            from: loads.first().copied().unwrap_or_default(),
            to: loads.last().copied().unwrap_or_default(),
            most_runs: most_runs(pool),
            finished: chosen.finished.iter().map(id).collect(),
            next: chosen.next.as_ref().map(id),
            standing: chosen.to_string(),
            confirms,
        }
    }

    /// What a reader wants to know before it runs, and after.
    pub(super) fn words(&self) -> String {
        if self.next.is_none() {
            return format!("{}: {}", self.cell, self.standing);
        }
        let unit = if self.axis == "qps" { "qps" } else { "in flight" };
        let most = counted(self.most_runs, "run");
        let confirms = self.confirms.as_ref().map(|window| format!(", the last with a window of {window}"));
        let so_far = if self.finished.is_empty() { String::new() } else { format!("; {}", self.standing) };
        format!(
            "{}: {} to {} {unit}, at most {most}{}{so_far}",
            self.cell,
            self.from,
            self.to,
            confirms.unwrap_or_default()
        )
    }
}
