//! The processes that sent shares of a run's load, if there were several.

use serde::{Deserialize, Serialize};

use super::observed::{Observed, Pauses};

/// A process that sent a share of a run's load: worker w of N sent every request whose number modulo N is w.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Worker {
    /// Its name: `worker 1` for w = 0.
    pub name: String,
    /// The machine that it ran on.
    pub host: String,
    /// Number of requests that it recorded.
    pub requests: u64,
    /// Its monotonic clock compared with the coordinator's.
    pub clock: ClockOffset,
    /// Delay between the common start and the start of its run clock, in nanoseconds.
    pub started_late_ns: u64,
    /// Time passed on its monotonic clock, in nanoseconds.
    pub monotonic_ns: u64,
    /// Time passed on its wall clock, in nanoseconds; negative if it was set back.
    pub wall_ns: i64,
    /// Time passed on its clock that continues during suspend, in nanoseconds, if its platform has such a clock.
    pub boottime_ns: Option<u64>,
    /// CPU time of its process during the run, in nanoseconds, if known.
    pub cpu_ns: Option<u64>,
    /// Number of cores that it may use.
    pub cores: u32,
    /// Its observations of itself.
    pub observed: Option<Observed>,
    /// The times in which no part of it ran.
    pub pauses: Option<Pauses>,
}

/// The difference between two monotonic clocks, measured by round trips as in NTP (RFC 5905): the midpoint of
/// the fastest exchange is taken as the instant at which the worker's clock was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// The worker's clock minus the coordinator's before the run, in nanoseconds.
    pub offset_ns: i64,
    /// Half of the fastest round trip before the run, in nanoseconds: the uncertainty of the offset.
    pub uncertainty_ns: u64,
    /// The offset after the run minus the offset before it, in nanoseconds.
    pub drift_ns: i64,
    /// The uncertainty of the drift, in nanoseconds.
    pub drift_uncertainty_ns: u64,
}

impl Worker {
    /// Returns its name with its machine.
    pub fn called(&self) -> String {
        format!("{} ({})", self.name, self.host)
    }
}
