//! Checks whether this machine can open all connections that the runs need. If it cannot, the sweep is
//! rejected before it starts, and the error names the remedy. Without this check, the shortage would only
//! show as failed requests, perhaps an hour later.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::engine::{Demand, demand};
use crate::expand::PlannedRun;
use crate::plan::{Endpoint, TextOrSecret};
use crate::report::format::plain;
use crate::sweep::event::RunView;
use crate::units::{Address, Proxy};

use super::limits::Limits;
use super::workspace::Workspace;

/// Number of file descriptors that the program itself uses for the results folder, the wake-ups of its
/// threads, the terminal and the pipes of servers.
const OWN_FILES: u64 = 64;
/// Number of ports in the widest range of local ports that a system can be configured to use, 1024 to
/// 65535.
const WIDEST: u64 = 64_512;

/// The connections that one run needs.
struct Need {
    name: String,
    resource: String,
    /// Host and port to which the run connects; the endpoint's name if sweepline starts its server.
    address: String,
    is_local: bool,
    /// Whether connections take no ports, because the server listens on a Unix socket.
    is_on_socket: bool,
    demand: Demand,
}

/// Returns a message for each system limit that prevents `runs` from being executed with up to `jobs` of them
/// at once; empty if there is no such limit.
pub(crate) fn obstacles<'a>(
    workspace: &Workspace,
    runs: impl Iterator<Item = &'a PlannedRun>,
    jobs: u16,
) -> Vec<String> {
    let needs: Vec<Need> = runs.map(|run| need(workspace, run)).collect();
    let limits = Limits::read();
    [no_files(&needs, jobs, &limits), no_ports(&needs, jobs, &limits), no_ports_in_time(&needs, &limits)]
        .into_iter()
        .flatten()
        .collect()
}

fn need(workspace: &Workspace, run: &PlannedRun) -> Need {
    let endpoint = &run.spec.endpoint.name;
    let of_plan = workspace.plan().endpoints.get(endpoint);
    let address = of_plan.and_then(connected_to);
    let is_loopback = |host: &str| host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    Need {
        name: plain(&RunView::new(0, run).name),
        resource: workspace.expansion.resources.get(endpoint).unwrap_or(endpoint).clone(),
        address: address.as_ref().map_or_else(|| endpoint.clone(), |(host, port)| format!("{host}:{port}")),
        is_local: address.as_ref().is_none_or(|(host, _)| is_loopback(host)),
        is_on_socket: of_plan.is_some_and(|endpoint| endpoint.socket.is_some()),
        demand: demand(&run.spec),
    }
}

/// Returns the host and port to which an endpoint's connections are opened: those of its proxy, if the plan
/// contains its address, or of its `url`. `None` if sweepline starts the server.
fn connected_to(endpoint: &Endpoint) -> Option<(String, u16)> {
    let proxy = endpoint.proxy.as_ref().and_then(TextOrSecret::text).and_then(|text| Proxy::parse(text).ok());
    if let Some(proxy) = proxy {
        return Some((proxy.host, proxy.port));
    }
    let address = Address::parse(endpoint.url.as_deref()?).ok()?;
    Some((address.host().to_owned(), address.port()))
}

/// Finds the largest run, by `size`, on each resource, and returns the `jobs` largest of these runs.
/// Together, these runs need the maximum number of connections that can be open at the same time.
fn side_by_side<'a>(needs: impl Iterator<Item = &'a Need>, jobs: u16, size: impl Fn(&Need) -> u64) -> Vec<&'a Need> {
    let mut largest: BTreeMap<&str, &Need> = BTreeMap::new();
    for need in needs {
        let kept = largest.entry(&need.resource).or_insert(need);
        if size(need) > size(kept) {
            *kept = need;
        }
    }
    let mut largest: Vec<&Need> = largest.into_values().collect();
    largest.sort_by_key(|need| std::cmp::Reverse(size(need)));
    largest.truncate(usize::from(jobs));
    largest
}

fn connections(need: &Need) -> u64 {
    u64::from(need.demand.at_once.unwrap_or(0))
}

/// Returns the names of the runs, each with its number of connections: `lean · short · batch 1000 (1000
/// connections)`.
fn named(needs: &[&Need]) -> String {
    let parts: Vec<String> =
        needs.iter().map(|need| format!("{} ({} connections)", need.name, connections(need))).collect();
    parts.join(", ")
}

fn no_files(needs: &[Need], jobs: u16, limits: &Limits) -> Option<String> {
    let size = |need: &Need| connections(need) + need.demand.files;
    let together = side_by_side(needs.iter(), jobs, size);
    let needed = limits.open + OWN_FILES + together.iter().map(|need| size(need)).sum::<u64>();
    let allowed = limits.files.filter(|allowed| *allowed < needed)?;
    Some(format!(
        "this process may open {allowed} files, and {needed} are needed: each connection takes one\n  needed by: {}\n  \
         raise the limit and start sweepline again from the same shell: ulimit -n {needed}\n  (if that is refused, \
         raise it as root, with LimitNOFILE={needed} in a systemd unit, or with docker run --ulimit nofile={needed}); \
         or lower {}",
        named(&together),
        lower(jobs, &together),
    ))
}

fn lower(jobs: u16, together: &[&Need]) -> &'static str {
    let several = jobs > 1 && together.len() > 1;
    if several {
        "`batch_size` or --jobs, or exclude runs with --skip"
    } else {
        "`batch_size`, or exclude the run with --skip"
    }
}

