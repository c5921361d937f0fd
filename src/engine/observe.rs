//! Observes the load generator itself: how long each thread used a core or waited for one, stalls,
//! lateness, read delays, and the writer's backlog. Threads and requests report to an `Observer`, which
//! costs a few atomic additions per request and nothing per event; a separate thread takes samples once a
//! second and at the borders of the measure window.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::rows::{Phase, RequestRow};

use super::histogram::Histogram;
use super::progress::Progress;
use super::threads::{Thread, Used};

/// Collects the measurements of a run's threads and gives access to them. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Observer(Arc<ObserverState>);

#[derive(Debug)]
struct ObserverState {
    progress: Arc<Progress>,
    threads: Mutex<Vec<Arc<Enlisted>>>,
    lateness: Gauge,
    read_delay: Gauge,
    wakes: Gauge,
    turns: Gauge,
    backlog: Backlog,
    over: AtomicBool,
}

/// A thread of the run, with its CPU usage when it joined the run and when it left.
#[derive(Debug)]
pub(crate) struct Enlisted {
    /// The name under which the thread registered.
    pub name: String,
    /// The thread's CPU usage before it joined the run.
    pub before: Used,
    thread: Thread,
    left: OnceLock<Used>,
}

impl Enlisted {
    /// Returns the thread's CPU usage until now, or until it left the run; `None` if it ended without
    /// leaving.
    pub(crate) fn used(&self) -> Option<Used> {
        let left = || self.left.get().copied();
        // Read twice because the thread may leave the run and end between the first two reads.
        left().or_else(|| self.thread.used()).or_else(left)
    }
}

/// Registers a thread with the run until this value is dropped. The drop records the thread's CPU usage,
/// because on a busy machine the sampling thread may run only after this thread has ended.
#[derive(Debug)]
#[must_use = "the thread leaves the run when this is dropped"]
pub(crate) struct Membership(Arc<Enlisted>);

impl Membership {
    /// Returns how long this thread has waited for a core so far, in nanoseconds; `None` if the kernel does
    /// not count that.
    pub(crate) fn waited(&self) -> Option<u64> {
        self.0.thread.used()?.wait_ns
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        if let Some(used) = self.0.thread.used() {
            // Nothing else sets this value.
            let _ = self.0.left.set(used);
        }
    }
}

/// Durations, each counted in two histograms: since the last sample, and for the measure window.
#[derive(Debug)]
pub(crate) struct Gauge {
    /// Durations since the last sample.
    pub(crate) recent: Histogram,
    /// Durations in the measure window.
    pub window: Histogram,
}

impl Gauge {
    fn new() -> Gauge {
        Gauge { recent: Histogram::new(), window: Histogram::new() }
    }

    /// Counts a duration, given in nanoseconds.
    pub(crate) fn add(&self, nanos: u64, in_window: bool) {
        self.recent.add(nanos);
        if in_window {
            self.window.add(nanos);
        }
    }
}

/// The batches that wait for the writer.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    waiting: AtomicU64,
    most: AtomicU64,
    limit: AtomicU64,
}

impl Backlog {
    /// Records that a batch is passed to the writer; the engine may have to wait until there is room for
    /// it. Returns how many batches wait, including this one.
    pub(crate) fn put(&self) -> u64 {
        let waiting = self.waiting.fetch_add(1, Relaxed) + 1;
        self.most.fetch_max(waiting, Relaxed);
        waiting
    }

    /// Sets the maximum number of waiting batches.
    pub(crate) fn allow(&self, limit: usize) {
        self.limit.store(limit as u64, Relaxed);
    }

    /// Returns the maximum number of waiting batches.
    pub(crate) fn limit(&self) -> u64 {
        self.limit.load(Relaxed)
    }

    /// Records that the writer took a batch.
    pub(crate) fn took(&self) {
        self.waiting.fetch_sub(1, Relaxed);
    }

    /// Returns the number of waiting batches.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.load(Relaxed)
    }

    /// Returns the largest number of batches that have waited at the same time since the last call.
    pub(crate) fn take_most(&self) -> u64 {
        self.most.swap(self.waiting(), Relaxed)
    }
}

