//! The state of the server just before the load of a run began: whether the server had finished earlier
//! work.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// The pending work that a server reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerLoad {
    /// Number of requests that the server is processing.
    pub running: u64,
    /// Number of requests that wait in the server's queue.
    pub waiting: u64,
}

impl ServerLoad {
    /// Whether the server has no running and no waiting requests.
    pub fn is_none(self) -> bool {
        self.running == 0 && self.waiting == 0
    }
}

/// The last observation of a server's load before a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "asked", rename_all = "snake_case")]
pub enum Seen {
    /// The server's own counts of running and waiting requests.
    Gauge(ServerLoad),
    /// The time of a probe, which lets the server generate one token.
    Probe {
        /// Time to the probe's response, in nanoseconds; `None` if no response arrived within the time
        /// limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ttft_ns: Option<u64>,
        /// The shortest probe time of this server and model since the invocation began, in nanoseconds;
        /// `None` until two probe times agree.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        baseline_ns: Option<u64>,
    },
}

impl fmt::Display for Seen {
    /// Writes the observation: `3 running, 2 waiting`, or `a probe took 900 ms, 40 ms when idle`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Seen::Gauge(ServerLoad { running, waiting }) => write!(f, "{running} running, {waiting} waiting"),
            Seen::Probe { ttft_ns: None, .. } => f.write_str("a probe got no response"),
            Seen::Probe { ttft_ns: Some(ttft), baseline_ns } => {
                write!(f, "a probe took {:.0} ms", Nanos(ttft).millis())?;
                baseline_ns.map_or(Ok(()), |baseline| write!(f, ", {:.0} ms when idle", Nanos(baseline).millis()))
            }
        }
    }
}

/// The state of the server when a run began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Began {
    /// Whether the server had finished earlier work.
    pub idle: bool,
    /// Time spent waiting for the server to finish earlier work, in nanoseconds.
    pub waited_ns: u64,
    /// The endpoint that was checked, if it was not the run's own endpoint but another one on the same
    /// resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The last observation.
    #[serde(flatten)]
    pub seen: Seen,
}

impl Began {
    /// Whether the run's own server did not respond to the probe, and has no gauge that could show why.
    pub fn is_silent(&self) -> bool {
        !self.idle && self.endpoint.is_none() && matches!(self.seen, Seen::Probe { ttft_ns: None, .. })
    }
}
