//! The run's clock: nanoseconds on the monotonic clock since the run's start, and how far the other
//! clocks moved in the same time.

use rustix::time::{ClockId, clock_gettime};

/// Returns nanoseconds on a system clock.
fn read(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Returns nanoseconds on the monotonic clock since the machine's start; comparable between
/// processes of one machine.
pub fn monotonic() -> u64 {
    read(ClockId::Monotonic) as u64
}

/// Returns nanoseconds on the wall clock, which may be set at any time.
pub(crate) fn wall() -> i64 {
    read(ClockId::Realtime)
}

/// The clock of one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: ClockSample,
}

/// All clocks, read together, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct ClockSample {
    monotonic: u64,
    wall: i64,
    boottime: Option<u64>,
    cpu: u64,
}

impl ClockSample {
    /// Reads all clocks, and reads them again if too much time passed between the first and the last: if a
    /// busy machine took the processor away in between, it would look as if a clock had been set.
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
    /// On the monotonic clock.
    pub monotonic: u64,
    /// On the wall clock.
    pub wall: i64,
    /// On the clock that continues during suspend.
    pub boottime: Option<u64>,
    /// CPU time of this process.
    pub cpu: u64,
}

impl Clock {
    /// Creates a clock that reads 0 now.
    pub(crate) fn start() -> Clock {
        Clock { start: ClockSample::now() }
    }

    /// Creates a clock whose zero is the instant at which the monotonic clock read `origin`, shortly before
    /// now. Returns it and the time since then, in nanoseconds.
    pub(crate) fn begun_at(origin: u64) -> (Clock, u64) {
        let ClockSample { monotonic, wall, boottime, cpu } = ClockSample::now();
        let late = monotonic.saturating_sub(origin);
        let boottime = boottime.map(|boottime| boottime.saturating_sub(late));
        (Clock { start: ClockSample { monotonic: origin, wall: wall - late as i64, boottime, cpu } }, late)
    }

    /// Returns nanoseconds since the start.
    pub(crate) fn now(&self) -> u64 {
        monotonic().saturating_sub(self.start.monotonic)
    }

    /// Returns the run's start on the machine's monotonic clock.
    pub(crate) fn origin(&self) -> u64 {
        self.start.monotonic
    }

    /// Returns the CPU time of this process since it began, in nanoseconds.
    pub(crate) fn cpu(&self) -> u64 {
        read(ClockId::ProcessCPUTime) as u64
    }

    /// Returns how far each clock moved since the start.
    pub(crate) fn passed(&self) -> Passed {
        let now = ClockSample::now();
        Passed {
            monotonic: now.monotonic - self.start.monotonic,
            wall: now.wall - self.start.wall,
            boottime: now.boottime.zip(self.start.boottime).map(|(now, start)| now - start),
            cpu: now.cpu - self.start.cpu,
        }
    }
}
