//! Runs many small disk operations, using several threads if there are enough operations.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;

/// The maximum number of threads.
const MOST_THREADS: usize = 4;

/// Applies `look` to the items and returns the results that are not `None`, in the order of the items.
/// Another thread is used only if every thread then has at least `worth` items.
pub(super) fn filter_map<T: Sync, R: Send>(
    items: &[T],
    worth: usize,
    look: &(impl Fn(&T) -> Option<R> + Sync),
) -> Vec<R> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = cores.min(MOST_THREADS).min(items.len() / worth);
    if threads < 2 {
        return items.iter().filter_map(look).collect();
    }
    thread::scope(|scope| {
        let parts = items.chunks(items.len().div_ceil(threads));
        let parts: Vec<_> =
            parts.map(|part| scope.spawn(move || part.iter().filter_map(look).collect::<Vec<R>>())).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}
