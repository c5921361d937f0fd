//! The data sets of a plan, and how often a run sends each of their records.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::expand::RunSpec;
use crate::plan::model::content::Content;
use crate::plan::{DataNote, data_notes};
use crate::report::format::{digits, plain};

use super::super::estimate::Estimator;
use super::super::workspace::Workspace;

/// A data set that a scenario uses.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DataUse {
    /// The note from reading the data set.
    #[serde(flatten)]
    pub note: DataNote,
    /// How often a run sends each record: the maximum over the selected runs. Absent if this is unknown
    /// before the runs are measured, and for lengths, because lengths are not used up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<f64>,
}

impl DataUse {
    /// Returns one line with the scenario and its data.
    pub(crate) fn words(&self) -> String {
        let DataNote { scenario, words, .. } = &self.note;
        let times = match self.times {
            None => String::new(),
            Some(times) if times < 1.0 => format!("; a run sends about {} % of them", digits(times * 100.0)),
            Some(times) => format!("; a run sends each of them about {} times", digits(times)),
        };
        plain(&format!("{scenario}: {words}{times}"))
    }
}

/// Returns the data sets of the plan, and how often `runs` send their records.
pub(crate) fn uses<'r>(
    workspace: &Workspace,
    estimator: &Estimator,
    runs: impl Iterator<Item = &'r RunSpec>,
) -> Vec<DataUse> {
    let notes = data_notes(workspace.plan());
    if notes.is_empty() {
        return Vec::new();
    }
    let mut times: HashMap<&str, f64> = HashMap::new();
    for spec in runs {
        let Some((requests, _)) = estimator.requests(spec) else { continue };
        for (share, content) in classes(spec) {
            let Some(data) = &content.data else { continue };
            let records = requests as f64 * share / content.mean_turns();
            let most = times.entry(&data.source.texts).or_default();
            *most = most.max(records / data.source.records.max(1) as f64);
        }
    }
    let used = |note: DataNote| {
        let times = note.texts.as_deref().and_then(|texts| times.get(texts).copied());
        DataUse { note, times }
    };
    notes.into_iter().map(used).collect()
}

/// Returns the classes of a run, by their share of the requests.
fn classes(spec: &RunSpec) -> Vec<(f64, &Content)> {
    if spec.mix.is_empty() {
        return vec![(1.0, &spec.scenario)];
    }
    let all: f64 = spec.mix.iter().map(|class| class.weight as f64).sum();
    spec.mix.iter().map(|class| (class.weight as f64 / all, &class.scenario)).collect()
}
