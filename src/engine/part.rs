//! Coordinates the start and end of a run whose load several processes share. A coordinator gives the cues
//! to start and end, and each process reports its progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::sync::{oneshot, watch};

use super::clock::{Clock, monotonic};
use super::error::EngineError;
use super::share::Share;

/// A stage that a process reaches with its share of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Contents are being prepared; connections may be opened.
    Prepared,
    /// The connections that the run expects to be open are open.
    Opened,
    /// The clock of the run has started, this many nanoseconds late.
    Began(u64),
    /// All requests of this process in the window have ended.
    Measured,
}

/// The share of a process and the coordinator's cues for it.
pub struct Part {
    /// The part of the load that this process sends.
    pub share: Share,
    /// When the process may open connections.
    pub open: oneshot::Receiver<()>,
    /// The run's start on this machine's monotonic clock, in nanoseconds.
    pub start: oneshot::Receiver<u64>,
    /// When the run ends.
    pub finish: Finish,
    /// Called at each stage.
    pub tell: Box<dyn Fn(Stage) + Send + Sync>,
}

/// The end of a run whose load is shared. The coordinator sets it when all requests of the window have ended.
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

    /// Returns the end of the run; the maximum value while it is unknown.
    pub(crate) fn at(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Interval at which a process checks for the end of the run once all its requests of the window have ended.
const LOOK_NS: u64 = 1_000_000;

/// The fields of a part that the executor needs.
pub(crate) struct Ending {
    pub(crate) finish: Finish,
    pub(crate) tell: Box<dyn Fn(Stage) + Send + Sync>,
    /// Whether the end of all requests of the window has been reported.
    pub(crate) is_measured: bool,
}

impl Ending {
    /// Returns the end of the run, at `deadline` at the latest. The end is the same instant in all processes
    /// that share the load, so every request due before it is recorded.
    pub(crate) fn end(&self, deadline: u64) -> u64 {
        deadline.min(self.finish.at())
    }

    /// Returns when a process that has finished measuring checks again whether all others have
    /// finished.
    pub(crate) fn next_look(&self, now: u64) -> Option<u64> {
        self.is_measured.then(|| self.finish.at().min(now + LOOK_NS))
    }

    /// Reports, once, that all requests of the window have ended.
    pub(crate) fn measured(&mut self) {
        if !std::mem::replace(&mut self.is_measured, true) {
            (self.tell)(Stage::Measured);
        }
    }
}

/// Waits for a cue; fails if the run is stopped or the coordinator is gone.
pub(crate) async fn cue<T>(cue: oneshot::Receiver<T>, mut stop: watch::Receiver<bool>) -> Result<T, EngineError> {
    tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => Err(EngineError::Stopped),
        told = cue => told.map_err(|_| EngineError::Stopped),
    }
}

/// Waits until this machine's monotonic clock reads `origin` and starts the run's clock there. Returns the
/// clock and how late the wait ended.
pub(crate) async fn begin_at(origin: u64, mut stop: watch::Receiver<bool>) -> Result<(Clock, u64), EngineError> {
    /// The runtime's timers are coarse, so the last part of the wait is a busy wait of this length.
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
