//! Runs of a plan that were given up. They have a reason instead of a result, and are listed wherever results
//! are shown.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::Serialize;

use crate::expand::PlannedRun;
use crate::plan::Plan;
use crate::rows::{GivenUp, RunLabels, SpoilCause};
use crate::store::{GivenUpRun, Store};

use super::left_out::LeftOut;

/// The runs of a results folder that were given up.
#[derive(Debug, Default)]
pub(crate) struct GivenUpRuns {
    by_id: HashMap<String, GivenUpRun>,
    /// For each endpoint of the plan: how often its runs may be retried.
    retries: HashMap<String, u32>,
}

impl GivenUpRuns {
    /// Returns the given-up runs of a results folder, with the numbers of retries that a plan allows;
    /// attempts that cannot be read are reported.
    pub(super) fn of(store: &Store, plan: Option<&Plan>, left_out: &LeftOut) -> GivenUpRuns {
        let runs = left_out.take(store.given_up()).unwrap_or_default();
        let endpoints = plan.into_iter().flat_map(|plan| &plan.endpoints);
        GivenUpRuns {
            by_id: runs.into_iter().map(|run| (run.id.clone(), run)).collect(),
            retries: endpoints.map(|(name, endpoint)| (name.clone(), endpoint.retries())).collect(),
        }
    }

    /// Returns the entry of a planned run, if `run` would not retry it. The caller first checks
    /// whether the run has a result from an earlier attempt.
    pub(super) fn get(&self, run: &PlannedRun) -> Option<&GivenUpRun> {
        let retries = self.retries.get(&run.spec.endpoint.name).copied().unwrap_or_default();
        self.by_id.get(&run.id.to_string()).filter(|found| found.given_up.stands(retries))
    }

    /// Returns all given-up runs, sorted by id.
    pub(super) fn all(&self) -> Vec<&GivenUpRun> {
        let mut all: Vec<&GivenUpRun> = self.by_id.values().collect();
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all
    }
}

/// Returns the labels of a run that was given up, with its current names in the plan.
pub(super) fn labels(found: &GivenUpRun, run: &PlannedRun) -> RunLabels {
    as_planned(found.labels(), run)
}

/// Returns the labels of a measured run, with its current names in the plan.
pub(super) fn as_planned(measured: RunLabels, run: &PlannedRun) -> RunLabels {
    let names = &run.spec.labels;
    let (model, scenario) = (names.model.to_string(), names.scenario.to_string());
    RunLabels { model, scenario, axes: names.axes.to_map(), ..measured }
}

/// A run that was given up: it has no result and no figures.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Entry {
    /// The full id of the run.
    run: String,
    /// The name of the sweep in the plan.
    sweep: String,
    /// The name of the endpoint in the plan.
    endpoint: String,
    /// The name of the model in the plan.
    model: String,
    /// The name of the scenario in the plan.
    scenario: String,
    /// Arrivals per second; null in closed loops.
    qps: Option<f64>,
    /// Number of requests in flight, or the in-flight cap of an open loop; null if there is
    /// neither.
    batch_size: Option<u32>,
    /// Values on other axes, by axis.
    axes: BTreeMap<String, String>,
    /// The number of the repeat within its cell, from 0.
    repeat: u32,
    /// The cause that spoiled the last attempt.
    cause: SpoilCause,
    /// The cause in a few words, with the number of retries and the number allowed: `429 (3 of 3)`.
    reason: String,
    /// The details of the cause, with the server's message.
    detail: String,
    /// Whether the server does not sustain the load, so the load misses the objective. If false, nothing is
    /// known about the load.
    missed: bool,
}

impl Entry {
    /// Creates the entry for a run of a sweep.
    pub(super) fn of(sweep: &str, labels: &RunLabels, given_up: &GivenUp) -> Entry {
        Entry {
            run: labels.run_id.clone(),
            sweep: sweep.to_owned(),
            endpoint: labels.endpoint.clone(),
            model: labels.model.clone(),
            scenario: labels.scenario.clone(),
            qps: labels.qps,
            batch_size: labels.batch_size,
            axes: labels.axes.clone(),
            repeat: labels.repeat,
            cause: given_up.spoiled.cause,
            reason: given_up.reason(),
            detail: given_up.spoiled.detail.clone(),
            missed: given_up.is_a_miss(),
        }
    }
}
