//! The totals of the runs of one group since the command began, including the active run.

use std::collections::BTreeMap;

use crate::engine::{Progress, Total};

/// A number of durations and their sum.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Times {
    /// Their number.
    pub(super) count: u64,
    /// Their sum, in nanoseconds.
    pub(super) nanos: u64,
}

/// Counters of a group of runs. They only increase.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Totals {
    /// Requests that have ended, by outcome.
    pub(super) ended: BTreeMap<String, u64>,
    /// Token events received.
    pub(super) token_events: u64,
    /// Time to first token.
    pub(super) ttft: Times,
    /// Time per output token.
    pub(super) tpot: Times,
    /// Lateness of the client.
    pub(super) late: Times,
    /// Attempts that the environment spoiled.
    pub(super) spoiled: u64,
    /// Runs that have ended, by outcome.
    pub(super) runs: BTreeMap<&'static str, u64>,
}

impl Times {
    fn add(&mut self, total: &Total) {
        self.count += total.count();
        self.nanos += total.nanos();
    }
}

impl Totals {
    /// Adds the current counts of a run or of an attempt at a run.
    pub(super) fn add(&mut self, progress: &Progress) {
        for (outcome, count) in progress.recent.outcomes.counts() {
            *self.ended.entry(outcome.to_string()).or_default() += count;
        }
        self.token_events += progress.token_events.get();
        self.ttft.add(&progress.recent.ttft);
        self.tpot.add(&progress.recent.tpot);
        self.late.add(&progress.recent.late);
    }
}
