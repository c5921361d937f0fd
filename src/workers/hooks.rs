//! What tests change about a worker, in builds with debug assertions.

use std::time::Duration;

/// The version that it claims to have.
const VERSION: &str = "SWEEPLINE_WORKER_VERSION";
/// Milliseconds after which it answers a ping.
const SLOW_ANSWERS: &str = "SWEEPLINE_WORKER_ANSWERS_AFTER_MS";
/// Nanoseconds by which its clock seems to be ahead.
const AHEAD: &str = "SWEEPLINE_WORKER_CLOCK_AHEAD_NS";
/// Milliseconds by which it starts late.
const LATE: &str = "SWEEPLINE_WORKER_STARTS_LATE_MS";

fn set(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|_| cfg!(debug_assertions))
}

fn number(variable: &str) -> u64 {
    set(variable).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Returns the version of this program.
pub(super) fn version() -> String {
    set(VERSION).unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned())
}

/// Returns how long an answer to a ping is held back.
pub(super) fn answers_after() -> Duration {
    Duration::from_millis(number(SLOW_ANSWERS))
}

/// Returns by how many nanoseconds the clock that is told to the coordinator is ahead.
pub(super) fn ahead_ns() -> u64 {
    number(AHEAD)
}

/// Returns how long a worker ignores a start that is due in `left` nanoseconds, to begin late.
pub(super) fn late(left: u64) -> Duration {
    match number(LATE) {
        0 => Duration::ZERO,
        late => Duration::from_nanos(left) + Duration::from_millis(late),
    }
}
