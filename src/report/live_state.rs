//! What a running sweep says of itself to other processes: the same figures as the live lines, as data. `live.json` holds it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::format::plain;
use super::live::Live;
use crate::store::Moment;

/// Format of `live.json`; raised when a reader of the old one would misread the new.
pub(crate) const FORMAT: u32 = 1;

/// What a running sweep says of itself: `live.json` in the results folder, replaced about once a second and removed at the end. It is
/// true only while the process that it names holds the folder's lock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LiveState {
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
    /// Runs of the selection.
    pub(crate) runs: usize,
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
    /// Seconds that what is left takes, as far as is known; null before the first run is known.
    pub(crate) left_s: Option<f64>,
    /// Whether it was told to stop.
    pub(crate) stopping: bool,
    /// The runs under way.
    pub(crate) under_way: Vec<LiveRun>,
    /// What is waited for.
    pub(crate) waits: Vec<LiveWait>,
    /// What went wrong last: a run that failed, was spoiled or given up, with its reason; null where nothing did.
    pub(crate) last_trouble: Option<String>,
}

/// A run under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LiveRun {
    /// Its number among the runs of the selection, from 1.
    pub(crate) number: usize,
    /// Its full id.
    pub(crate) id: String,
    /// What it is called.
    pub(crate) name: String,
    /// What it is doing, and for how long, in words.
    pub(crate) phase: String,
    /// The share of its time that has passed, as far as is known.
    pub(crate) share: f64,
    /// Requests in flight.
    pub(crate) in_flight: u64,
    /// Requests that wait for the in-flight cap.
    pub(crate) waiting: u64,
    /// Requests sent per second in the last seconds; null before there is a rate.
    pub(crate) sent_per_s: Option<f64>,
    /// Requests per second that the plan wants in these seconds; null in a closed loop.
    pub(crate) wanted_per_s: Option<f64>,
    /// Token events received per second in the last seconds.
    pub(crate) tokens_per_s: Option<f64>,
    /// The median time to first token of the last seconds' good answers, in milliseconds; null where there is none.
    pub(crate) ttft_ms: Option<f64>,
    /// The median time per output token of the same, in milliseconds.
    pub(crate) tpot_ms: Option<f64>,
    /// Requests that ended.
    pub(crate) ended: u64,
    /// Requests that failed.
    pub(crate) failed: u64,
    /// What went wrong last; null where nothing did.
    pub(crate) last_failure: Option<String>,
}

/// A server that is waited for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LiveWait {
    /// Its endpoint.
    pub(crate) endpoint: String,
    /// Why.
    pub(crate) reason: String,
    /// Seconds that it was waited for so far.
    pub(crate) waited_s: f64,
    /// Seconds that it may be waited for; null where no bound is known.
    pub(crate) within_s: Option<f64>,
}

impl Live {
    /// What the live lines say, as data.
    pub(super) fn state(&mut self) -> LiveRun {
        self.look();
        let (progress, run) = (&self.progress, &self.run);
        let pace = progress.recent.pace(self.recent_since());
        let [sent_per_s, tokens_per_s] = self.rates();
        let expected = run.expected_ns();
        LiveRun {
            number: run.number,
            id: run.id.to_string(),
            name: plain(&run.name),
            phase: self.phase(),
            share: if expected > 0 { self.gone_ns() as f64 / expected as f64 } else { 0.0 },
            in_flight: progress.in_flight.get(),
            waiting: progress.waiting.get(),
            sent_per_s,
            wanted_per_s: self.wanted(),
            tokens_per_s,
            ttft_ms: pace.ttft_ms,
            tpot_ms: pace.tpot_ms,
            ended: progress.ended.get(),
            failed: progress.failed.get(),
            last_failure: progress.recent.failure().map(|what| plain(&what)),
        }
    }
}
