//! Rows of the table of runs, before they are cells.

use crate::analysis::slo::{Answer, SloTest};
use crate::analysis::{MeanTokens, PlanMetrics, RunMetrics, Verdict};
use crate::rows::{GivenUp, RunLabels};

use super::facts::{DeclaredFacts, FoundHosts};

/// One run with everything a table says about it. Two sweeps that share a run are two rows.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    /// Name of the plan; none without a plan.
    pub plan: Option<String>,
    /// Name of the sweep; none without a plan.
    pub sweep: Option<String>,
    /// What the run's rows carry.
    pub labels: RunLabels,
    /// The class of a mix that the row is about; none for the run as a whole.
    pub class: Option<String>,
    /// When the run started, as an RFC 3339 text.
    pub started: String,
    /// What the run is worth.
    pub verdict: Verdict,
    /// Its metrics.
    pub metrics: RunMetrics,
    /// Its metrics under the plan.
    pub(crate) plan_metrics: PlanMetrics,
    /// The plan's limits on latencies, tested on it; of classes none.
    pub slo: Vec<SloTest>,
    /// Whether its tokens cost no more than the objective allows; none where it sets no limit.
    pub cost: Option<Answer>,
    /// How many of its hooks failed; none where none happened.
    pub hooks_failed: Option<u64>,
    /// How long its requests were.
    pub tokens: MeanTokens,
    /// The server and the machine, as they were found.
    pub found: FoundHosts,
    /// What the plan declares of it.
    pub declared: DeclaredFacts,
    /// Whether the plan's objective holds in it; none without one, and of classes.
    pub objective: Option<Answer>,
}

/// A run that was given up: it has names and a reason, and no number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GivenUpRow {
    /// Name of the plan; none without a plan.
    pub plan: Option<String>,
    /// Name of the sweep; none without a plan.
    pub sweep: Option<String>,
    /// What names the run, with the attempt by which it was given up.
    pub labels: RunLabels,
    /// When that attempt started, as an RFC 3339 text.
    pub started: String,
    /// Why.
    pub given_up: GivenUp,
    /// What the plan declares of the run.
    pub declared: DeclaredFacts,
}

/// Names of the further axes of any of the runs, sorted.
pub fn axes<'a>(runs: impl Iterator<Item = &'a RunLabels>) -> Vec<String> {
    let names: std::collections::BTreeSet<&String> = runs.flat_map(|labels| labels.axes.keys()).collect();
    names.into_iter().cloned().collect()
}
