//! Differences between the queried servers or this machine and those on which earlier results were measured.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::expand::PlannedRun;
use crate::plan::{Endpoint, EnvironmentPolicy};
use crate::rows::Environment;
use crate::server::client_environment;
use crate::store::RunRecord;
use crate::sweep::environment::{changed, in_words, pin_broken};
use crate::sweep::resume::{Action, Decision, again};

use super::super::probe::ProbedEndpoint;
use super::super::workspace::Workspace;

/// A circumstance that has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Differs {
    /// The endpoint; null for the machine on which sweepline runs.
    pub endpoint: Option<String>,
    /// What differs: host, server, models, engine, version, model, client_host, client_os, client_cpu or client_cores.
    pub what: String,
    /// The value in the results.
    pub committed: String,
    /// The current value.
    pub now: String,
    /// Number of results of this plan with the earlier value.
    pub runs: usize,
}

/// Returns how the queried servers (`asked`) and this machine differ from those on which the results of the
/// plan (`records`) were measured.
pub(crate) fn differing(asked: &[ProbedEndpoint], records: impl Iterator<Item = RunRecord>) -> Vec<Differs> {
    let here = client_environment();
    let mut counts: BTreeMap<(Option<String>, &str, String, String), usize> = BTreeMap::new();
    for record in records {
        let endpoint = &record.spec.endpoint.name;
        let ready = asked.iter().find(|asked| asked.endpoint == *endpoint && asked.is_ready());
        let of_server = ready.map(|asked| of_server(&record, asked)).unwrap_or_default();
        let of_server = of_server.into_iter().map(|pair| (Some(endpoint.clone()), pair));
        let of_client = of_client(&record.environment, &here).into_iter().map(|pair| (None, pair));
        for (endpoint, (what, committed, now)) in of_server.chain(of_client).filter(|(_, (_, old, new))| old != new) {
            *counts.entry((endpoint, what, committed, now)).or_default() += 1;
        }
    }
    counts
        .into_iter()
        .map(|((endpoint, what, committed, now), runs)| Differs {
            endpoint,
            what: what.to_owned(),
            committed,
            now,
            runs,
        })
        .collect()
}

/// Changes the decision to keep a result, as `run` does: the run is measured again if the plan requires that
/// servers match, and the run's server was queried and now reports something different.
pub(crate) fn or_changed(decision: &mut Decision, run: &PlannedRun, workspace: &Workspace, asked: &[ProbedEndpoint]) {
    let plan = workspace.plan();
    if decision.action != Action::Cached || plan.environment != EnvironmentPolicy::Match {
        return;
    }
    let name = &run.spec.endpoint.name;
    let ready = asked.iter().find(|asked| asked.endpoint == *name && asked.is_ready());
    let server = workspace.disk.said(&run.id).and_then(|said| said.server.as_deref());
    let (Some(asked), Some(was)) = (ready, server.filter(|was| was.version.is_some())) else { return };
    let changed = changed(run, was, &asked.said);
    if !changed.is_empty() {
        let retries = plan.endpoints.get(name).map_or(0, Endpoint::retries);
        *decision = again(run, &workspace.disk, retries, in_words(&changed));
    }
}

/// Returns why `run` would end before anything is sent, with an entry for each queried endpoint
/// whose server differs from the one on which its results were measured, although the plan pins the
/// server.
pub(crate) fn pinned(workspace: &Workspace, picked: &[bool], asked: &[ProbedEndpoint]) -> Vec<String> {
    if workspace.plan().environment != EnvironmentPolicy::Pin {
        return Vec::new();
    }
    let runs = || workspace.expansion.runs.iter().zip(picked).filter(|(_, picked)| **picked).map(|(run, _)| run);
    let broken = |asked: &ProbedEndpoint| {
        let of_endpoint = runs().filter(|run| run.spec.endpoint.name == asked.endpoint);
        let first = of_endpoint
            .filter_map(|run| Some((run, workspace.disk.said(&run.id)?.server.as_deref()?)))
            .find_map(|(run, was)| changed(run, was, &asked.said).into_iter().next());
        first.map(|changed| pin_broken(&asked.endpoint, &changed))
    };
    asked.iter().filter_map(broken).collect()
}

/// A circumstance, with its old and new value.
type Pair = (&'static str, String, String);

fn text(value: &Option<String>) -> String {
    value.clone().unwrap_or_else(|| "unnamed".to_owned())
}

fn of_server(record: &RunRecord, asked: &ProbedEndpoint) -> Vec<Pair> {
    let committed = &record.environment;
    let mut pairs = vec![
        ("host", text(&committed.host), text(&asked.host)),
        ("server", text(&committed.server), text(&asked.server)),
        ("models", committed.models.join(", "), asked.models.join(", ")),
    ];
    let now = asked.said.of_model(&record.spec.model.id);
    pairs
        .extend(committed.fingerprint.changed(&now).into_iter().map(|changed| (changed.what, changed.was, changed.is)));
    pairs
}

fn of_client(committed: &Environment, here: &Environment) -> Vec<Pair> {
    vec![
        ("client_host", committed.client_host.clone(), here.client_host.clone()),
        ("client_os", committed.client_os.clone(), here.client_os.clone()),
        ("client_cpu", text(&committed.client_cpu), text(&here.client_cpu)),
        ("client_cores", committed.client_cores.to_string(), here.client_cores.to_string()),
    ]
}
