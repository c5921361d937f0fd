//! A child process's observations of its measurement.

use serde::{Deserialize, Serialize};

/// The observations of a child.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Seen {
    /// Complete streams within the window.
    pub streams: u64,
    /// Their tokens.
    pub tokens: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Length of the window.
    pub seconds: f64,
    /// The origin of its schedule's instants, on the monotonic clock, in nanoseconds.
    pub start_monotonic_ns: u64,
    /// Its peak memory, in bytes.
    pub peak_rss: u64,
}
