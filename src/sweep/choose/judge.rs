//! What is known of finished runs: what choosing asks, and nothing of how it is found out.

use crate::analysis::halving::Says;
use crate::analysis::search::{Probe, Short};
use crate::analysis::slo::Answer;
use crate::expand::PlannedRun;
use crate::plan::Aim;
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
    /// What one of them has too few requests for; none where each has enough.
    pub short: Option<Short>,
}

impl Said {
    /// The same of one run as a search sees it; `own` is whether it asked for the run.
    pub fn probe(&self, (load, confirms): (f64, bool), own: bool) -> Probe {
        let Said { answer, pressure, requests, short, .. } = *self;
        Probe { load, confirms, own, answer, pressure, requests, short }
    }
}

/// What a finished run says of the settings of its server.
#[derive(Debug, Clone, PartialEq)]
pub struct Tried {
    /// What they are to be best at, or why there is none.
    pub says: Says,
    /// Why there is none: `invalid: client_late`; none where there is one.
    pub why: Option<String>,
    /// How its server started, where the plan launches it.
    pub start: Option<ServerStarted>,
}

/// A start of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerStarted {
    /// When, which tells it from other starts.
    pub at: String,
    /// How long it took until the server was ready and had answered, in seconds.
    pub seconds: f64,
}

/// What is known of finished runs.
pub trait Judge {
    /// Whether the run has ended for good: with a result, or given up.
    fn is_finished(&self, run: &PlannedRun) -> bool;
    /// What these finished runs, of one load, say together of an objective.
    fn said(&self, runs: &[&PlannedRun], of: Objective) -> Said;
    /// What this finished run says of the settings of its server.
    fn tried(&self, run: &PlannedRun, aim: Aim) -> Tried;
}
