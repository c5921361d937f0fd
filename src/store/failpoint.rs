//! Failpoints: named points in the code at which a test can kill the program, to check how the next start
//! recovers, or at which a file operation fails.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

/// How often the selected failpoint has been reached.
static PASSED: AtomicU32 = AtomicU32::new(0);

/// Whether `SWEEPLINE_FAILPOINT` names this failpoint, with any count. Always false in builds without debug
/// assertions.
pub(super) fn is_chosen(name: &str) -> bool {
    let chosen = || std::env::var("SWEEPLINE_FAILPOINT").ok();
    cfg!(debug_assertions) && chosen().is_some_and(|wanted| wanted.split(':').next() == Some(name))
}

/// Kills this process with SIGKILL if `SWEEPLINE_FAILPOINT` is the given `name`, or if it is `name:N` and
/// the failpoint is reached for the Nth time. Has no effect in builds without debug assertions.
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

/// Returns the error with which a file operation fails instead of being executed, if `SWEEPLINE_ERRNO` is its `name`
/// and an error number, like `fsync_dir:22`. Every second call is executed, so that an interrupted operation succeeds
/// when it is repeated. Always `None` in builds without debug assertions.
pub(super) fn injected(name: &str) -> Option<io::Error> {
    if !cfg!(debug_assertions) {
        return None;
    }
    let chosen = std::env::var("SWEEPLINE_ERRNO").ok()?;
    let errno = chosen.strip_prefix(name)?.strip_prefix(':')?.parse().ok()?;
    let is_due = PASSED.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
    is_due.then(|| io::Error::from_raw_os_error(errno))
}