impl Observer {
    /// Creates an observer for the run of `progress`, without any measurements yet.
    pub(crate) fn new(progress: Arc<Progress>) -> Observer {
        Observer(Arc::new(ObserverState {
            progress,
            threads: Mutex::default(),
            lateness: Gauge::new(),
            read_delay: Gauge::new(),
            wakes: Gauge::new(),
            turns: Gauge::new(),
            backlog: Backlog::default(),
            over: AtomicBool::new(false),
        }))
    }

    /// Registers the calling thread with the run until the result is dropped. I/O threads are named `io`,
    /// or `io-1`, `io-2`, … if there are several.
    pub(crate) fn enlist(&self, name: impl Into<String>) -> Membership {
        let thread = Thread::current();
        let before = thread.used().unwrap_or_default();
        let enlisted = Arc::new(Enlisted { name: name.into(), before, thread, left: OnceLock::new() });
        self.threads().push(Arc::clone(&enlisted));
        Membership(enlisted)
    }

    /// Records the lateness and the read delay of a request that has ended. Neither locks nor allocates.
    pub(crate) fn ended(&self, row: &RequestRow) {
        let in_window = row.phase == Phase::Measure;
        if let Some(late) = lateness(row) {
            self.0.lateness.add(late, in_window);
        }
        if let Some(delay) = row.read_delay_ns {
            self.0.read_delay.add(delay, in_window);
        }
    }

    /// Returns the run's live counters.
    pub(crate) fn progress(&self) -> &Progress {
        &self.0.progress
    }

    /// Whether an instant is in the measure window, as far as the window's borders are known.
    pub(crate) fn is_measured(&self, at: u64) -> bool {
        self.0.progress.is_measured(at)
    }

    /// Returns the current phase of the run.
    pub(crate) fn phase(&self) -> Phase {
        self.0.progress.phase()
    }

    /// Returns the threads that have joined the run so far, in the order in which they registered.
    pub(crate) fn threads(&self) -> MutexGuard<'_, Vec<Arc<Enlisted>>> {
        // A thread that panicked while it registered left the list intact.
        self.0.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how late the generator sent requests.
    pub(crate) fn lateness(&self) -> &Gauge {
        &self.0.lateness
    }

    /// Returns how long received bytes waited in the kernel before they were read.
    pub(crate) fn read_delay(&self) -> &Gauge {
        &self.0.read_delay
    }

    /// Returns how late the canary on its own thread was woken.
    pub(crate) fn wakes(&self) -> &Gauge {
        &self.0.wakes
    }

    /// Returns how late the canaries in the I/O threads were woken.
    pub(crate) fn turns(&self) -> &Gauge {
        &self.0.turns
    }

    /// Returns the counts of batches that wait for the writer.
    pub(crate) fn backlog(&self) -> &Backlog {
        &self.0.backlog
    }

    /// Records that no further measurements follow.
    pub(crate) fn set_over(&self) {
        self.0.over.store(true, Relaxed);
    }

    /// Whether no further measurements follow.
    pub(crate) fn is_over(&self) -> bool {
        self.0.over.load(Relaxed)
    }
}

/// Returns how late the generator itself was, in nanoseconds: sent − released − connecting. `None` if the
/// request was never sent.
fn lateness(row: &RequestRow) -> Option<u64> {
    let connecting: u64 = [row.dns_ns, row.connect_ns, row.tls_ns].into_iter().flatten().sum();
    Some(row.sent_ns?.saturating_sub(row.released_ns? + connecting))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_used_is_known_after_it_has_ended() {
        let observer = Observer::new(Arc::default());
        let theirs = observer.clone();
        let work = move || {
            let _member = theirs.enlist("writer");
            let busy = |n: &u64| theirs.threads()[0].used().is_some_and(|used| used.cpu_ns < 2_000_000 && *n > 0);
            (1..).take_while(busy).count()
        };
        std::thread::spawn(work).join().unwrap();
        let enlisted = Arc::clone(&observer.threads()[0]);
        // The kernel may take a moment to remove the thread's statistics after it was joined.
        while enlisted.thread.used().is_some() {
            std::thread::yield_now();
        }
        let used = enlisted.used().unwrap();
        assert!(used.cpu_ns >= 2_000_000 && used.cpu_ns > enlisted.before.cpu_ns);
        assert_eq!(enlisted.used(), Some(used), "it stays what it was");
    }
}
