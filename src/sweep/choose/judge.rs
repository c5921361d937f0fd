//! What is known of finished runs: what choosing asks, and nothing of how it is found out.

use crate::analysis::slo::Answer;
use crate::expand::PlannedRun;
use crate::plan::model::search::Objective;

/// What finished runs of one load say together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Said {
    /// Whether the load meets the objective; none where no run of it says anything.
    pub answer: Option<Answer>,
    /// Whether more came than the server answered.
    pub is_saturated: bool,
    /// Whether so many requests failed that a run is invalid, or a run was given up because the server rejects the load.
    pub is_failed: bool,
    /// What a million output tokens cost in the dearest run; none where that is not known of each.
    pub cost: Option<f64>,
    /// What was observed over its limit, the largest over the limits of the objective; infinite where a percentile lies among failures.
    pub pressure: Option<f64>,
    /// Requests of their windows.
    pub requests: u64,
}

/// What is known of finished runs.
pub trait Judge {
    /// Whether the run has ended for good: with a result, or given up.
    fn is_finished(&self, run: &PlannedRun) -> bool;
    /// What these finished runs, of one load, say together of an objective.
    fn said(&self, runs: &[&PlannedRun], of: Objective) -> Said;
}
