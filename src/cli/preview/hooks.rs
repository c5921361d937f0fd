//! The plan's hooks and resets that accompany the runs to do, and how often each happens.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::expand::PlannedRun;
use crate::plan::{Dialect, Endpoint, HookPoint, Reset};
use crate::units::text::counted;

use super::super::workspace::Workspace;

/// A hook, or the reset of a server.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Happens {
    /// The name of the endpoint.
    pub endpoint: String,
    /// The point at which the hook or reset happens: before_cell, before_run, after_run, after_cell, or
    /// reset, which comes after all hooks before a run.
    pub when: &'static str,
    /// The request or the command, as in the plan.
    pub what: String,
    /// How often the hook or reset happens if no run is retried.
    pub times: usize,
}

impl Happens {
    /// Describes the hook or reset in one line.
    pub(super) fn words(&self) -> String {
        let Happens { endpoint, when, what, times } = self;
        format!("{endpoint}, {when}: `{what}`, {}", counted(*times, "time"))
    }
}

/// Returns the hooks and resets of the runs at these positions of the expansion, ordered by endpoint as in
/// the plan, and then by their point in a run.
pub(super) fn happens(workspace: &Workspace, todo: &HashSet<usize>) -> Vec<Happens> {
    let of_endpoint = |(name, endpoint): (&String, &Endpoint)| {
        let planned = todo.iter().map(|at| &workspace.expansion.runs[*at]);
        let runs: Vec<&PlannedRun> = planned.filter(|run| run.spec.endpoint.name == *name).collect();
        let cells: HashSet<(&str, &[u32])> = runs.iter().map(|run| (&*run.sweep, run.cell.rank())).collect();
        let mut found = Vec::new();
        let mut note = |when: &'static str, what: String, times: usize| {
            if times > 0 {
                found.push(Happens { endpoint: name.clone(), when, what, times });
            }
        };
        for point in HookPoint::ALL {
            let times = if point.is_of_cell() { cells.len() } else { runs.len() };
            for action in endpoint.hooks.at(point).iter().filter_map(|hook| hook.action()) {
                note(point.name(), action.to_string(), times);
            }
            let reset = Dialect::of(endpoint.engine).reset.filter(|_| endpoint.reset == Some(Reset::PrefixCache));
            if let (HookPoint::BeforeRun, Some(request)) = (point, reset) {
                note("reset", format!("{} {}", request.method, request.path), times);
            }
        }
        found
    };
    workspace.plan().endpoints.iter().flat_map(of_endpoint).collect()
}
