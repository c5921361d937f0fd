//! Rows of the table of runs, before they are turned into cells.

use crate::analysis::slo::{Answer, SloTest};
use crate::analysis::{MeanTokens, PlanMetrics, RunMetrics, Verdict};
use crate::rows::{GivenUp, RunLabels};

use super::facts::{DeclaredFacts, FoundHosts};

/// One run with everything that a table shows about it. A run that belongs to two sweeps has two rows.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    /// Name of the plan; `None` without a plan.
    pub plan: Option<String>,
    /// Name of the sweep; `None` without a plan.
    pub sweep: Option<String>,
    /// The run's labels.
    pub labels: RunLabels,
    /// The class of a mix that the row covers; `None` for the whole run.
    pub class: Option<String>,
    /// When the run started, as an RFC 3339 text.
    pub started: String,
    /// The run's verdict.
    pub verdict: Verdict,
    /// The run's metrics.
    pub metrics: RunMetrics,
    /// The run's metrics that depend on the plan.
    pub(crate) plan_metrics: PlanMetrics,
    /// Results of testing the plan's latency limits on the run; empty for classes.
    pub slo: Vec<SloTest>,
    /// Whether the run's tokens cost no more than the objective allows; `None` without a cost limit.
    pub cost: Option<Answer>,
    /// Number of the run's hooks that failed; `None` if it had no hooks.
    pub hooks_failed: Option<u64>,
    /// The mean lengths of the run's requests.
    pub tokens: MeanTokens,
    /// The server and the machine, as detected.
    pub found: FoundHosts,
    /// The facts that the plan declares about the run.
    pub declared: DeclaredFacts,
    /// Whether the run meets the plan's objective; `None` without an objective, and for classes.
    pub objective: Option<Answer>,
}

/// A run that was given up, which has names and a reason but no numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GivenUpRow {
    /// Name of the plan; `None` without a plan.
    pub plan: Option<String>,
    /// Name of the sweep; `None` without a plan.
    pub sweep: Option<String>,
    /// The labels of the run, with the attempt at which it was given up.
    pub labels: RunLabels,
    /// Start of the attempt at which the run was given up, as an RFC 3339 text.
    pub started: String,
    /// The reason.
    pub given_up: GivenUp,
    /// The facts that the plan declares about the run.
    pub declared: DeclaredFacts,
}

/// Returns the names of the further axes of all runs, sorted.
pub fn axes<'a>(runs: impl Iterator<Item = &'a RunLabels>) -> Vec<String> {
    let names: std::collections::BTreeSet<&String> = runs.flat_map(|labels| labels.axes.keys()).collect();
    names.into_iter().cloned().collect()
}
