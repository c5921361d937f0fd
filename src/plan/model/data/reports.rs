//! The notes of `check` and `preview` on the data sets of a plan.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::model::data::left_out::{LeftOut, all};
use crate::plan::model::plan::Plan;

/// A report of the kept and skipped entries of a data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DataNote {
    /// The scenario that names the data set.
    pub scenario: String,
    /// What the scenario uses the data set for: data or lengths.
    pub used_for: &'static str,
    /// The file of the data set, as written in the plan.
    pub file: String,
    /// Number of records, or of pairs of lengths, that are kept.
    pub kept: u64,
    /// Number of entries that were skipped.
    pub left_out: u64,
    /// Digest of the texts that are sent; `None` if only lengths are used.
    #[serde(skip)]
    pub texts: Option<String>,
    /// A sentence that lists the kept and skipped entries, the reasons, and the first place for
    /// each reason.
    pub words: String,
}

/// Notes on each data set of a plan, in the order of its scenarios.
pub fn data_notes(plan: &Plan) -> Vec<DataNote> {
    let mut notes = Vec::new();
    for (name, scenario) in &plan.scenarios {
        if let Some((data, source)) = scenario.data.as_ref().and_then(|data| Some((data, data.source()?))) {
            let made = (source.records, "records", String::new());
            let texts = Some(source.texts.clone());
            notes.push(DataNote { texts, ..note((name, "data", data.file.written()), made, &source.left_out) });
        }
        let lengths = scenario.lengths.as_ref().and_then(|lengths| lengths.data.as_ref());
        if let Some((data, found)) = lengths.and_then(|data| Some((data, data.file.found()?))) {
            let rows = found.rows.rows().len() as u64;
            let ranges =
                found.rows.rows().iter().any(|row| row.prompt.min < row.prompt.max || row.output.min < row.output.max);
            let rows = if ranges { format!(", in {rows} ranges") } else { format!(", {rows} different") };
            let raised = match found.raised {
                0 => String::new(),
                raised => format!("; {raised} prompts were too short for a nonce and have 16 tokens"),
            };
            let made = (found.pairs, "pairs of lengths", rows + &raised);
            notes.push(note((name, "lengths", data.file.written()), made, &found.left_out));
        }
    }
    notes
}

fn note(
    (scenario, used_for, file): (&str, &'static str, &str),
    (kept, what, more): (u64, &str, String),
    reasons: &BTreeMap<String, LeftOut>,
) -> DataNote {
    let left_out = reasons.values().map(|left_out| left_out.count).sum();
    let without = match left_out {
        0 => String::new(),
        left_out => format!("; {left_out} skipped: {}", all(reasons)),
    };
    let words = format!("{kept} {what} of {file}{more}{without}");
    DataNote { scenario: scenario.to_owned(), used_for, file: file.to_owned(), kept, left_out, texts: None, words }
}
