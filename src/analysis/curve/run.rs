//! The elements of a curve: runs with a result, and runs that were given up.

use crate::analysis::saturation;
use crate::analysis::slo::{Answer, SloTest};
use crate::analysis::tokens::MeanTokens;
use crate::analysis::{PlanMetrics, RunMetrics, Verdict};
use crate::rows::{GivenUp, RunLabels};

/// Reasons of a verdict that may mark a run as an exception among its repeats.
pub(crate) const EXCEPTIONS: [&str; 2] = ["paused", "errors_bunched"];

/// One run with everything that a curve needs from it.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// The plan's sweep.
    pub sweep: &'a str,
    /// The run's labels.
    pub labels: &'a RunLabels,
    /// The run's metrics.
    pub metrics: &'a RunMetrics,
    /// The run's metrics that depend on the plan.
    pub plan_metrics: &'a PlanMetrics,
    /// The run's verdict.
    pub verdict: &'a Verdict,
    /// Whether the run's server kept up with the arrivals; `None` in closed loops. Covers all
    /// requests of the run, even if the metrics are those of a class.
    pub saturation: Option<saturation::Evidence>,
    /// Results of testing the plan's latency limits on the run.
    pub slo: &'a [SloTest],
    /// Whether the run's tokens cost no more than the plan's objective allows; `None` if the
    /// objective sets no cost limit.
    pub cost: Option<Answer>,
    /// Mean token counts of the run's requests.
    pub tokens: MeanTokens,
}

/// A run that was given up, which has only a load and a reason.
#[derive(Debug, Clone, Copy)]
pub struct GivenUpRun<'a> {
    /// The plan's sweep.
    pub sweep: &'a str,
    /// The run's labels.
    pub labels: &'a RunLabels,
    /// Why the run was given up.
    pub given_up: &'a GivenUp,
    /// Whether the plan has an objective.
    pub objective: bool,
}

/// An element of a curve.
#[derive(Debug, Clone, Copy)]
pub enum Point<'a> {
    /// A run with a result.
    Measured(Run<'a>),
    /// A run that was given up.
    GivenUp(GivenUpRun<'a>),
}

impl<'a> From<Run<'a>> for Point<'a> {
    fn from(run: Run<'a>) -> Point<'a> {
        Point::Measured(run)
    }
}

impl<'a> Point<'a> {
    /// Returns the sweep and the labels of the run.
    pub(super) fn names(&self) -> (&'a str, &'a RunLabels) {
        match self {
            Point::Measured(run) => (run.sweep, run.labels),
            Point::GivenUp(run) => (run.sweep, run.labels),
        }
    }
}

impl Run<'_> {
    /// Returns whether the plan's objective was tested on the run.
    pub(super) fn is_tested(&self) -> bool {
        self.cost.is_some() || !self.slo.is_empty()
    }

    /// Returns whether the run is invalid only because so many of its requests failed, not because
    /// of the client.
    pub(crate) fn is_failed(&self) -> bool {
        let of_server = |name| name == "errors" || EXCEPTIONS.contains(&name);
        self.verdict.invalid().any(|name| name == "errors") && self.verdict.invalid().all(of_server)
    }
}
