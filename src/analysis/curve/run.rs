//! What a curve is made of: runs with a result, and runs that were given up.

use crate::analysis::saturation;
use crate::analysis::slo::{Answer, SloTest};
use crate::analysis::tokens::MeanTokens;
use crate::analysis::{PlanMetrics, RunMetrics, Verdict};
use crate::rows::{GivenUp, RunLabels};

/// Reasons of a verdict that may be the exception among repeats.
pub(crate) const EXCEPTIONS: [&str; 2] = ["paused", "errors_bunched"];

/// One run with all that a curve needs of it.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// The plan's sweep.
    pub sweep: &'a str,
    /// What names it.
    pub labels: &'a RunLabels,
    /// Its metrics.
    pub metrics: &'a RunMetrics,
    /// Its metrics under the plan.
    pub plan_metrics: &'a PlanMetrics,
    /// What it is worth.
    pub verdict: &'a Verdict,
    /// Whether its server kept up with what came; none in closed loops. Of all its requests, also where the metrics are of a class.
    pub saturation: Option<saturation::Evidence>,
    /// The plan's limits on latencies, tested on it.
    pub slo: &'a [SloTest],
    /// Whether its tokens cost no more than the plan's objective allows; none where it sets no limit.
    pub cost: Option<Answer>,
    /// How long its requests were.
    pub tokens: MeanTokens,
}

/// One run that was given up: it has a load, a reason, and nothing else.
#[derive(Debug, Clone, Copy)]
pub struct GivenUpRun<'a> {
    /// The plan's sweep.
    pub sweep: &'a str,
    /// What names it.
    pub labels: &'a RunLabels,
    /// Why.
    pub given_up: &'a GivenUp,
    /// Whether the plan has an objective.
    pub objective: bool,
}

/// What a curve is made of.
#[derive(Debug, Clone, Copy)]
pub enum Point<'a> {
    /// A run with a result.
    Measured(Run<'a>),
    /// A run without one.
    GivenUp(GivenUpRun<'a>),
}

impl<'a> From<Run<'a>> for Point<'a> {
    fn from(run: Run<'a>) -> Point<'a> {
        Point::Measured(run)
    }
}

impl<'a> Point<'a> {
    /// The sweep and what names the run.
    pub(super) fn names(&self) -> (&'a str, &'a RunLabels) {
        match self {
            Point::Measured(run) => (run.sweep, run.labels),
            Point::GivenUp(run) => (run.sweep, run.labels),
        }
    }
}

impl Run<'_> {
    /// Whether the plan's objective was tested on it.
    pub(super) fn is_tested(&self) -> bool {
        self.cost.is_some() || !self.slo.is_empty()
    }

    /// Whether it is invalid because so many of its requests failed, and for nothing that the client did.
    pub(crate) fn is_failed(&self) -> bool {
        let of_server = |name| name == "errors" || EXCEPTIONS.contains(&name);
        self.verdict.invalid().any(|name| name == "errors") && self.verdict.invalid().all(of_server)
    }
}
