//! How far the counts of a server and a client may differ, and which of the client's requests a server
//! may have completed.

use crate::rows::{Measured, Outcome};

/// Two counts are considered equal if they differ by at most this share of the client's count.
pub(super) const TOLERANCE: f64 = 0.01;
/// They are also considered equal if they differ by at most this many requests.
pub(super) const REQUESTS: f64 = 2.0;

/// Returns whether the server may have completed a request that the client counted as failed or
/// truncated. Excludes requests that did not reach the server or that it refused.
pub(super) fn may_be_answered(row: &Measured) -> bool {
    let is_refused = matches!(row.outcome, Outcome::Connect | Outcome::Http(400..=499));
    !row.outcome.is_ok() && !is_refused && row.sent_ns().is_some()
}

/// Returns how much a server's count of requests may differ from the client's count of completed
/// requests.
pub(super) fn room(answered: f64) -> f64 {
    (answered * TOLERANCE).max(REQUESTS)
}
