//! The state of a running sweep as data: shown on screens and read by programs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::store::Moment;

/// Format of `live.json`. It is increased when a reader of the old format would misread the new one.
pub(crate) const FORMAT: u32 = 1;

/// The state of a running sweep: `live.json` in the results folder, which is replaced about once per second
/// and removed at the end. It is valid only while its process holds the folder's lock.
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

/// A running sweep.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LiveSweep {
    /// Number of runs of the selection, as far as they are known.
    pub(crate) runs: usize,
    /// Whether there may be more runs, because searches or ladders are in progress, or sweeps wait for an
    /// earlier one.
    pub(crate) may_grow: bool,
    /// Runs that this sweep does not execute, because they have results or are skipped.
    pub(crate) settled: usize,
    /// Runs that it has committed.
    pub(crate) committed: usize,
    /// Runs that failed.
    pub(crate) failed: usize,
    /// Runs that were given up.
    pub(crate) given_up: usize,
    /// Runs that were skipped.
    pub(crate) skipped: usize,
    /// Estimated remaining time, in seconds; null before the first run is known, and after the last one.
    pub(crate) left_s: Option<f64>,
    /// Whether a stop was requested.
    pub(crate) stopping: bool,
    /// Active runs.
    pub(crate) running: Vec<LiveRun>,
    /// Endpoints that the sweep waits for.
    pub(crate) waiting: Vec<LiveWait>,
    /// The latest problem, which is a run that failed, was spoiled or was given up, with its reason; null
    /// if there was none.
    pub(crate) last_trouble: Option<String>,
}

impl LiveSweep {
    /// The number of runs: `12`, or `12+` if there may be more.
    pub(crate) fn all(&self) -> String {
        format!("{}{}", self.runs, if self.may_grow { "+" } else { "" })
    }

    /// The number of its runs that are finished or settled.
    pub(crate) fn done(&self) -> usize {
        self.settled + self.committed + self.failed + self.given_up + self.skipped
    }
}

/// An active run. Rates and latencies cover its last five seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LiveRun {
    /// Its number among the runs of the selection, from 1.
    pub(crate) number: usize,
    /// Its id.
    pub(crate) id: String,
    /// Its name for people.
    pub(crate) name: String,
    /// The state of the search or ladder that requested it, such as `between 24 and 28 qps, 6 runs so far`;
    /// null if none did.
    #[serde(default)]
    pub(crate) standing: Option<String>,
    /// Its current phase.
    pub(crate) phase: LivePhase,
    /// Seconds since the phase began.
    pub(crate) phase_s: f64,
    /// Planned length of the phase, in seconds; an upper bound for `drain`, null for `settle`.
    pub(crate) phase_length_s: Option<f64>,
    /// Minimum number of requests of the window, if its planned time is over and that number is not reached
    /// yet; else null.
    pub(crate) requests_wanted: Option<u64>,
    /// Requests of the window so far.
    pub(crate) requests_in_window: u64,
    /// Maximum length of the window, in seconds; null if the plan does not set one.
    pub(crate) at_most_s: Option<f64>,
    /// Requests in flight.
    pub(crate) in_flight: u64,
    /// Requests that are due and wait for the in-flight cap.
    pub(crate) waiting: u64,
    /// Requests sent per second; null at the very beginning.
    pub(crate) sent_per_s: Option<f64>,
    /// Requests per second that the plan currently requires; null in a closed loop.
    pub(crate) wanted_per_s: Option<f64>,
    /// Median time to first token of successful responses, in milliseconds; null if there was none
    /// recently.
    pub(crate) ttft_ms: Option<f64>,
    /// Median time per output token of successful responses, in milliseconds; null if there was none
    /// recently.
    pub(crate) tpot_ms: Option<f64>,
    /// Token events received per second; null at the very beginning.
    pub(crate) tokens_per_s: Option<f64>,
    /// Requests that have ended, with any outcome.
    pub(crate) ended: u64,
    /// Requests that have failed.
    pub(crate) failed: u64,
    /// The error of the latest failed request; null if none failed.
    pub(crate) latest_failure: Option<String>,
}

/// The phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub(crate) enum LivePhase {
    /// It waits for the server to finish earlier work.
    Settle,
    /// It sends nothing to the server.
    Idle,
    /// The load rises.
    Fill,
    /// The load has risen, and the window has not started yet.
    Stabilize,
    /// The window.
    Measure,
    /// The last requests of the window are finishing.
    Drain,
}

/// An endpoint that the sweep waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LiveWait {
    /// Its name.
    pub(crate) endpoint: String,
    /// The reason.
    pub(crate) reason: String,
    /// Time waited so far, in seconds.
    pub(crate) waited_s: f64,
    /// Maximum waiting time, in seconds; null if there is no known bound.
    pub(crate) within_s: Option<f64>,
}
