//! What is made ahead of time, in order, by a thread of its own: a bounded number of bytes ahead.

use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{Receiver, channel};

use super::clock::Clock;
use super::observe::Observer;
use super::threads;
use super::waits::Waits;

/// Bytes that may be made ahead.
const BYTES: usize = 16 << 20;
/// Things that change hands at once: each hand-over may wake the thread that makes them.
const MOST_IN_BATCH: usize = 16;
/// Batches made ahead.
const BATCHES: usize = 64;

/// Things in their order, made ahead.
pub(crate) struct Ahead<T> {
    /// What is at hand.
    batch: std::vec::IntoIter<T>,
    /// What comes next.
    batches: Receiver<Vec<T>>,
}

impl<T: Send + 'static> Ahead<T> {
    /// Starts making `things`, of which there is no end; `bytes` says how large the first one is, and the others are taken to
    /// be like it.
    pub(crate) fn start(
        mut things: impl Iterator<Item = T> + Send + 'static,
        bytes: impl FnOnce(&T) -> usize,
        observer: Observer,
    ) -> std::io::Result<Ahead<T>> {
        let first: Vec<T> = things.by_ref().take(1).collect();
        // Short ones in large batches, long ones one by one.
        let size = first.first().map_or(1, bytes).max(1);
        let in_batch = (BYTES / BATCHES / size).clamp(1, MOST_IN_BATCH);
        // One that is itself a large part of what may be made ahead leaves room for fewer.
        let (sender, batches) = channel((BYTES / size).clamp(1, BATCHES));
        std::thread::Builder::new().name("content".to_owned()).spawn(move || {
            let _member = observer.enlist("content");
            threads::step_back();
            // The run is over when nobody takes them any longer.
            let _ = sender.blocking_send(first);
            while sender.blocking_send(things.by_ref().take(in_batch).collect()).is_ok() {}
        })?;
        Ok(Ahead { batch: Vec::new().into_iter(), batches })
    }

    /// The next thing; what was waited for it by `clock` is added to `waits`. None when the thread that makes them is gone.
    pub(crate) async fn next(&mut self, clock: Clock, waits: &mut Waits) -> Option<T> {
        loop {
            if let Some(thing) = self.batch.next() {
                return Some(thing);
            }
            self.batch = match self.batches.try_recv() {
                Ok(batch) => batch.into_iter(),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => {
                    let from = clock.now();
                    let batch = self.batches.recv().await?.into_iter();
                    waits.add(from, clock.now());
                    batch
                }
            };
        }
    }
}
