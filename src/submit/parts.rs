//! The parts of a plan: endpoints whose runs one process measures, while other processes measure other
//! parts.

use std::collections::{BTreeSet, HashMap};

use indexmap::IndexMap;

use crate::expand::{Expansion, Pending};
use crate::plan::{Plan, Scalar};

/// Endpoints whose runs stay in one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The name of the part, which is the name of its first declared resource or endpoint.
    pub name: String,
    /// The endpoints, in declared order.
    pub endpoints: Vec<String>,
}

impl Part {
    /// Whether the part contains the runs of an endpoint.
    pub fn has(&self, endpoint: &str) -> bool {
        self.endpoints.iter().any(|own| own == endpoint)
    }

    /// Returns the `--only` filter for the part's runs.
    pub fn expression(&self) -> String {
        format!("endpoint in {}", list(&self.endpoints))
    }
}

/// Formats texts as a list in a filter expression.
pub(super) fn list(texts: &[String]) -> String {
    let quoted: Vec<String> =
        texts.iter().map(|text| format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))).collect();
    format!("[{}]", quoted.join(", "))
}

/// Returns the parts of a plan. The parts depend only on the plan's declarations, not on which runs are
/// already done.
///
/// Endpoints that share a resource are one part, because their runs must not overlap. A server that the plan
/// launches is its own part unless the plan names its resource, because each job has its own node or its own
/// share of a node. Endpoints are also one part if one decision depends on the runs of all of them, as in a
/// search over endpoints, repeats that end when endpoints can be distinguished, or rounds of launched servers
/// that are compared.
pub fn parts(plan: &Plan, expansion: &Expansion) -> Vec<Part> {
    let mut groups = Groups::default();
    let mut used: BTreeSet<&str> = expansion.possible().map(|run| run.spec.endpoint.name.as_str()).collect();
    used.extend(expansion.pending.iter().filter_map(endpoint_of));
    for name in plan.endpoints.keys().filter(|name| used.contains(name.as_str())) {
        groups.add(name, resource(plan, expansion, name));
    }
    for pool in &expansion.pools {
        groups.join(pool.members.iter().map(|member| member.run.spec.endpoint.name.as_str()));
    }
    for series in &expansion.series {
        groups.join(series.runs().map(|run| run.spec.endpoint.name.as_str()));
    }
    for sweep in &expansion.server_rounds {
        let runs = expansion.possible().filter(|run| *run.sweep == **sweep);
        let launched = runs.filter(|run| run.spec.endpoint.launch.is_some());
        groups.join(launched.map(|run| run.spec.endpoint.name.as_str()));
    }
    groups.parts()
}

/// Returns the endpoint of a cell that is not a run yet; `None` if the endpoint is unknown.
pub(super) fn endpoint_of(cell: &Pending) -> Option<&str> {
    cell.cell.known().find_map(|(axis, value)| match value {
        Scalar::Text(name) if axis == "endpoint" => Some(name.as_str()),
        _ => None,
    })
}

fn resource<'a>(plan: &'a Plan, expansion: &'a Expansion, name: &'a str) -> &'a str {
    match plan.endpoints.get(name) {
        Some(endpoint) if endpoint.launch.is_some() => endpoint.resource.as_deref().unwrap_or(name),
        _ => expansion.resources.get(name).map_or(name, String::as_str),
    }
}

/// Groups of endpoints that can be merged.
#[derive(Default)]
struct Groups<'a> {
    /// For each endpoint, the name of its group.
    group: IndexMap<&'a str, &'a str>,
}

impl<'a> Groups<'a> {
    fn add(&mut self, endpoint: &'a str, group: &'a str) {
        self.group.insert(endpoint, group);
    }

    /// Merges the groups of these endpoints, under the name of the group that was declared first.
    fn join(&mut self, endpoints: impl Iterator<Item = &'a str>) {
        let names: BTreeSet<&str> = endpoints.filter_map(|endpoint| self.group.get(endpoint).copied()).collect();
        let Some(first) = self.group.values().copied().find(|group| names.contains(group)) else { return };
        self.group.values_mut().filter(|group| names.contains(**group)).for_each(|group| *group = first);
    }

    fn parts(self) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (endpoint, group) in self.group {
            let place = *places.entry(group).or_insert_with(|| {
                parts.push(Part { name: group.to_owned(), endpoints: Vec::new() });
                parts.len() - 1
            });
            parts[place].endpoints.push(endpoint.to_owned());
        }
        parts
    }
}
