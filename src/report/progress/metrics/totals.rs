//! The totals over the runs of one group since the command began.

use std::collections::BTreeMap;

use crate::engine::{Progress, Total};

/// A number of durations and their sum.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Times {
    /// The number of durations.
    pub(super) count: u64,
    /// The sum of the durations, in nanoseconds.
    pub(super) nanos: u64,
}

/// Counters of a group of runs. They only increase.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Totals {
    /// Requests that have ended, by outcome.
    pub(super) ended: BTreeMap<String, u64>,
    /// Token events received.
    pub(super) token_events: u64,
    /// The times to first token.
    pub(super) ttft: Times,
    /// The times per output token.
    pub(super) tpot: Times,
    /// The delays from the release of requests until they were sent, without the time for connecting.
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
    /// Adds the current counts of an attempt at a run.
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
