//! A sweep under way as data, at one instant: what screens draw and programs read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::store::Moment;

/// Format of `live.json`; raised when a reader of the old one would misread the new.
pub(crate) const FORMAT: u32 = 1;

/// What a running sweep says of itself: `live.json` in the results folder, replaced about once a second and removed at the end. It is
/// true only while the process that it names holds the folder's lock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LiveFile {
    /// Format of this file: 1.
    pub(crate) format: u32,
    /// The plan's name.
    pub(crate) plan: String,
    /// The process that runs the sweep.
    pub(crate) pid: u32,
    /// When the sweep began.
    pub(crate) started: Moment,
    /// When this was written.
    pub(crate) written: Moment,
    /// The sweep.
    pub(crate) sweep: LiveSweep,
}

/// A sweep under way.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LiveSweep {
    /// Runs of the selection, as far as they are known.
    pub(crate) runs: usize,
    /// Whether there may be more: searches and ladders go on, or sweeps wait for an earlier one.
    pub(crate) may_grow: bool,
    /// Runs that this sweep does not execute: their results are there, or they are left out.
    pub(crate) settled: usize,
    /// Runs that it has committed.
    pub(crate) committed: usize,
    /// Runs that failed.
    pub(crate) failed: usize,
    /// Runs that were given up.
    pub(crate) given_up: usize,
    /// Runs that were skipped.
    pub(crate) skipped: usize,
    /// Seconds that the rest is going to take as far as the plan tells; null before the first run is known, and behind the last.
    pub(crate) left_s: Option<f64>,
    /// Whether it was told to stop.
    pub(crate) stopping: bool,
    /// Runs under way.
    pub(crate) running: Vec<LiveRun>,
    /// Endpoints that are waited for.
    pub(crate) waiting: Vec<LiveWait>,
    /// What went wrong last: a run that failed, was spoiled or given up, with its reason; null where nothing did.
    pub(crate) last_trouble: Option<String>,
}

impl LiveSweep {
    /// How many runs there are: `12`, or `12+` where there may be more.
    pub(crate) fn all(&self) -> String {
        format!("{}{}", self.runs, if self.may_grow { "+" } else { "" })
    }

    /// How many of its runs need nothing more from it.
    pub(crate) fn done(&self) -> usize {
        self.settled + self.committed + self.failed + self.given_up + self.skipped
    }
}

/// A run under way. Rates and latencies are of its last five seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LiveRun {
    /// Its number among the runs of the selection, from 1.
    pub(crate) number: usize,
    /// Its id.
    pub(crate) id: String,
    /// What people call it.
    pub(crate) name: String,
    /// How the search or ladder stands that asked for it, like `between 24 and 28 qps, 6 runs so far`; null where none did.
    #[serde(default)]
    pub(crate) standing: Option<String>,
    /// What it is doing.
    pub(crate) phase: LivePhase,
    /// Seconds since that began.
    pub(crate) phase_s: f64,
    /// Seconds that it is to take; of `drain` at most, of `settle` null.
    pub(crate) phase_length_s: Option<f64>,
    /// Requests that the window waits for before it may end, where its time has passed and they are not there; else null.
    pub(crate) requests_wanted: Option<u64>,
    /// Requests of the window so far.
    pub(crate) requests_in_window: u64,
    /// Seconds that the window takes at most; null where the plan does not say.
    pub(crate) at_most_s: Option<f64>,
    /// Requests in flight.
    pub(crate) in_flight: u64,
    /// Requests that are due and wait for the in-flight cap.
    pub(crate) waiting: u64,
    /// Requests sent per second; null in the first instants.
    pub(crate) sent_per_s: Option<f64>,
    /// Requests per second that the plan wants now; null in a closed loop.
    pub(crate) wanted_per_s: Option<f64>,
    /// Median time to first token of good answers, in milliseconds; null where none came lately.
    pub(crate) ttft_ms: Option<f64>,
    /// Median time per output token of good answers, in milliseconds; null where none came lately.
    pub(crate) tpot_ms: Option<f64>,
    /// Token events received per second; null in the first instants.
    pub(crate) tokens_per_s: Option<f64>,
    /// Requests that have ended, however.
    pub(crate) ended: u64,
    /// Requests that have failed.
    pub(crate) failed: u64,
    /// What the latest failed request said; null where none failed.
    pub(crate) latest_failure: Option<String>,
}

/// What a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub(crate) enum LivePhase {
    /// It waits for a server that is busy with what came before.
    Settle,
    /// It leaves the server alone.
    Idle,
    /// The load rises.
    Fill,
    /// The load has risen and nothing is measured yet.
    Stabilize,
    /// The window.
    Measure,
    /// The last requests of the window end.
    Drain,
}

/// An endpoint that is waited for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LiveWait {
    /// Its name.
    pub(crate) endpoint: String,
    /// Why.
    pub(crate) reason: String,
    /// Seconds so far.
    pub(crate) waited_s: f64,
    /// Seconds that it is waited for at most; null where no bound is known.
    pub(crate) within_s: Option<f64>,
}
