//! The interface through which the choice of the next run accesses the results of finished runs. It is
//! independent of how the results are computed.

use crate::analysis::halving::Says;
use crate::analysis::highest::Seen;
use crate::analysis::search::{Probe, Short};
use crate::analysis::slo::Answer;
use crate::expand::PlannedRun;
use crate::plan::Aim;
use crate::plan::model::search::Objective;

/// The combined result of the finished runs at one load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Said {
    /// Whether the load meets the objective; `None` if no run is valid.
    pub answer: Option<Answer>,
    /// Whether the load exceeds the server's capacity: more requests arrived than the server completed.
    pub is_saturated: bool,
    /// Whether a run is invalid because too many requests failed, or was given up because the server does
    /// not sustain the load.
    pub is_failed: bool,
    /// Cost of a million output tokens in the most expensive run; `None` unless it is known for every run.
    pub cost: Option<f64>,
    /// The largest ratio of an observed value to its limit in the objective; infinite if a percentile falls
    /// among failed requests. `None` if no value was observed.
    pub pressure: Option<f64>,
    /// Number of requests in the measure windows of the runs.
    pub requests: u64,
    /// The metric for which one of the runs has too few requests; `None` if all runs have enough.
    pub short: Option<Short>,
    /// Whether the runs met the objective in what was seen, whether or not this is shown; `None` if nothing was
    /// seen.
    pub met: Option<bool>,
    /// How much longer the runs must be to show whether the load meets the objective; `None` if this is shown,
    /// or if no reasonable length suffices.
    pub needs: Option<Longer>,
}

/// How much longer the runs of a load must be to show whether the load meets the objective, if the share of
/// requests above each limit stays the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Longer {
    /// The factor by which all runs together must become longer.
    pub times: f64,
    /// The further time, in seconds.
    pub seconds: f64,
}

impl Said {
    /// Converts the result of a single run to the form that a search uses. `together` is the combined result of
    /// this run and the earlier runs at its load. `own` states whether this search requested the run.
    pub fn probe(&self, together: &Said, (load, confirms): (f64, bool), own: bool) -> Probe {
        let Said { answer, pressure, requests, short, .. } = *self;
        let grows = together.needs.filter(|_| together.met == Some(true)).map(|needs| needs.times);
        Probe { load, confirms, own, answer, pressure, requests, short, together: together.answer, grows }
    }

    /// Returns what the runs show about the highest load that meets the objective.
    pub fn seen(&self, load: f64) -> Seen {
        Seen { load, answer: self.answer, met: self.met }
    }
}

/// The result of a finished run in a search for the best settings of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Tried {
    /// The measured value of the metric to optimize, or what the lack of a value means for the run's setting.
    pub says: Says,
    /// Why the value is missing, such as `invalid: client_late`; `None` if there is a value.
    pub why: Option<String>,
    /// How the run's server started; `None` if the plan does not launch it.
    pub start: Option<ServerStarted>,
}

/// A start of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerStarted {
    /// Time of the start, which distinguishes it from other starts.
    pub at: String,
    /// Time from the start until the server was ready and had responded, in seconds.
    pub seconds: f64,
}

/// Access to the results of finished runs.
pub trait Judge {
    /// Whether the run is finished: it has a result or was given up.
    fn is_finished(&self, run: &PlannedRun) -> bool;
    /// Returns the combined result of these finished runs, all at the same load, for an objective.
    fn said(&self, runs: &[&PlannedRun], of: Objective) -> Said;
    /// Returns the result of this finished run for a search that optimizes `aim`.
    fn tried(&self, run: &PlannedRun, aim: Aim) -> Tried;
}
