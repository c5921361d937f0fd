//! Rule about the number of times that servers are started.

use std::collections::{HashMap, HashSet};

use super::super::finding::{Finding, Scope};
use super::super::view::{SweepView, View};
use crate::expand::{Expansion, LaunchSpec, PlannedRun, expand};
use crate::units::text::counted;

/// Maximum number of runs, as a product of the lengths of all axes, of a plan that is expanded here. A plan with more
/// runs on launched servers would take months.
const MOST_RUNS: usize = 50_000;

/// M034: the rounds of a comparison start servers more often than once for each arm and repeat.
pub(crate) fn many_starts(view: &View) -> Vec<Finding> {
    if !view.sweeps.iter().any(alternates) || view.sweeps.iter().map(most_runs).sum::<usize>() > MOST_RUNS {
        return Vec::new();
    }
    let Ok(expansion) = expand(view.plan) else { return Vec::new() };
    view.sweeps.iter().filter(|sweep| alternates(sweep)).filter_map(|sweep| of_sweep(&expansion, sweep)).collect()
}

/// Whether a sweep compares servers that the plan launches.
fn alternates(sweep: &SweepView) -> bool {
    sweep.compare.is_some() && sweep.endpoints.iter().any(|(_, endpoint)| endpoint.launch.is_some())
}

fn most_runs(sweep: &SweepView) -> usize {
    let axes = sweep.sweep.fields().into_iter().map(|axis| sweep.sweep.values(axis).len().max(1));
    axes.fold(sweep.sweep.repeats.at_most as usize, usize::saturating_mul)
}

fn of_sweep(expansion: &Expansion, sweep: &SweepView) -> Option<Finding> {
    if !expansion.server_rounds.contains(sweep.name) {
        return None;
    }
    let Starts { in_rounds, servers } = starts(expansion, sweep.name);
    let repeats = sweep.sweep.repeats.at_most as usize;
    let fewest = servers * repeats;
    let message = format!(
        "the rounds of this comparison start servers {in_rounds} times; {fewest} starts are enough for {} in {}",
        counted(servers, "arm"),
        counted(repeats, "repeat"),
    );
    let remedy = "compare at one load and scenario, and measure the others in a sweep without `compare`, which starts \
                  each server once";
    (in_rounds > fewest).then(|| Finding::of(Scope::Sweep(sweep.name.to_owned()), &["compare"], message, remedy))
}

/// How often a sweep starts its servers.
#[derive(Debug, PartialEq, Eq)]
struct Starts {
    /// Number of starts in the order of the rounds.
    in_rounds: usize,
    /// Number of different servers.
    servers: usize,
}

/// Counts the starts of a sweep. Runs that require a new server for each attempt are not counted.
fn starts(expansion: &Expansion, sweep: &str) -> Starts {
    let mut up: HashMap<&str, (&str, &LaunchSpec)> = HashMap::new();
    let mut servers = HashSet::new();
    let mut in_rounds = 0;
    let is_counted = |run: &&PlannedRun| *run.sweep == *sweep && !run.spec.start && !run.spec.endpoint.restarts();
    for run in expansion.runs.iter().filter(is_counted) {
        let endpoint = &run.spec.endpoint;
        let Some(launch) = &endpoint.launch else { continue };
        let server = (endpoint.name.as_str(), launch);
        servers.insert(server);
        if up.insert(expansion.resources[&endpoint.name].as_str(), server) != Some(server) {
            in_rounds += 1;
        }
    }
    Starts { in_rounds, servers: servers.len() }
}
