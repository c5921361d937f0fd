//! Determines when each launched server is running. Runs that need the same server follow each other,
//! so that servers start as rarely as the order of the sweeps allows.
//!
//! Only one launched server runs on a resource at a time. Sweeps that wait for others come later
//! (`after`); among independent sweeps, runs are grouped by server, beginning with the server that is
//! already running. A comparison between servers keeps its rounds, so a server starts again with every
//! change. This is the price for a drift that affects both servers alike. With `reset: restart`, every
//! run has its own start.

use std::collections::HashMap;

use indexmap::IndexMap;

use crate::expand::{Expansion, LaunchSpec};

/// The key of a launched server that two runs can share: endpoint and command.
type ServerOf<'a> = (&'a str, &'a LaunchSpec);

/// Runs, by position, that are measured on one start of a launched server, in execution order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stay {
    /// The resource that the server occupies.
    pub resource: String,
    /// The runs.
    pub runs: Vec<usize>,
}

/// The stays of all launched servers that `runs` need, in order for each resource. `runs` are positions
/// in the expansion, in execution order.
pub(super) fn stays(expansion: &Expansion, runs: &[usize], levels: &HashMap<&str, usize>) -> Vec<Stay> {
    let mut by_resource: IndexMap<&str, Vec<(usize, usize)>> = IndexMap::new();
    for at in runs {
        let run = &expansion.runs[*at];
        if run.spec.endpoint.launch.is_some() {
            let resource = expansion.resources[&run.spec.endpoint.name].as_str();
            by_resource.entry(resource).or_default().push((levels[&*run.sweep], *at));
        }
    }
    let mut stays = Vec::new();
    for (resource, mut runs) in by_resource {
        // The sort is stable, so the execution order within a level is kept.
        runs.sort_by_key(|(level, _)| *level);
        let mut last: Option<ServerOf> = None;
        for level in runs.chunk_by(|(a, _), (b, _)| a == b) {
            for at in ordered(expansion, level.iter().map(|(_, at)| *at), last) {
                let server = server_of(expansion, at);
                // A run that measures a start, or requires a new start, needs its own server.
                let spec = &expansion.runs[at].spec;
                if server != last || stays.is_empty() || spec.start || spec.endpoint.restarts() {
                    stays.push(Stay { resource: resource.to_owned(), runs: Vec::new() });
                }
                last = server.filter(|_| !expansion.runs[at].spec.start);
                if let Some(stay) = stays.last_mut() {
                    stay.runs.push(at);
                }
            }
        }
    }
    stays
}

fn server_of(expansion: &Expansion, at: usize) -> Option<ServerOf<'_>> {
    let endpoint = &expansion.runs[at].spec.endpoint;
    Some((endpoint.name.as_str(), endpoint.launch.as_ref()?))
}

/// The runs of one level: first the runs that may be grouped by server, then the runs that keep their
/// order.
fn ordered<'a>(expansion: &'a Expansion, runs: impl Iterator<Item = usize>, up: Option<ServerOf<'a>>) -> Vec<usize> {
    let mut groups: IndexMap<Option<ServerOf>, Vec<usize>> = IndexMap::new();
    if up.is_some() {
        groups.insert(up, Vec::new());
    }
    let mut kept = Vec::new();
    for at in runs {
        match expansion.server_rounds.contains(&*expansion.runs[at].sweep) {
            true => kept.push(at),
            false => groups.entry(server_of(expansion, at)).or_default().push(at),
        }
    }
    groups.into_values().flatten().chain(kept).collect()
}

/// For each sweep, the length of the longest chain of sweeps that it waits for.
pub(super) fn levels<'a>(expansion: &'a Expansion, turns: &HashMap<&str, usize>) -> HashMap<&'a str, usize> {
    let mut sweeps: Vec<(&str, &Vec<String>)> =
        expansion.after.iter().map(|(name, after)| (name.as_str(), after)).collect();
    sweeps.sort_by_key(|(name, _)| turns[name]);
    let mut levels: HashMap<&str, usize> = HashMap::new();
    for (name, after) in sweeps {
        let level = after.iter().map(|after| levels[after.as_str()] + 1).max().unwrap_or_default();
        levels.insert(name, level);
    }
    levels
}
