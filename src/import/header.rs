//! Determines which headers of another tool a plan accepts.

use crate::plan::{Api, is_sent_by_itself};

/// Returns why a plan does not accept a header with this name for an endpoint of `api`, and the alternative;
/// `None` if the plan accepts the header.
pub(crate) fn refused(name: &str, api: Api) -> Option<String> {
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if !is_name {
        return Some("not a header name: expected letters, digits, `-`, `_` and `.`".to_owned());
    }
    let protocol = api.protocol();
    let of_api = [Some(protocol.key_header().name), protocol.version_header().map(|(name, _)| name)];
    let is_own = of_api.into_iter().flatten().any(|own| own.eq_ignore_ascii_case(name)) || is_sent_by_itself(name);
    let sent_as = protocol.key_header().shown.trim_end_matches([':', ' ', '…']);
    is_own.then(|| format!("sweepline sets this header itself; `api_key` of the endpoint is sent as `{sent_as}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_refused_if_the_api_has_it() {
        let bearer = "sweepline sets this header itself; `api_key` of the endpoint is sent as `Authorization: Bearer`";
        assert_eq!(refused("Authorization", Api::Chat).as_deref(), Some(bearer));
        assert_eq!(refused("X-Api-Key", Api::Chat), None);
        let apart = "sweepline sets this header itself; `api_key` of the endpoint is sent as `x-api-key`";
        for name in ["X-Api-Key", "Anthropic-Version", "Host"] {
            assert_eq!(refused(name, Api::Messages).as_deref(), Some(apart));
        }
        assert_eq!(refused("Authorization", Api::Messages), None);
        assert!(refused("two words", Api::Messages).is_some_and(|why| why.starts_with("not a header name")));
    }
}
