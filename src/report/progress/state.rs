//! The state of a running sweep as data, which displays show and programs read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::report::format::duration;
use crate::store::Moment;
use crate::units::text::counted;

/// Version of the format of `live.json`. It is increased when a program that reads the old format would
/// misread the new one.
pub(crate) const FORMAT: u32 = 1;

/// The state of a running sweep: `live.json` in the results folder, which is replaced about once per second
/// and removed at the end. The state is valid only while the process that wrote it holds the folder's lock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LiveFile {
    /// Format of this file: 1.
    pub(crate) format: u32,
    /// The plan's name.
    pub(crate) plan: String,
    /// The id of the process that runs the sweep.
    pub(crate) pid: u32,
    /// When the sweep began.
    pub(crate) started: Moment,
    /// When this state was written.
    pub(crate) written: Moment,
    /// The sweep.
    pub(crate) sweep: LiveSweep,
}

/// The state of a running sweep.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LiveSweep {
    /// Number of runs of the selection, as far as they are known.
    pub(crate) runs: usize,
    /// Whether there may be more runs, because searches or ladders are in progress, or sweeps wait for an
    /// earlier sweep.
    pub(crate) may_grow: bool,
    /// Runs that this sweep does not execute, because they have results or are skipped.
    pub(crate) settled: usize,
    /// Runs that this sweep has committed.
    pub(crate) committed: usize,
    /// Runs that failed.
    pub(crate) failed: usize,
    /// Runs that were given up.
    pub(crate) given_up: usize,
    /// Runs that were skipped.
    pub(crate) skipped: usize,
    /// Estimated remaining time, in seconds; null before the first run is known, and after the last one. The
    /// starts in `starts_not_measured` are not included.
    pub(crate) left_s: Option<f64>,
    /// Number of server starts to come whose duration is unknown, because no start of the endpoint was measured
    /// so far.
    #[serde(default)]
    pub(crate) starts_not_measured: usize,
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
    /// Returns the number of runs as text: `12`, or `12+` if there may be more.
    pub(crate) fn all(&self) -> String {
        format!("{}{}", self.runs, if self.may_grow { "+" } else { "" })
    }

    /// Returns the remaining time as text: `about 45s left, plus 20 server starts, not yet measured`; `None` while
    /// it is unknown.
    pub(crate) fn left(&self) -> Option<String> {
        let left = format!("about {} left", duration(self.left_s?.ceil() as u64));
        Some(match self.starts_not_measured {
            0 => left,
            starts => format!("{left}, plus {}, not yet measured", counted(starts, "server start")),
        })
    }

    /// Returns the number of runs that are finished or settled.
    pub(crate) fn done(&self) -> usize {
        self.settled + self.committed + self.failed + self.given_up + self.skipped
    }
}

/// An active run. Rates and latencies cover the last five seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LiveRun {
    /// The number of the run among the runs of the selection, from 1.
    pub(crate) number: usize,
    /// The id of the run.
    pub(crate) id: String,
    /// The name of the run for human readers.
    pub(crate) name: String,
    /// The state of the search or ladder that requested the run, such as `between 24 and 28 qps, 6 runs so
    /// far`; null for other runs.
    #[serde(default)]
    pub(crate) standing: Option<String>,
    /// The current phase of the run.
    pub(crate) phase: LivePhase,
    /// Seconds since the phase began.
    pub(crate) phase_s: f64,
    /// Planned length of the phase, in seconds; an upper bound for `drain`, null for `settle`.
    pub(crate) phase_length_s: Option<f64>,
    /// Minimum number of requests of the window, if the window's planned time is over and this number is not
    /// reached yet; otherwise null.
    pub(crate) requests_wanted: Option<u64>,
    /// Number of requests of the window so far.
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
    /// The run waits for the server to finish earlier work.
    Settle,
    /// The run sends nothing to the server.
    Idle,
    /// The load rises to its planned level.
    Fill,
    /// The load has reached its planned level, and the window has not started yet.
    Stabilize,
    /// The window, in which requests are measured.
    Measure,
    /// The last requests of the window are finishing.
    Drain,
}

/// An endpoint that the sweep waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LiveWait {
    /// The name of the endpoint.
    pub(crate) endpoint: String,
    /// The reason for the wait.
    pub(crate) reason: String,
    /// Time waited so far, in seconds.
    pub(crate) waited_s: f64,
    /// Maximum waiting time, in seconds; null if there is no known bound.
    pub(crate) within_s: Option<f64>,
}
