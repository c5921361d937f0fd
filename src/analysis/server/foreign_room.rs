//! How far the counts of a server and a client may differ, and which of the client's requests a server
//! may have completed.

use crate::rows::{Measured, Outcome};

/// Two counts that differ by at most this share of the client's are equal.
pub(super) const TOLERANCE: f64 = 0.01;
/// Nor is this many requests a difference.
pub(super) const REQUESTS: f64 = 2.0;

/// Returns whether the server may have completed a request that the client counted as failed or
/// truncated: excludes requests that did not reach it or that it refused.
pub(super) fn may_be_answered(row: &Measured) -> bool {
    let is_refused = matches!(row.outcome, Outcome::Connect | Outcome::Http(400..=499));
    !row.outcome.is_ok() && !is_refused && row.sent_ns().is_some()
}

/// Returns how far a server's count of requests may be from a client's count of completed ones.
pub(super) fn room(answered: f64) -> f64 {
    (answered * TOLERANCE).max(REQUESTS)
}
