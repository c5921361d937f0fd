//! Determines which headers of another tool a plan accepts.

use crate::plan::is_sent_by_itself;

/// Returns why a plan does not accept a header with this name, and the alternative; `None` if the
/// plan accepts the header.
pub(crate) fn refused(name: &str) -> Option<&'static str> {
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if !is_name {
        return Some("not a header name: expected letters, digits, `-`, `_` and `.`");
    }
    let is_own = name.eq_ignore_ascii_case("authorization") || is_sent_by_itself(name);
    is_own.then_some("sweepline sets this header itself; `api_key` of the endpoint is sent as `Authorization: Bearer`")
}
