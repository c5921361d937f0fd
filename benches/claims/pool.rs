//! Work on several cores, with results in the order of the jobs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Runs all jobs, starting with the last because later jobs take longest. Prints the progress to stderr.
pub fn each<J: Sync, R: Send>(what: &str, threads: usize, jobs: &[J], work: impl Fn(&J) -> R + Sync) -> Vec<R> {
    let (begun, taken) = (Instant::now(), AtomicUsize::new(0));
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::new());
    let hand = || loop {
        let Some(at) = jobs.len().checked_sub(1 + taken.fetch_add(1, Ordering::Relaxed)) else { return };
        let result = work(&jobs[at]);
        let mut done = done.lock().expect("a job panicked");
        done.push((at, result));
        if done.len().is_multiple_of(20) || done.len() == jobs.len() {
            eprintln!("{what}: {} of {}, {:.0} s", done.len(), jobs.len(), begun.elapsed().as_secs_f64());
        }
    };
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(hand))));
    let mut done = done.into_inner().expect("a job panicked");
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
