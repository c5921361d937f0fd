//! The processes that sent shares of a run's load, if there were several.

use serde::{Deserialize, Serialize};

use super::observed::{Observed, Pauses};

/// A process that sent a share of a run's load. Worker w of N sent every request whose number modulo N is w.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Worker {
    /// Name of the process, such as `worker 1` for w = 0.
    pub name: String,
    /// The machine that the process ran on.
    pub host: String,
    /// Number of requests that the process recorded.
    pub requests: u64,
    /// The offset of the process's monotonic clock from the coordinator's clock.
    pub clock: ClockOffset,
    /// Delay between the common start and the start of the process's run clock, in nanoseconds.
    pub started_late_ns: u64,
    /// Duration of the run on the process's monotonic clock, in nanoseconds.
    pub monotonic_ns: u64,
    /// Duration of the run on the process's wall clock, in nanoseconds; negative if the clock was set back.
    pub wall_ns: i64,
    /// Duration of the run on the clock that keeps running while the machine is suspended, in nanoseconds;
    /// null if the platform has no such clock.
    pub boottime_ns: Option<u64>,
    /// CPU time of the process during the run, in nanoseconds; null if unknown.
    pub cpu_ns: Option<u64>,
    /// Number of cores that the process may use.
    pub cores: u32,
    /// The process's observations of itself.
    pub observed: Option<Observed>,
    /// The times in which no part of the process ran.
    pub pauses: Option<Pauses>,
}

/// The difference between the worker's and the coordinator's monotonic clocks, measured by round trips as
/// in NTP (RFC 5905): the midpoint of the fastest exchange is taken as the time at which the worker's clock
/// was read.
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
    /// Returns the name of the process and its machine.
    pub fn called(&self) -> String {
        format!("{} ({})", self.name, self.host)
    }
}
