//! A child process's observations of its measurement.

use serde::{Deserialize, Serialize};

/// The observations of a child.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Seen {
    /// Complete streams within the window.
    pub streams: u64,
    /// Number of tokens of these streams.
    pub tokens: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Length of the window.
    pub seconds: f64,
    /// The origin of the times of its schedule, on the monotonic clock, in nanoseconds.
    pub start_monotonic_ns: u64,
    /// Maximum number of streams that were read on at once after `[DONE]`.
    pub held_open: u64,
    /// Peak memory of the child, in bytes.
    pub peak_rss: u64,
}
