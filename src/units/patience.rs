//! The time limit for checks of a server's availability.

use super::Nanos;

/// Returns ten seconds, the timeout for a single response of a server when only its availability is
/// checked.
///
/// In builds with debug assertions, `SWEEPLINE_PATIENCE` (a duration) replaces this value, so that
/// tests of servers that hang are fast.
pub fn patience() -> Nanos {
    let shortened = || std::env::var("SWEEPLINE_PATIENCE").ok()?.parse().ok();
    let shortened: Option<Nanos> = if cfg!(debug_assertions) { shortened() } else { None };
    shortened.unwrap_or(Nanos::from_secs(10))
}