/// Returns the runs that need local ports, grouped by the address to which they connect.
fn by_address(needs: &[Need]) -> BTreeMap<&str, Vec<&Need>> {
    let mut addresses: BTreeMap<&str, Vec<&Need>> = BTreeMap::new();
    for need in needs.iter().filter(|need| !need.is_on_socket) {
        addresses.entry(&need.address).or_default().push(need);
    }
    addresses
}

fn no_ports(needs: &[Need], jobs: u16, limits: &Limits) -> Option<String> {
    let ports = limits.ports?;
    by_address(needs).into_iter().find_map(|(address, needs)| {
        let together = side_by_side(needs.into_iter(), jobs, connections);
        let needed: u64 = together.iter().map(|need| connections(need)).sum();
        (needed > ports).then(|| {
            format!(
                "connections to one address need a local port each: {needed} to {}, but the system has {ports}\n  \
                 needed by: {}\n  {}",
                plain(address),
                named(&together),
                more_ports(needed, ports, lower(jobs, &together)),
            )
        })
    })
}

/// Returns the remedy for a lack of ports: a command that makes more ports available, or a lower load.
fn more_ports(needed: u64, ports: u64, lower: &str) -> String {
    match needed <= WIDEST && ports < WIDEST {
        true => format!(
            "let the system use more ports, as root: sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\"; or lower \
             {lower}"
        ),
        false => {
            format!("no system has more than {WIDEST} ports: lower {lower}, or spread the load over several machines")
        }
    }
}

fn no_ports_in_time(needs: &[Need], limits: &Limits) -> Option<String> {
    let ports = limits.ports?;
    needs.iter().filter(|need| !need.is_on_socket).find_map(|need| {
        let held = if need.is_local { limits.held_local_secs } else { limits.held_remote_secs };
        let rate = need.demand.per_second?;
        let needed = (rate * held).ceil() as u64;
        if needed <= ports {
            return None;
        }
        let reuse = if need.is_local || held <= 1.0 {
            String::new()
        } else {
            "let the system reuse ports sooner, as root: sysctl -w net.ipv4.tcp_tw_reuse=1; or ".to_owned()
        };
        let lower = "`qps`, or keep connections open (connections: warm)";
        Some(format!(
            "a new connection for each request at {rate} qps needs {needed} local ports (a closed connection keeps its \
             port for {held} s), but the system has {ports}\n  needed by: {}\n  {reuse}{}",
            need.name,
            more_ports(needed, ports, lower),
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(resource: &str, address: &str, at_once: Option<u32>, per_second: Option<f64>) -> Need {
        let demand = Demand { at_once, per_second, files: 30 };
        let is_local = address.starts_with("127.");
        let (name, resource, address) = (resource.to_owned(), resource.to_owned(), address.to_owned());
        Need { name, resource, address, is_local, is_on_socket: false, demand }
    }

    const LIMITS: Limits =
        Limits { files: Some(1_000), open: 6, ports: Some(500), held_remote_secs: 60.0, held_local_secs: 1.0 };

    #[test]
    fn files_are_counted_over_runs_side_by_side() {
        let needs =
            [need("a", "x:1", Some(400), None), need("a", "x:1", Some(500), None), need("b", "y:1", None, None)];
        assert_eq!(no_files(&needs, 1, &LIMITS), None);
        assert_eq!(no_files(&needs, 2, &LIMITS), None, "runs on one resource never overlap");
        let needs = [need("a", "x:1", Some(500), None), need("c", "y:1", Some(400), None)];
        let text = no_files(&needs, 2, &LIMITS).unwrap();
        assert!(text.contains("may open 1000 files, and 1030 are needed"), "{text}");
        assert!(text.contains("ulimit -n 1030") && text.contains("--jobs"), "{text}");
        assert!(text.contains("a (500 connections), c (400 connections)"), "{text}");
        assert_eq!(no_files(&needs, 2, &Limits { files: None, ..LIMITS }), None);
    }

    #[test]
    fn ports_are_counted_for_each_address() {
        let needs = [need("a", "x:1", Some(400), None), need("b", "y:1", Some(400), None)];
        assert_eq!(no_ports(&needs, 2, &LIMITS), None, "two addresses may share a port");
        let needs = [need("a", "x:1", Some(400), None), need("b", "x:1", Some(400), None)];
        assert_eq!(no_ports(&needs, 1, &LIMITS), None);
        let text = no_ports(&needs, 2, &LIMITS).unwrap();
        assert!(text.contains("800 to x:1, but the system has 500"), "{text}");
        assert!(text.contains("ip_local_port_range=\"1024 65535\""), "{text}");
        let text = no_ports(&[need("a", "x:1", Some(100_000), None)], 1, &LIMITS).unwrap();
        assert!(text.contains("no system has more than 64512"), "{text}");
    }

    #[test]
    fn a_closed_connection_holds_its_port() {
        let in_time = |address, rate| no_ports_in_time(&[need("a", address, None, Some(rate))], &LIMITS);
        assert_eq!(in_time("x:1", 8.0), None);
        let text = in_time("x:1", 9.0).unwrap();
        assert!(text.contains("at 9 qps needs 540 local ports") && text.contains("tcp_tw_reuse=1"), "{text}");
        assert_eq!(in_time("127.0.0.1:1", 500.0), None, "a port is free again after a second");
        assert!(in_time("127.0.0.1:1", 501.0).is_some());
    }
}
