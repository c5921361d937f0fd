//! Collects evidence from earlier results about the cost of runs: how many requests closed loops sent, and
//! how long servers took to start.

use std::collections::{HashMap, HashSet};

use crate::expand::{Load, RunSpec};
use crate::rows::Table;
use crate::store::{Moment, RunRecord};

/// Evidence from earlier results about the cost of runs.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// The latest result of each cell with a closed loop, by the cell's [`names`].
    latest: HashMap<String, Earlier>,
    /// For each endpoint: the durations of the server's starts until its first response, after which runs may
    /// begin, in seconds.
    starts: HashMap<String, Vec<f64>>,
    /// Endpoint and log of each start that has been added so far, so that a start shared by several runs is
    /// added only once.
    logs: HashSet<(String, String)>,
}

/// An earlier result of a closed loop.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Earlier {
    /// The id of the run.
    pub(crate) id: String,
    ended: Moment,
    /// Number of requests of the run; `None` if it was not recorded.
    pub(crate) requests: Option<u64>,
    /// Time from the start of the run to the end of the measure window, in nanoseconds.
    pub(crate) took_ns: u64,
}

impl History {
    /// Adds a result.
    pub(super) fn add(&mut self, record: &RunRecord) {
        self.add_start(record);
        // For an open loop, the number of requests follows from the plan.
        if !matches!(record.spec.load, Load::Closed { .. }) {
            return;
        }
        let new = Earlier {
            id: record.id.clone(),
            ended: record.ended,
            requests: record.files.get(Table::Requests.file()).map(|file| file.rows),
            took_ns: record.facts.windows.measure_end_ns,
        };
        let kept = self.latest.entry(names(&record.spec)).or_insert_with(|| new.clone());
        if (new.ended, &new.id) > (kept.ended, &kept.id) {
            *kept = new;
        }
    }

    fn add_start(&mut self, record: &RunRecord) {
        let Some(start) = &record.environment.server_start else { return };
        let endpoint = &record.spec.endpoint.name;
        if self.logs.insert((endpoint.clone(), start.log.clone())) {
            self.starts.entry(endpoint.clone()).or_default().push(start.first_answer_ns as f64 / 1e9);
        }
    }

    /// Completes the history after the last result was added.
    pub(super) fn complete(mut self) -> History {
        self.starts.values_mut().for_each(|seconds| seconds.sort_by(f64::total_cmp));
        self.logs = HashSet::new();
        self
    }

    /// Returns the latest result of the cell to which a run with `spec` belongs; `None` if there is none,
    /// or if the load is an open loop.
    pub(crate) fn latest(&self, spec: &RunSpec) -> Option<&Earlier> {
        self.latest.get(&names(spec))
    }

    /// Returns the durations of an endpoint's starts, in seconds, in ascending order.
    pub(crate) fn starts(&self, endpoint: &str) -> &[f64] {
        self.starts.get(endpoint).map_or(&[], Vec::as_slice)
    }
}

/// Returns a text that identifies a cell: its endpoint, model, scenario, other axes and load.
fn names(spec: &RunSpec) -> String {
    let labels = &spec.labels;
    format!("{:?}", (&spec.endpoint.name, &labels.model, &labels.scenario, &labels.axes, &spec.load))
}
