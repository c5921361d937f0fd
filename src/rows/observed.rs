//! The generator's observations of itself during a run: CPU time of each thread, time spent waiting for a
//! core, stalls, and delays.
//!
//! All values cover the time between two observations, one at the start of the measure window and one at
//! its end; `for_ns` is the time between them. Values that the platform does not report are absent.

use serde::{Deserialize, Serialize};

/// The generator's observations of itself during the measure window.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    /// Time between the two observations, in nanoseconds. It differs from the length of the window only by
    /// the delays of the two observations.
    pub for_ns: u64,
    /// CPU time of the whole process, in nanoseconds; never less than the CPU time of all its
    /// threads together.
    pub process_cpu_ns: u64,
    /// The threads of the run: `io` (or `executor` and `io-1`, `io-2`, … if there are several I/O threads),
    /// `writer`, `content` and `canary`.
    pub threads: Vec<ThreadTime>,
    /// CPU time of the whole machine, as counted by the kernel.
    pub machine: Option<MachineTime>,
    /// Lateness of the requests of the window: time of sending minus time of release minus time spent
    /// connecting.
    pub lateness: Option<Spread>,
    /// Read delay of the requests of the window: time at which we read the first token minus the
    /// kernel's timestamp for the token.
    pub read_delay: Option<Spread>,
    /// Delay of the wake-ups of a thread that only sleeps, for 10 ms at a time. It shows stalls of the
    /// machine or of the process.
    pub wakes: Option<Spread>,
    /// Delay of an I/O thread in handling a timer that fires every 20 ms. It shows stalls of the loop that
    /// sends and reads.
    pub turns: Option<Spread>,
    /// Largest number of batches of records that were waiting for the writer at the same time.
    pub writer_backlog_max: u64,
    /// Number of batches that may wait for the writer before the engine is blocked.
    pub writer_backlog_limit: u64,
}

/// One thread of the generator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadTime {
    /// The name of the thread.
    pub name: String,
    /// CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// Time in which the thread was ready to run but had no core, in nanoseconds; null if the kernel does
    /// not count it (`schedstat`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ns: Option<u64>,
}

impl ThreadTime {
    /// Whether this is an I/O thread, which sends requests and reads responses.
    pub fn is_io(&self) -> bool {
        self.name == "io" || self.name.starts_with("io-")
    }
}

/// CPU time of the whole machine that the generator ran on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineTime {
    /// Number of the machine's cores.
    pub cores: u32,
    /// CPU time of all processes, including ours, in nanoseconds. The error is at most one tick of the
    /// kernel for each core.
    pub busy_ns: u64,
    /// CPU time that the hypervisor gave to other virtual machines, in nanoseconds.
    pub stolen_ns: u64,
}

/// Pauses in which no part of sweepline ran, because a thread that only sleeps was woken at least 100 ms
/// late. Only pauses that affect the measurement are included: those in the window, those in the drain
/// while requests of the window were in flight, and those before the window, if the time from the end of
/// the pause to the window was shorter than the pause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pauses {
    /// Pauses in which the thread did not wait for a core: the process or the machine was stopped.
    pub stopped: Standstill,
    /// Pauses in which the thread waited for a core at least half of the time, because other threads or
    /// processes used the cores.
    pub starved: Standstill,
}

/// Pauses of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standstill {
    /// Number of pauses.
    pub count: u64,
    /// Total time of the pauses within the measure window, in nanoseconds.
    pub in_window_ns: u64,
    /// The longest pause, in nanoseconds, including the parts before and after the window.
    pub longest_ns: u64,
}

/// A summary of a histogram. Percentiles are accurate to 4 %, and the largest value is exact.
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
    /// Returns the I/O threads, which send requests and read responses.
    pub fn io_threads(&self) -> impl Iterator<Item = &ThreadTime> {
        self.threads.iter().filter(|thread| thread.is_io())
    }

    /// Returns the thread with this name; `None` if there is none.
    pub fn thread(&self, name: &str) -> Option<&ThreadTime> {
        self.threads.iter().find(|thread| thread.name == name)
    }

    /// Returns `nanos` as a share of the observed time; 0 if nothing was observed.
    pub fn share(&self, nanos: u64) -> f64 {
        if self.for_ns == 0 { 0.0 } else { nanos as f64 / self.for_ns as f64 }
    }

    /// Returns the CPU time of the machine's other processes, in nanoseconds; `None` if the machine was not
    /// observed.
    pub fn others_ns(&self) -> Option<u64> {
        self.machine.map(|machine| machine.busy_ns.saturating_sub(self.process_cpu_ns))
    }
}
