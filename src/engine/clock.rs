//! The run's clock. It counts nanoseconds since the run's start on the monotonic clock, and measures how
//! far the system's other clocks have moved in the same time.

#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::time::{ClockId, clock_gettime};

/// Returns the time of a system clock, in nanoseconds.
fn read(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Returns the time of the monotonic clock, in nanoseconds since the machine's start. Times are comparable
/// between processes on one machine.
pub fn monotonic() -> u64 {
    read(ClockId::Monotonic) as u64
}

/// Returns the wall-clock time, in nanoseconds since the Unix epoch. The wall clock may be set at any time.
pub(crate) fn wall() -> i64 {
    read(ClockId::Realtime)
}

/// The clock of one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: ClockSample,
    /// The time of a simulated run, in nanoseconds since its start; `None` if the run is measured.
    #[cfg(debug_assertions)]
    simulated: Option<&'static AtomicU64>,
}

/// The times of all clocks, read at nearly the same moment, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct ClockSample {
    monotonic: u64,
    wall: i64,
    boottime: Option<u64>,
    cpu: u64,
}

impl ClockSample {
    /// Reads all clocks, and reads them again if too much time passed between the first and the last read.
    /// If a busy machine preempted this thread in between, it would look as if a clock had been set.
    fn now() -> ClockSample {
        const TOGETHER_NS: u64 = 1_000_000;
        const TRIES: usize = 50;
        let tries = (0..TRIES).map(|_| {
            let reading = ClockSample::once();
            (monotonic() - reading.monotonic, reading)
        });
        let mut best: Option<(u64, ClockSample)> = None;
        for (took, reading) in tries {
            if best.is_none_or(|(least, _)| took < least) {
                best = Some((took, reading));
            }
            if took < TOGETHER_NS {
                break;
            }
        }
        best.expect("there is at least one attempt").1
    }

    fn once() -> ClockSample {
        ClockSample {
            monotonic: monotonic(),
            wall: wall(),
            #[cfg(target_os = "linux")]
            boottime: Some(read(ClockId::Boottime) as u64),
            #[cfg(not(target_os = "linux"))]
            boottime: None,
            cpu: read(ClockId::ProcessCPUTime) as u64,
        }
    }
}

/// How far each clock moved since the run's start, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passed {
    /// Time passed on the monotonic clock.
    pub monotonic: u64,
    /// Time passed on the wall clock, which may be negative if the clock was set back.
    pub wall: i64,
    /// Time passed on the clock that continues while the machine is suspended; `None` if the system has no
    /// such clock.
    pub boottime: Option<u64>,
    /// CPU time that this process has used.
    pub cpu: u64,
}

impl Clock {
    /// Creates a clock that reads 0 now.
    pub(crate) fn start() -> Clock {
        Clock::from_sample(ClockSample::now())
    }

    fn from_sample(start: ClockSample) -> Clock {
        Clock {
            start,
            #[cfg(debug_assertions)]
            simulated: None,
        }
    }

    /// Creates the clock of a simulated run, which reads 0 until it is moved.
    #[cfg(debug_assertions)]
    pub(super) fn simulated() -> Clock {
        // A few bytes are leaked for each simulated run, so that clocks of all runs can be copied.
        Clock { simulated: Some(Box::leak(Box::default())), ..Clock::start() }
    }

    /// Whether the run is simulated.
    #[cfg(debug_assertions)]
    pub(super) fn is_simulated(&self) -> bool {
        self.simulated.is_some()
    }

    /// Moves the clock of a simulated run forward to `at`, in nanoseconds since the run's start.
    #[cfg(debug_assertions)]
    pub(super) fn jump_to(&self, at: u64) {
        if let Some(simulated) = self.simulated {
            simulated.fetch_max(at, Ordering::Relaxed);
        }
    }

    /// Creates a clock whose zero is the instant at which the monotonic clock read `origin`, shortly before
    /// now. Also returns the time since that instant, in nanoseconds.
    pub(crate) fn begun_at(origin: u64) -> (Clock, u64) {
        let ClockSample { monotonic, wall, boottime, cpu } = ClockSample::now();
        let late = monotonic.saturating_sub(origin);
        let boottime = boottime.map(|boottime| boottime.saturating_sub(late));
        let start = ClockSample { monotonic: origin, wall: wall - late as i64, boottime, cpu };
        (Clock::from_sample(start), late)
    }

    /// Returns the time since the run's start, in nanoseconds.
    pub(crate) fn now(&self) -> u64 {
        #[cfg(debug_assertions)]
        if let Some(simulated) = self.simulated {
            return simulated.load(Ordering::Relaxed);
        }
        monotonic().saturating_sub(self.start.monotonic)
    }

    /// Returns the run's start on the machine's monotonic clock, in nanoseconds.
    pub(crate) fn origin(&self) -> u64 {
        self.start.monotonic
    }

    /// Returns the CPU time that this process has used since the process began, in nanoseconds.
    pub(crate) fn cpu(&self) -> u64 {
        read(ClockId::ProcessCPUTime) as u64
    }

    /// Returns how far each clock has moved since the run's start.
    pub(crate) fn passed(&self) -> Passed {
        #[cfg(debug_assertions)]
        if self.is_simulated() {
            let now = self.now();
            return Passed { monotonic: now, wall: now as i64, boottime: Some(now), cpu: 0 };
        }
        let now = ClockSample::now();
        Passed {
            monotonic: now.monotonic - self.start.monotonic,
            wall: now.wall - self.start.wall,
            boottime: now.boottime.zip(self.start.boottime).map(|(now, start)| now - start),
            cpu: now.cpu - self.start.cpu,
        }
    }
}
