//! Prepares items in order and ahead of time on a separate thread, up to a limit in bytes.

use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{Receiver, channel};

use super::clock::Clock;
use super::observe::Observer;
use super::threads;
use super::waits::Waits;

/// Approximate maximum size of the items prepared ahead, in bytes.
const BYTES: usize = 16 << 20;
/// Maximum number of items in a batch. Items are passed on in batches because each transfer may wake the
/// thread that prepares them.
const MOST_IN_BATCH: usize = 16;
/// Maximum number of batches prepared ahead.
const BATCHES: usize = 64;

/// A sequence of items that a separate thread prepares ahead.
pub(crate) struct Ahead<T> {
    /// The rest of the current batch.
    batch: std::vec::IntoIter<T>,
    /// Receives the following batches.
    batches: Receiver<Vec<T>>,
}

impl<T: Send + 'static> Ahead<T> {
    /// Starts to prepare the items of `things`, which is endless; `bytes` is called for the size of the first
    /// item, and the other items are assumed to have a similar size.
    pub(crate) fn start(
        mut things: impl Iterator<Item = T> + Send + 'static,
        bytes: impl FnOnce(&T) -> usize,
        observer: Observer,
    ) -> std::io::Result<Ahead<T>> {
        let first: Vec<T> = things.by_ref().take(1).collect();
        // Small items are passed on in large batches, large items one by one.
        let size = first.first().map_or(1, bytes).max(1);
        let in_batch = (BYTES / BATCHES / size).clamp(1, MOST_IN_BATCH);
        // If a single item takes a large part of the limit, fewer batches are prepared.
        let (sender, batches) = channel((BYTES / size).clamp(1, BATCHES));
        std::thread::Builder::new().name("content".to_owned()).spawn(move || {
            let _member = observer.enlist("content");
            threads::step_back();
            // If the receiver is gone, the run is over.
            let _ = sender.blocking_send(first);
            while sender.blocking_send(things.by_ref().take(in_batch).collect()).is_ok() {}
        })?;
        Ok(Ahead { batch: Vec::new().into_iter(), batches })
    }

    /// Takes the next item, and adds any time spent waiting for it, as measured by `clock`, to `waits`.
    /// `None` if the thread that prepares items is gone.
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
