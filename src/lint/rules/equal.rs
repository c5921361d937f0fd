//! Rules about endpoints of one sweep that are not treated alike.

use super::super::finding::Finding;
use super::super::view::{SweepView, View, steps};
use super::{listed, quoted};
use crate::plan::{Endpoint, Fact, MetricName, Scalar};

/// Facts of a server as one flat list, in which flags and file keys have the same spelling:
/// `--max-num-seqs` and `max_num_seqs` are the same.
pub(crate) fn facts(endpoint: &Endpoint) -> Vec<(String, Scalar)> {
    let plain = |name: &str| name.trim_start_matches('-').replace('-', "_").to_lowercase();
    let mut facts = Vec::new();
    for (name, fact) in &endpoint.server {
        match fact {
            Fact::One(value) => facts.push((plain(name), value.clone())),
            Fact::Many(table) => facts.extend(table.iter().map(|(key, value)| (plain(key), value.clone()))),
        }
    }
    facts
}

/// M014: one endpoint of a sweep specifies settings that another endpoint does not specify.
pub(crate) fn unequal_tuning(_: &View, sweep: &SweepView) -> Option<Finding> {
    let mut endpoints = sweep.real_endpoints();
    let first = endpoints.next()?;
    let (message, name) = endpoints.find_map(|other| Some((unequal(first, other)?, other.0)))?;
    Some(sweep.finding(
        steps!["endpoints", name, "server"],
        message,
        "tune both servers with the same care, and list the settings of each; `flags: {}` states that a server runs \
         without flags",
    ))
}

/// Describes how the specified settings of two endpoints differ.
fn unequal(a: &(&str, &Endpoint), b: &(&str, &Endpoint)) -> Option<String> {
    // A version does not count as tuning.
    let names = |endpoint: &Endpoint| -> Vec<String> {
        facts(endpoint).into_iter().map(|(name, _)| name).filter(|name| name != "version").collect()
    };
    let (left, right) = (names(a.1), names(b.1));
    if a.1.engine != b.1.engine {
        // Settings of different engines have different names, but an endpoint without any settings can
        // still be compared with one that has some.
        let bare =
            |settings: &[String], endpoint: &Endpoint| settings.is_empty() && !endpoint.server.contains_key("flags");
        return match (bare(&left, a.1), bare(&right, b.1)) {
            (false, true) if !left.is_empty() => Some(lacks(a.0, &left, b.0)),
            (true, false) if !right.is_empty() => Some(lacks(b.0, &right, a.0)),
            _ => None,
        };
    }
    let only = |these: &[String], those: &[String]| -> Vec<String> {
        these.iter().filter(|name| !those.contains(name)).cloned().collect()
    };
    match (only(&left, &right), only(&right, &left)) {
        (left, right) if left.is_empty() && right.is_empty() => None,
        (left, right) if right.is_empty() => Some(lacks(a.0, &left, b.0)),
        (left, right) if left.is_empty() => Some(lacks(b.0, &right, a.0)),
        (left, right) => Some(format!("{}, {}", lacks(a.0, &left, b.0), lacks(b.0, &right, a.0))),
    }
}

/// Formats the settings that `name` specifies and `other` does not. At most four settings are named.
fn lacks(name: &str, settings: &[String], other: &str) -> String {
    let shown: Vec<&str> = settings.iter().take(4).map(String::as_str).collect();
    let more = if settings.len() > shown.len() {
        format!(" and {} more", settings.len() - shown.len())
    } else {
        String::new()
    };
    let listed = if more.is_empty() { listed(&shown) } else { shown.join(", ") };
    format!("`{name}` specifies {listed}{more}, but `{other}` does not")
}

/// M015: endpoints of one sweep have different numbers of accelerators and are compared by a metric that
/// grows with this number.
pub(crate) fn unequal_accelerators(_: &View, sweep: &SweepView) -> Option<Finding> {
    let gpus = |endpoint: &Endpoint| endpoint.hardware.as_ref().and_then(|hardware| hardware.gpus());
    let mut known = sweep.real_endpoints().filter_map(|(name, endpoint)| Some((*name, gpus(endpoint)?)));
    let (first, count) = known.next()?;
    let (other, other_count) = known.find(|(_, other)| *other != count)?;
    let fair = ["output_throughput_per_gpu", "cost_per_million_output_tokens", "tokens_per_unit_of_money"];
    let is_fair = |metric: &MetricName| fair.contains(&metric.key);
    // Without a list, throughput per accelerator is among the compared metrics.
    if sweep.compare.is_some_and(|compare| compare.metrics.is_empty() || compare.metrics.0.iter().any(is_fair)) {
        return None;
    }
    let remedy = format!(
        "compare per accelerator: `compare: {{ by: endpoint, baseline: {first}, metrics: [output_throughput_per_gpu] }}`"
    );
    Some(sweep.finding(
        steps!["sweeps", sweep.name, "matrix", "endpoint"],
        format!("{} have {count} and {other_count} accelerators", quoted(&[first, other])),
        remedy,
    ))
}
