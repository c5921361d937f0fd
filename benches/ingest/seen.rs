//! What a child process saw of its measurement.

use serde::{Deserialize, Serialize};

/// What a child saw.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Seen {
    /// Whole streams within the window.
    pub streams: u64,
    /// Their tokens.
    pub tokens: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Length of the window.
    pub seconds: f64,
    /// What the instants of its schedule count from, on the monotonic clock, in nanoseconds.
    pub start_monotonic_ns: u64,
    /// The most memory it had, in bytes.
    pub peak_rss: u64,
}
