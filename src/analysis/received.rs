//! Tokens by the part of a run in which their events arrived, regardless of which request they belong to. The
//! parts extend from the run's start to the end of drain.

use crate::rows::Facts;

/// Number of parts of a run.
pub(super) const PARTS: usize = 60;

/// Number of tokens received in each part of a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Received {
    /// Parts per nanosecond; 0 if the run has no length.
    parts_per_ns: f64,
    tokens: [f64; PARTS],
}

impl Received {
    /// Creates empty counts.
    pub(super) fn new(facts: &Facts) -> Received {
        let end = facts.windows.end_ns;
        let parts_per_ns = if end > 0 { PARTS as f64 / end as f64 } else { 0.0 };
        Received { parts_per_ns, tokens: [0.0; PARTS] }
    }

    /// Adds the tokens of one event. Events after the end of drain belong to no part.
    pub(super) fn add(&mut self, at: u64, tokens: f64) {
        if let Some(part) = self.tokens.get_mut((at as f64 * self.parts_per_ns) as usize) {
            *part += tokens;
        }
    }

    /// Returns the number of tokens in each part.
    pub(super) fn tokens(&self) -> &[f64; PARTS] {
        &self.tokens
    }
}
