//! A note on the proxies of the environment, which other tools use and sweepline ignores.

use std::env;

use crate::plan::Plan;

/// Variables that name a proxy for other tools.
const VARIABLES: [&str; 6] = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// Returns a note if the environment names a proxy, and requests to a server of the plan go past it; `None`
/// otherwise.
pub(super) fn note(plan: &Plan) -> Option<String> {
    let is_set = |name: &&str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let variable = VARIABLES.into_iter().find(is_set)?;
    let is_direct = plan
        .endpoints
        .values()
        .any(|endpoint| endpoint.is_served_elsewhere() && endpoint.proxy.is_none() && endpoint.socket.is_none());
    is_direct.then(|| {
        format!(
            "note: {variable} is set, but ignored: requests go directly to the servers of the plan; to use a proxy, \
             write its address as `proxy` of an endpoint"
        )
    })
}
