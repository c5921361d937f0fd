//! Evidence from earlier results about the cost of runs: the requests of closed loops and the start times of
//! servers.

use std::collections::{HashMap, HashSet};

use crate::expand::{Load, RunSpec};
use crate::rows::Table;
use crate::store::{Moment, RunRecord};

/// Evidence from earlier results.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// The latest result of each closed loop, by display name without its repeat.
    latest: HashMap<String, Earlier>,
    /// The durations of starts by endpoint, in seconds.
    starts: HashMap<String, Vec<f64>>,
    /// The logs of the starts that have been counted so far.
    logs: HashSet<(String, String)>,
}

/// A result of a closed loop.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Earlier {
    /// The id of the run.
    pub(crate) id: String,
    ended: Moment,
    /// Number of requests of the run, if recorded.
    pub(crate) requests: Option<u64>,
    /// Time from the start of the run to the end of its window, in nanoseconds.
    pub(crate) took_ns: u64,
}

impl History {
    /// Adds a result.
    pub(super) fn add(&mut self, record: &RunRecord) {
        self.add_start(record);
        // The number of requests of an open loop follows from its plan.
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
            self.starts.entry(endpoint.clone()).or_default().push(start.ready_ns as f64 / 1e9);
        }
    }

    /// Sorts the added results.
    pub(super) fn complete(mut self) -> History {
        self.starts.values_mut().for_each(|seconds| seconds.sort_by(f64::total_cmp));
        self.logs = HashSet::new();
        self
    }

    /// Returns the latest result of the same cell as a closed loop.
    pub(crate) fn latest(&self, spec: &RunSpec) -> Option<&Earlier> {
        self.latest.get(&names(spec))
    }

    /// Returns the durations of an endpoint's starts, in seconds, in ascending order.
    pub(crate) fn starts(&self, endpoint: &str) -> &[f64] {
        self.starts.get(endpoint).map_or(&[], Vec::as_slice)
    }
}

/// Returns endpoint, model, scenario, further axes and load as one text.
fn names(spec: &RunSpec) -> String {
    let labels = &spec.labels;
    format!("{:?}", (&spec.endpoint.name, &labels.model, &labels.scenario, &labels.axes, &spec.load))
}
