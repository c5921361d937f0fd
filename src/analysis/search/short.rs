//! Percentiles for which a run has too few requests.

use crate::plan::Percentile;

/// A percentile for which a run has too few requests, so a limit on it cannot be decided, whatever the
/// latencies are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Short {
    /// The percentile.
    pub percentile: Percentile,
    /// Number of requests available for the percentile; for gaps between tokens, the effective number of
    /// gaps.
    pub requests: u64,
    /// The minimum number of requests for which the percentile is known, so that the run tells the search something;
    /// it suffices to show at 95 % that a limit is met.
    pub needs: u64,
}
