//! Coordinates the start and end of a run whose load several processes share. A coordinator gives the cues
//! for start and end, and each process reports its progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::sync::{oneshot, watch};

use super::clock::{Clock, monotonic};
use super::error::EngineError;
use super::share::Share;

/// A stage of a process that sends a share of a run's load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The process is prepared: request contents are being created, and connections may be opened.
    Prepared,
    /// All connections that must be open before the run starts are open.
    Opened,
    /// The clock of the run has started, this many nanoseconds late.
    Began(u64),
    /// All requests of this process in the measure window have ended.
    Measured,
}

/// The share of the load that a process sends, and the coordinator's cues for the process.
pub struct Part {
    /// The part of the load that this process sends.
    pub share: Share,
    /// The cue to open connections.
    pub open: oneshot::Receiver<()>,
    /// The cue to start the run: its start on this machine's monotonic clock, in nanoseconds.
    pub start: oneshot::Receiver<u64>,
    /// When the run ends, once the coordinator knows.
    pub finish: Finish,
    /// Called when the process reaches a stage.
    pub tell: Box<dyn Fn(Stage) + Send + Sync>,
}

/// The end of a run whose load is shared. The coordinator sets it when all requests of the measure window
/// have ended in all processes.
#[derive(Debug, Clone)]
pub struct Finish(Arc<AtomicU64>);

impl Default for Finish {
    fn default() -> Finish {
        Finish(Arc::new(AtomicU64::new(u64::MAX)))
    }
}

impl Finish {
    /// Sets the end of the run, in nanoseconds since the run's start.
    pub fn set(&self, at: u64) {
        self.0.store(at, Relaxed);
    }

    /// Returns the end of the run, in nanoseconds since the run's start; the maximum value while it is
    /// unknown.
    pub(crate) fn at(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Interval at which a process checks for the end of the run once all its requests in the measure window
/// have ended, in nanoseconds.
const LOOK_NS: u64 = 1_000_000;

/// Coordinates the end of a run with the other processes that share its load.
pub(crate) struct Ending {
    pub(crate) finish: Finish,
    pub(crate) tell: Box<dyn Fn(Stage) + Send + Sync>,
    /// Whether the process has reported that all its requests in the measure window have ended.
    pub(crate) is_measured: bool,
}

impl Ending {
    /// Returns the end of the run, which is `deadline` at the latest. The end is the same instant in all
    /// processes that share the load, so every request due before it is recorded.
    pub(crate) fn end(&self, deadline: u64) -> u64 {
        deadline.min(self.finish.at())
    }

    /// Returns when this process must check again for the end of the run; `None` as long as requests of the
    /// measure window have not ended.
    pub(crate) fn next_look(&self, now: u64) -> Option<u64> {
        self.is_measured.then(|| self.finish.at().min(now + LOOK_NS))
    }

    /// When called for the first time, reports that all requests of this process in the measure
    /// window have ended.
    pub(crate) fn measured(&mut self) {
        if !std::mem::replace(&mut self.is_measured, true) {
            (self.tell)(Stage::Measured);
        }
    }
}

/// Waits for a cue of the coordinator; fails if the run is stopped or the coordinator is gone.
pub(crate) async fn cue<T>(cue: oneshot::Receiver<T>, mut stop: watch::Receiver<bool>) -> Result<T, EngineError> {
    tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => Err(EngineError::Stopped),
        told = cue => told.map_err(|_| EngineError::Stopped),
    }
}

/// Waits until this machine's monotonic clock reads `origin`, the zero of the run's clock. Returns the
/// run's clock and how late the wait ended, in nanoseconds.
pub(crate) async fn begin_at(origin: u64, mut stop: watch::Receiver<bool>) -> Result<(Clock, u64), EngineError> {
    /// Length of the busy wait that ends the wait, in nanoseconds. The busy wait is needed because
    /// the runtime's timers are coarse.
    const COARSE_NS: u64 = 3_000_000;
    let left = origin.saturating_sub(monotonic()).saturating_sub(COARSE_NS);
    tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => return Err(EngineError::Stopped),
        () = tokio::time::sleep(std::time::Duration::from_nanos(left)) => {}
    }
    while monotonic() < origin {
        std::hint::spin_loop();
    }
    Ok(Clock::begun_at(origin))
}
