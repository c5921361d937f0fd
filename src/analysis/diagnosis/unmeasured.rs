//! Measurements that are missing for the servers of the analyzed runs.

use super::evidence::Evident;
use super::scraped::figure;

/// Groups of quantities that a server and its GPUs can report, each with one figure that represents the
/// group.
const FAMILIES: [(&str, &str); 8] = [
    ("requests_running_mean", "requests running and waiting"),
    ("queue_seconds_mean", "time in the queue"),
    ("kv_cache_usage_mean", "KV cache in use"),
    ("preemptions", "preemptions"),
    ("gpu_utilization_mean", "GPU use"),
    ("gpu_memory_bandwidth_utilization_mean", "use of the memory's bandwidth"),
    ("gpu_power_watts_mean", "power"),
    ("gpu_throttled_share", "lowered clocks"),
];

/// Describes the data that no run has and how to obtain it: figures that were not scraped, and a profile.
pub fn not_measured(evident: &Evident) -> String {
    let runs = || evident.curves.iter().flat_map(|curve| &curve.rungs).flat_map(|rung| &rung.runs);
    let is_unknown = |name: &str| !runs().any(|run| figure(run, name).is_some());
    let unknown: Vec<&str> = FAMILIES.iter().filter(|(name, _)| is_unknown(name)).map(|(_, said)| *said).collect();
    let profile = "a profile is needed to see what kernels do and what threads of the server's host wait for";
    match unknown.as_slice() {
        [] => profile.to_owned(),
        unknown => {
            let whose = if unknown.len() == FAMILIES.len() { "; these figures are the client's only" } else { "" };
            format!(
                "{}: no run has them; `telemetry` of an endpoint scrapes them{whose}; {profile}",
                unknown.join(", ")
            )
        }
    }
}
