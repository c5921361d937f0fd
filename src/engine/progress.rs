//! What a run says of itself while it goes on: counters that anybody may read at any time. The engine never waits for a
//! reader.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use crate::rows::Phase;

use super::recent::Recent;

/// Live counters of one run.
#[derive(Debug, Default)]
pub struct Progress {
    phase: AtomicU8,
    elapsed_ns: AtomicU64,
    /// The run's start on the machine's monotonic clock; 0 before it.
    origin_ns: AtomicU64,
    /// Start and end of the window, as far as they are known.
    window: [AtomicU64; 2],
    /// 1 while the server is left alone before the load begins.
    pub idling: Counter,
    /// 1 while it is waited for that the server finishes what came before.
    pub settling: Counter,
    /// Requests under way.
    pub in_flight: Counter,
    /// Requests that wait for the in-flight cap.
    pub waiting: Counter,
    /// Requests that ended, however.
    pub ended: Counter,
    /// Requests that failed.
    pub failed: Counter,
    /// Requests of the window that were wanted so far.
    pub in_window: Counter,
    /// What came last.
    pub recent: Recent,
    /// Token events received.
    pub token_events: Counter,
    /// Further signs of life: good heads, and reads of their answers that completed no token event.
    pub signs: Counter,
}

/// One live counter.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    /// Sets it to `n`.
    pub fn set(&self, n: u64) {
        self.0.store(n, Relaxed);
    }

    /// What it reads now.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Progress {
    /// Tells the phase and the time since the run's start.
    pub fn at(&self, phase: Phase, elapsed_ns: u64) {
        self.phase.store(phase as u8, Relaxed);
        self.elapsed_ns.store(elapsed_ns, Relaxed);
    }

    /// Tells the run's start on the machine's monotonic clock, in nanoseconds.
    pub(crate) fn starts(&self, origin_ns: u64) {
        self.origin_ns.store(origin_ns, Relaxed);
    }

    /// The run's start on the machine's monotonic clock, in nanoseconds; none before it.
    pub fn origin_ns(&self) -> Option<u64> {
        Some(self.origin_ns.load(Relaxed)).filter(|origin| *origin > 0)
    }

    /// Start and end of the window in nanoseconds since the run's start, as things stand; 0 where they are not known.
    pub fn window_ns(&self) -> [u64; 2] {
        [0, 1].map(|border: usize| self.window[border].load(Relaxed))
    }

    /// Tells where the window begins and ends, in nanoseconds since the run's start, as things stand.
    pub fn measures(&self, (start, end): (u64, u64)) {
        self.window[0].store(start, Relaxed);
        self.window[1].store(end, Relaxed);
    }

    /// Whether an instant lies in the window, as far as is known.
    pub fn is_measured(&self, at: u64) -> bool {
        (self.window[0].load(Relaxed)..self.window[1].load(Relaxed)).contains(&at)
    }

    /// What was received so far of good answers, as a number that changes with it.
    pub fn received(&self) -> u64 {
        self.token_events.get().wrapping_add(self.signs.get())
    }

    /// The phase now.
    pub fn phase(&self) -> Phase {
        Phase::ALL[usize::from(self.phase.load(Relaxed))]
    }

    /// Nanoseconds since the run's start, as of the last thing that happened.
    pub fn elapsed_ns(&self) -> u64 {
        self.elapsed_ns.load(Relaxed)
    }
}
