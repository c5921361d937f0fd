//! The resources that the runs of an endpoint occupy. They affect only the scheduling and are not part of a
//! run's identity.

use crate::plan::{Endpoint, Plan, Table};

/// Returns, for each endpoint of the plan, the resource that its runs occupy: runs on one resource never
/// overlap.
///
/// The resource is the endpoint's `resource` if the plan sets it. Launched servers on the same host take
/// turns, because they share its devices. All other endpoints with the same `socket`, or else the same scheme,
/// host and port in their `url`, are treated as the same server, so they share a resource, which is named after the first of these
/// endpoints. An embedded mock has its own resource.
pub fn resources(plan: &Plan) -> Table<String> {
    let mut firsts: Vec<(String, &String)> = Vec::new();
    let mut resources = Table::with_capacity(plan.endpoints.len());
    for (name, endpoint) in &plan.endpoints {
        let server = match &endpoint.socket {
            _ if endpoint.launch.is_some() => launch_host(endpoint),
            Some(socket) => Some(format!("socket {socket}")),
            None => endpoint.url.as_deref().and_then(server),
        };
        let resource = match (&endpoint.resource, server) {
            (Some(resource), _) => resource,
            (None, None) => name,
            (None, Some(server)) => match firsts.iter().find(|(known, _)| *known == server) {
                Some((_, first)) => first,
                None => {
                    firsts.push((server, name));
                    name
                }
            },
        };
        resources.insert(name.clone(), resource.clone());
    }
    resources
}

/// The host on which a server is launched.
fn launch_host(endpoint: &Endpoint) -> Option<String> {
    let url = endpoint.url.as_deref().and_then(|url| reqwest::Url::parse(url).ok());
    let host = url.as_ref().and_then(|url| url.host_str()).unwrap_or("127.0.0.1");
    Some(format!("launched on {host}"))
}

/// Returns the scheme, host and port of a URL in a normalized form.
fn server(url: &str) -> Option<String> {
    reqwest::Url::parse(url).ok().map(|url| url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(endpoints: Value) -> Vec<(String, String)> {
        let plan: Plan = serde_json::from_value(json!({
            "sweepline": 1, "name": "t", "endpoints": endpoints, "models": { "m": { "id": "x" } },
            "sweeps": { "s": { "matrix": { "endpoint": "a", "model": "m", "batch_size": 1 } } },
        }))
        .expect("a plan");
        resources(&plan).into_iter().collect()
    }

    #[test]
    fn one_server_is_one_resource_unless_the_plan_says_otherwise() {
        let resources = of(json!({
            "a": { "url": "http://host:80/v1" },
            "path": { "url": "http://HOST/other/v1" },
            "own": { "url": "http://host/v1", "resource": "mine" },
            "port": { "url": "http://host:81/v1" },
            "scheme": { "url": "https://host/v1" },
            "secure": { "url": "https://host:443/v1" },
            "socket": { "url": "http://host/v1", "socket": "/run/a.sock" },
            "same socket": { "url": "http://localhost/v1", "socket": "/run/a.sock" },
            "mock": { "engine": "mock" },
            "other": { "engine": "mock" },
            "launched": { "launch": { "command": ["a"], "port": 80 } },
            "launched too": { "url": "http://127.0.0.1:81/v1", "launch": { "command": ["a"] } },
        }));
        let expected = [
            ("a", "a"),
            ("path", "a"),
            ("own", "mine"),
            ("port", "port"),
            ("scheme", "scheme"),
            ("secure", "scheme"),
            ("socket", "socket"),
            ("same socket", "socket"),
            ("mock", "mock"),
            ("other", "other"),
            ("launched", "launched"),
            ("launched too", "launched"),
        ];
        assert_eq!(resources, expected.map(|(name, resource)| (name.to_owned(), resource.to_owned())));
    }
}
