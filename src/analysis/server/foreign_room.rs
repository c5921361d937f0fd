//! How far the counts of a server and of a client may be apart, and what of the client's a server may have answered.

use crate::rows::{Measured, Outcome};

/// Two counts that are this near, as a share of the client's, are the same.
pub(super) const TOLERANCE: f64 = 0.01;
/// Nor are so many requests a difference.
pub(super) const REQUESTS: f64 = 2.0;

/// Whether the server may have answered a request to the end that the client took for failed or cut: neither one that did not reach it,
/// nor one that it refused.
pub(super) fn may_be_answered(row: &Measured) -> bool {
    let is_refused = matches!(row.outcome, Outcome::Connect | Outcome::Http(400..=499));
    !row.outcome.is_ok() && !is_refused && row.sent_ns().is_some()
}

/// How far a server's count of requests may be from a client's of so many answered ones.
pub(super) fn room(answered: f64) -> f64 {
    (answered * TOLERANCE).max(REQUESTS)
}
