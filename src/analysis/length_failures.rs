//! Failures by the requested length of the response, of runs that send `ignore_eos`. A server that cannot go on after the
//! model has ended its response fails the longer responses.

use std::collections::BTreeMap;

use crate::rows::{Facts, Measured, Outcome};

use super::window;

/// Numbers of requests of the window, and of those that the server failed midway, by the requested length: the key is
/// the power of two of tokens from which lengths belong to the entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LengthFailures(pub BTreeMap<u32, LengthCount>);

/// The requests of one range of lengths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LengthCount {
    /// Number of requests that ended, other than by a limit of the client.
    pub requests: u64,
    /// Number of these that the server failed after it had sent text.
    pub failed: u64,
}

impl LengthFailures {
    /// Counts the requests of a run; empty if the run does not send `ignore_eos`.
    pub(crate) fn of(rows: &[Measured], facts: &Facts) -> LengthFailures {
        let mut counts = BTreeMap::<u32, LengthCount>::new();
        let members = window::members(rows, facts).filter(|_| facts.ignore_eos && facts.stream);
        for row in members.filter(|row| row.requested_tokens > 0) {
            let failed = row.events > 0 && is_servers(row.outcome);
            if !failed && !row.outcome.is_ok() {
                continue;
            }
            let count = counts.entry(1 << row.requested_tokens.ilog2()).or_default();
            count.requests += 1;
            count.failed += u64::from(failed);
        }
        LengthFailures(counts)
    }
}

/// Whether a response that failed like this was failed by the server.
fn is_servers(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::StreamError | Outcome::Aborted | Outcome::Malformed | Outcome::Reset)
}
