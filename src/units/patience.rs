//! How long a server may be silent before anybody asks what has become of it.

use super::Nanos;

/// Ten seconds: how long a single answer of a server is waited for by whoever only wants to know whether it is there.
///
/// In builds with debug assertions `SWEEPLINE_PATIENCE` (a duration) takes its place, so that a test of a server that hangs is
/// quick.
pub fn patience() -> Nanos {
    let shortened = || std::env::var("SWEEPLINE_PATIENCE").ok()?.parse().ok();
    let shortened: Option<Nanos> = if cfg!(debug_assertions) { shortened() } else { None };
    shortened.unwrap_or(Nanos::from_secs(10))
}
