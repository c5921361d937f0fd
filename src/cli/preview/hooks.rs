//! What happens beside the runs to do: the plan's hooks and resets, and how often each.

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
    /// The endpoint.
    pub endpoint: String,
    /// When: before_cell, before_run, after_run, after_cell, or reset, which comes behind all hooks before a run.
    pub when: &'static str,
    /// The request or the command, as the plan has it.
    pub what: String,
    /// How often, where no run is tried again.
    pub times: usize,
}

impl Happens {
    /// In one line.
    pub(super) fn words(&self) -> String {
        let Happens { endpoint, when, what, times } = self;
        format!("{endpoint}, {when}: `{what}`, {}", counted(*times, "time"))
    }
}

/// What happens beside the runs at these positions of the expansion, in the order of the plan's endpoints and of a run's points.
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
