//! Searches and ladders in a preview: which of their runs come, only measuring tells; how they stand, and what they may take, is known.

use schemars::JsonSchema;
use serde::Serialize;

use crate::expand::{Chooses, Pool};
use crate::plan::model::search::Objective;
use crate::sweep::choose::{Chosen, Part, most_runs};
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
    /// What loads count: `qps`, `conversations per second`, `in flight`, or `users` of conversations.
    pub unit: &'static str,
    /// Runs that it takes at most, those that are there among them.
    pub most_runs: usize,
    /// Full ids of its runs that are there, in the order in which they were asked for: the evidence of its decisions.
    pub finished: Vec<String>,
    /// Full id of the run that it asks for next; null at its end.
    pub next: Option<String>,
    /// How it stands, or how it ended, in words.
    pub standing: String,
    /// Of a search: each objective that `meets` asks for, in its order, then further limits of the plan's objective; empty of a ladder.
    pub answers: Vec<AnswerState>,
    /// Of a search: the latency that the lightest load above the answer misses by most; null where one alone is limited, and where none is
    /// missed, as where the server does not keep up.
    pub binds: Option<&'static str>,
    #[serde(skip)]
    confirms: Option<String>,
}

/// What a search says of one objective.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AnswerState {
    /// `slo`, all limits on latencies together; `ttft`, `itl`, `tpot` or `e2e`, those on it alone; or `cost_per_million`.
    pub objective: &'static str,
    /// Whether `meets` asks for it. What is not asked has no answer: runs that were made for others say what they say.
    pub asked: bool,
    /// The highest load that meets it; of `cost_per_million` the lowest from which on it is kept. Null without an answer.
    pub found: Option<f64>,
    /// The lightest load above `found` that missed it; of `cost_per_million` the heaviest below. Null where there is none.
    pub misses: Option<f64>,
    /// How its search ended; null while it goes on, and where it is not asked. Of `cost_per_million` `below_range` says that the lightest load
    /// keeps it, `above_range` that none does, `unknown` that nobody counted tokens.
    pub end: Option<&'static str>,
    /// The highest load that met it below every load that did not, as far as runs show; of `cost_per_million` the highest that did not.
    pub low: Option<f64>,
    /// The lowest load above that which did not; of `cost_per_million` the lowest that did.
    pub high: Option<f64>,
}

impl From<&Part> for AnswerState {
    fn from(part: &Part) -> AnswerState {
        let ((found, misses), (low, high)) = (part.found(), part.between);
        AnswerState { objective: part.of.name(), asked: part.is_asked, found, misses, end: part.end(), low, high }
    }
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
            Chooses::Search(search) => ("search", search.confirm.map(|window| window.to_string())),
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
            unit: pool.unit(),
            standing: chosen.to_string(),
            answers: chosen.parts.iter().map(AnswerState::from).collect(),
            binds: chosen.binds.map(Objective::name),
            confirms,
        }
    }

    /// What a reader wants to know before it runs, and after.
    pub(super) fn words(&self) -> String {
        if self.next.is_none() {
            return format!("{}: {}", self.cell, self.standing);
        }
        let most = counted(self.most_runs, "run");
        let confirms = self.confirms.as_ref().map(|window| format!(", the last with a window of {window}"));
        let so_far = if self.finished.is_empty() { String::new() } else { format!("; {}", self.standing) };
        format!(
            "{}: {} to {} {}, at most {most}{}{so_far}",
            self.cell,
            self.from,
            self.to,
            self.unit,
            confirms.unwrap_or_default()
        )
    }
}
