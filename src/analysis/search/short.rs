//! Percentiles for which a run has too few requests.

use crate::plan::Percentile;

/// A percentile for which a run has too few requests, so it cannot be decided regardless of their
/// latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Short {
    /// The percentile.
    pub percentile: Percentile,
    /// Number of requests available for it; for gaps between tokens, their effective number.
    pub requests: u64,
    /// The minimum needed to show at 95 % that a limit on it is met.
    pub needs: u64,
}
