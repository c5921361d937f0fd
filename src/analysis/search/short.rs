//! What a run has too few requests for.

use crate::plan::Percentile;

/// A percentile that a run has too few requests for: whatever they show, it is not decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Short {
    /// The percentile.
    pub percentile: Percentile,
    /// Requests that it would be of; of gaps between tokens what they are worth.
    pub requests: u64,
    /// The fewest that show that a limit on it is kept, at 95 %.
    pub needs: u64,
}
