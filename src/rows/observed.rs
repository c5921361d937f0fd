//! The generator's observations of itself during a run: CPU time by thread, waiting for a core, stalls,
//! delays.
//!
//! All values cover the time between two observations, one at the start of the measure window and one at
//! its end; `for_ns` is the time between them. Values that the platform does not report are absent.

use serde::{Deserialize, Serialize};

/// The generator's observations of itself during the measure window.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    /// Time between the two observations, in nanoseconds. This is the length of the window, as precisely
    /// as the observer met its borders.
    pub for_ns: u64,
    /// CPU time of the whole process, in nanoseconds; never less than the CPU time of all its
    /// threads together.
    pub process_cpu_ns: u64,
    /// The threads of the run: `io`, or `executor` and `io-1`, `io-2`, … if there are several; `writer`,
    /// `content`, `canary`.
    pub threads: Vec<ThreadTime>,
    /// The whole machine, as counted by the kernel.
    pub machine: Option<MachineTime>,
    /// Lateness of the requests of the window: sent − released − connecting.
    pub lateness: Option<Spread>,
    /// Read delay of the requests of the window: our read − the kernel's timestamp, at the first token.
    pub read_delay: Option<Spread>,
    /// Delay of the wake-ups of a thread that only sleeps, every 10 ms: stalls of the machine or of the
    /// process.
    pub wakes: Option<Spread>,
    /// Delay of an I/O thread in handling a timer that fired, every 20 ms: stalls of the loop that sends
    /// and reads.
    pub turns: Option<Spread>,
    /// Maximum number of batches of records that waited for the writer at once.
    pub writer_backlog_max: u64,
    /// Number of batches that may wait before the engine has to wait itself.
    pub writer_backlog_limit: u64,
}

/// One thread of the generator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadTime {
    /// The name of the thread.
    pub name: String,
    /// CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// Time spent runnable without a core, in nanoseconds, if the kernel counts it (`schedstat`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ns: Option<u64>,
}

impl ThreadTime {
    /// Whether this is a thread that sends and reads.
    pub fn is_io(&self) -> bool {
        self.name == "io" || self.name.starts_with("io-")
    }
}

/// The machine that the generator ran on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineTime {
    /// Number of its cores.
    pub cores: u32,
    /// CPU time of all processes, including ours, in nanoseconds; exact to one tick of the kernel per core.
    pub busy_ns: u64,
    /// CPU time that the hypervisor gave to others, in nanoseconds.
    pub stolen_ns: u64,
}

/// The times in which no part of sweepline ran: a thread that only sleeps was woken at least 100 ms late.
/// This includes the pauses that affect the measurement: in the window, in the drain while requests of the
/// window were in flight, and before the window if the pause ended less than its own length before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pauses {
    /// Pauses in which the thread did not wait for a core: the process or the machine was stopped.
    pub stopped: Standstill,
    /// Pauses in which the thread waited for a core at least half of the time, because others had
    /// the cores.
    pub starved: Standstill,
}

/// Pauses of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standstill {
    /// Number of pauses.
    pub count: u64,
    /// Total time of these pauses within the measure window, in nanoseconds.
    pub in_window_ns: u64,
    /// The longest pause, in nanoseconds, including the parts before and after the window.
    pub longest_ns: u64,
}

/// A distribution, from a histogram: percentiles are exact within 4 %, the largest value is exact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// Number of values.
    pub count: u64,
    /// Median, in nanoseconds.
    pub p50_ns: u64,
    /// 99th percentile, in nanoseconds.
    pub p99_ns: u64,
    /// Largest value, in nanoseconds.
    pub max_ns: u64,
}

impl Observed {
    /// Returns the threads that send and read.
    pub fn io_threads(&self) -> impl Iterator<Item = &ThreadTime> {
        self.threads.iter().filter(|thread| thread.is_io())
    }

    /// Returns the thread with this name.
    pub fn thread(&self, name: &str) -> Option<&ThreadTime> {
        self.threads.iter().find(|thread| thread.name == name)
    }

    /// Returns `nanos` as a share of the observed time; 0 if nothing was observed.
    pub fn share(&self, nanos: u64) -> f64 {
        if self.for_ns == 0 { 0.0 } else { nanos as f64 / self.for_ns as f64 }
    }

    /// CPU time of other processes of the machine, in nanoseconds.
    pub fn others_ns(&self) -> Option<u64> {
        self.machine.map(|machine| machine.busy_ns.saturating_sub(self.process_cpu_ns))
    }
}
