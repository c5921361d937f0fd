//! Named points at which a test can kill the program, to see how the next start recovers.

use std::sync::atomic::{AtomicU32, Ordering};

/// How often the selected point has been reached.
static PASSED: AtomicU32 = AtomicU32::new(0);

/// Whether `SWEEPLINE_FAILPOINT` names this point, whatever count it gives. Always false in builds
/// without debug assertions.
pub(super) fn is_chosen(name: &str) -> bool {
    let chosen = || std::env::var("SWEEPLINE_FAILPOINT").ok();
    cfg!(debug_assertions) && chosen().is_some_and(|wanted| wanted.split(':').next() == Some(name))
}

/// Kills this process with SIGKILL if `SWEEPLINE_FAILPOINT` is `name`, or `name:nth` and the point is
/// reached for the nth time. No effect in builds without debug assertions.
pub fn failpoint(name: &str) {
    if !cfg!(debug_assertions) {
        return;
    }
    let Ok(wanted) = std::env::var("SWEEPLINE_FAILPOINT") else { return };
    let (point, nth) = wanted.split_once(':').unwrap_or((&wanted, "1"));
    if point == name && (PASSED.fetch_add(1, Ordering::SeqCst) + 1).to_string() == nth {
        let killed = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        unreachable!("a process can kill itself: {killed:?}");
    }
}
