//! The progress of a run, as counters that any thread may read at any time. The engine never waits for a
//! reader.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use crate::rows::Phase;

use super::recent::Recent;

/// Live counters of one run.
#[derive(Debug, Default)]
pub struct Progress {
    phase: AtomicU8,
    elapsed_ns: AtomicU64,
    /// The run's start on the machine's monotonic clock, in nanoseconds; 0 before the run starts.
    origin_ns: AtomicU64,
    /// Start and end of the measure window in nanoseconds since the run's start, as far as they are known.
    window: [AtomicU64; 2],
    /// 1 during the run's idle time before the load begins; otherwise 0.
    pub idling: Counter,
    /// 1 while the run waits for the server to finish earlier requests; otherwise 0.
    pub settling: Counter,
    /// Requests in flight.
    pub in_flight: Counter,
    /// Requests that wait for the in-flight cap.
    pub waiting: Counter,
    /// Requests that ended, with any outcome.
    pub ended: Counter,
    /// Requests that failed.
    pub failed: Counter,
    /// Requests scheduled in the measure window so far.
    pub in_window: Counter,
    /// The latest results.
    pub recent: Recent,
    /// Token events received.
    pub token_events: Counter,
    /// Other signs of life: heads of successful responses, and reads that did not complete a token event.
    pub signs: Counter,
}

/// One live counter.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n` to the counter.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    /// Sets the counter to `n`.
    pub fn set(&self, n: u64) {
        self.0.store(n, Relaxed);
    }

    /// Returns the counter's current value.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Progress {
    /// Sets the phase and the time since the run's start.
    pub fn at(&self, phase: Phase, elapsed_ns: u64) {
        self.phase.store(phase as u8, Relaxed);
        self.elapsed_ns.store(elapsed_ns, Relaxed);
    }

    /// Sets the run's start on the machine's monotonic clock, in nanoseconds.
    pub(crate) fn starts(&self, origin_ns: u64) {
        self.origin_ns.store(origin_ns, Relaxed);
    }

    /// Returns the run's start on the machine's monotonic clock, in nanoseconds; `None` before the
    /// run starts.
    pub fn origin_ns(&self) -> Option<u64> {
        Some(self.origin_ns.load(Relaxed)).filter(|origin| *origin > 0)
    }

    /// Returns the start and end of the measure window, in nanoseconds since the run's start, as far as
    /// they are known; 0 if they are unknown.
    pub fn window_ns(&self) -> [u64; 2] {
        [0, 1].map(|border: usize| self.window[border].load(Relaxed))
    }

    /// Sets the start and end of the measure window as far as they are known, in nanoseconds since the
    /// run's start.
    pub fn measures(&self, (start, end): (u64, u64)) {
        self.window[0].store(start, Relaxed);
        self.window[1].store(end, Relaxed);
    }

    /// Whether an instant is in the measure window, as far as the window's borders are known.
    pub fn is_measured(&self, at: u64) -> bool {
        (self.window[0].load(Relaxed)..self.window[1].load(Relaxed)).contains(&at)
    }

    /// Returns a number that changes whenever a part of a successful response is received.
    pub fn received(&self) -> u64 {
        self.token_events.get().wrapping_add(self.signs.get())
    }

    /// Returns the current phase.
    pub fn phase(&self) -> Phase {
        Phase::ALL[usize::from(self.phase.load(Relaxed))]
    }

    /// Returns the time from the run's start to the last update, in nanoseconds.
    pub fn elapsed_ns(&self) -> u64 {
        self.elapsed_ns.load(Relaxed)
    }
}
