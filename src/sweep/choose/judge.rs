//! The interface that is used to read finished runs when choosing the next one, independent of how their
//! results are computed.

use crate::analysis::halving::Says;
use crate::analysis::search::{Probe, Short};
use crate::analysis::slo::Answer;
use crate::expand::PlannedRun;
use crate::plan::Aim;
use crate::plan::model::search::Objective;

/// The combined result of the finished runs of one load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Said {
    /// Whether the load meets the objective; `None` if there is no valid run.
    pub answer: Option<Answer>,
    /// Whether more requests arrived than the server completed.
    pub is_saturated: bool,
    /// Whether a run is invalid because too many requests failed, or was given up because the server
    /// rejects the load.
    pub is_failed: bool,
    /// Cost of a million output tokens in the most expensive run; `None` unless it is known for every run.
    pub cost: Option<f64>,
    /// The largest ratio of an observed value to its limit in the objective; infinite if a percentile
    /// falls among failed requests.
    pub pressure: Option<f64>,
    /// Number of requests in the windows of the runs.
    pub requests: u64,
    /// The metric for which one of the runs has too few requests; `None` if each run has enough.
    pub short: Option<Short>,
}

impl Said {
    /// Returns the result of a single run as a search uses it; `own` states whether the search
    /// requested the run.
    pub fn probe(&self, (load, confirms): (f64, bool), own: bool) -> Probe {
        let Said { answer, pressure, requests, short, .. } = *self;
        Probe { load, confirms, own, answer, pressure, requests, short }
    }
}

/// The result of a finished run, as a result for the settings of its server.
#[derive(Debug, Clone, PartialEq)]
pub struct Tried {
    /// The value of the metric to optimize; `None` if there is none.
    pub says: Says,
    /// Why the value is missing: `invalid: client_late`; `None` if there is a value.
    pub why: Option<String>,
    /// How the run's server started, if the plan launches it.
    pub start: Option<ServerStarted>,
}

/// A start of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerStarted {
    /// Time of the start, which distinguishes it from other starts.
    pub at: String,
    /// Time until the server was ready and had responded, in seconds.
    pub seconds: f64,
}

/// Access to the results of finished runs.
pub trait Judge {
    /// Whether the run has ended for good: with a result, or given up.
    fn is_finished(&self, run: &PlannedRun) -> bool;
    /// Returns the combined result of these finished runs of one load for an objective.
    fn said(&self, runs: &[&PlannedRun], of: Objective) -> Said;
    /// Returns the result of this finished run for the settings of its server.
    fn tried(&self, run: &PlannedRun, aim: Aim) -> Tried;
}
