//! Environment variables that tests use to change a worker's behavior, in builds with debug
//! assertions.

use std::time::Duration;

/// Sets the version that the worker reports.
const VERSION: &str = "SWEEPLINE_WORKER_VERSION";
/// Sets the delay before the worker responds to a ping, in milliseconds.
const SLOW_ANSWERS: &str = "SWEEPLINE_WORKER_ANSWERS_AFTER_MS";
/// Sets how far the worker's clock appears to be ahead, in nanoseconds.
const AHEAD: &str = "SWEEPLINE_WORKER_CLOCK_AHEAD_NS";
/// Sets how late the worker starts the run, in milliseconds.
const LATE: &str = "SWEEPLINE_WORKER_STARTS_LATE_MS";

fn set(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|_| cfg!(debug_assertions))
}

fn number(variable: &str) -> u64 {
    set(variable).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Returns the version that this worker reports.
pub(super) fn version() -> String {
    set(VERSION).unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned())
}

/// Returns the delay before the response to a ping.
pub(super) fn answers_after() -> Duration {
    Duration::from_millis(number(SLOW_ANSWERS))
}

/// Returns how far ahead the worker's clock appears to the coordinator, in nanoseconds; 0 without the
/// variable.
pub(super) fn ahead_ns() -> u64 {
    number(AHEAD)
}

/// Returns how long the worker delays a start that is due in `left` nanoseconds, so that it starts late;
/// zero without the variable.
pub(super) fn late(left: u64) -> Duration {
    match number(LATE) {
        0 => Duration::ZERO,
        late => Duration::from_nanos(left) + Duration::from_millis(late),
    }
}
