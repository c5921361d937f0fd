//! What a run saw of the generator itself while it measured: CPU time by thread, waiting for a core, stalls, delays.
//!
//! Everything is of the time between two looks, the first at the start of the measure window and the second at its end;
//! `for_ns` says how far apart they were. Absent where the platform does not tell.

use serde::{Deserialize, Serialize};

/// The generator as it observed itself during the measure window.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    /// Time between the two looks, in nanoseconds: the window, as exactly as the observer saw its borders.
    pub for_ns: u64,
    /// CPU time of the whole process, in nanoseconds; never less than that of the threads together.
    pub process_cpu_ns: u64,
    /// The threads of the run: `io`, or `executor` and `io-1`, `io-2`, … where there are several; `writer`, `content`,
    /// `canary`.
    pub threads: Vec<ThreadTime>,
    /// The whole machine, as the kernel counts it.
    pub machine: Option<MachineTime>,
    /// Lateness of the requests of the window: sent − released − connecting.
    pub lateness: Option<Spread>,
    /// Read delay of the requests of the window: our read − the kernel's stamp, at the first token.
    pub read_delay: Option<Spread>,
    /// How late a thread that only sleeps was woken, every 10 ms: stalls of the machine or of the process.
    pub wakes: Option<Spread>,
    /// How late an I/O thread took up a timer that fired, every 20 ms: stalls of the loop that sends and reads.
    pub turns: Option<Spread>,
    /// Most batches of records that waited for the writer at once.
    pub writer_backlog_max: u64,
    /// Batches that may wait before the engine itself has to.
    pub writer_backlog_limit: u64,
}

/// One thread of the generator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadTime {
    /// The name it gave itself.
    pub name: String,
    /// CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// Time that it could have run and had no core, in nanoseconds, where the kernel counts it (`schedstat`).
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
    /// Its cores.
    pub cores: u32,
    /// CPU time of all processes, ours among them, in nanoseconds; exact to one tick of the kernel on each core.
    pub busy_ns: u64,
    /// CPU time that the hypervisor gave to others, in nanoseconds.
    pub stolen_ns: u64,
}

/// The times in which nothing of sweepline ran: a thread that only sleeps was woken 100 ms late or later. Those are told that
/// concern the measurement: in the window, in the drain while its requests were under way, and before the window where they
/// ended less than their own length ago.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pauses {
    /// It did not wait for a core: the process or the machine was stopped.
    pub stopped: Standstill,
    /// For half of the time or more it waited for a core: others had them.
    pub starved: Standstill,
}

/// Pauses of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standstill {
    /// How many there were.
    pub count: u64,
    /// What of them lies in the measure window, in nanoseconds.
    pub in_window_ns: u64,
    /// The longest, in nanoseconds, with what lies before and after the window.
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
    /// The threads that send and read.
    pub fn io_threads(&self) -> impl Iterator<Item = &ThreadTime> {
        self.threads.iter().filter(|thread| thread.is_io())
    }

    /// The thread of this name.
    pub fn thread(&self, name: &str) -> Option<&ThreadTime> {
        self.threads.iter().find(|thread| thread.name == name)
    }

    /// `nanos` as a share of the time observed; 0 where nothing was.
    pub fn share(&self, nanos: u64) -> f64 {
        if self.for_ns == 0 { 0.0 } else { nanos as f64 / self.for_ns as f64 }
    }

    /// CPU time of other processes of the machine, in nanoseconds.
    pub fn others_ns(&self) -> Option<u64> {
        self.machine.map(|machine| machine.busy_ns.saturating_sub(self.process_cpu_ns))
    }
}
