//! What sweeps have found so far, and what stands in run.json of the runs whose loads follow from it. Pure data: nothing here decides.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::SweepMetric;
use crate::units::Decimal;

use super::RunId;

/// What is known of the sweeps that others ask.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    /// What each cell of them, but for its load, has found.
    pub findings: Vec<Finding>,
}

/// What the runs of a sweep that differ in their load alone have found.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Name of the sweep.
    pub sweep: Arc<str>,
    /// What it was asked for.
    pub metric: SweepMetric,
    /// Their values on all other axes.
    pub cell: Vec<(String, String)>,
    /// The answer.
    pub says: Says,
    /// The runs it rests on.
    pub runs: Vec<RunId>,
}

/// An answer to the question for the highest load.
#[derive(Debug, Clone, PartialEq)]
pub enum Says {
    /// None yet; how it stands, in words.
    Open(String),
    /// A load.
    Load {
        /// The highest load that meets the objective.
        load: Decimal,
        /// Whether it is the heaviest that was run, so that the highest may lie above it.
        is_least: bool,
        /// What a reader must know of it, in words.
        caveats: Vec<String>,
    },
    /// The lightest load that was run, this one, misses the objective.
    Below(Decimal),
    /// No answer, or one that is in doubt; why, in words.
    Nothing(String),
}

impl Finding {
    /// What people call it: `limit: vllm · llama · chat`.
    pub fn title(&self) -> String {
        let values: Vec<&str> = self.cell.iter().map(|(_, value)| value.as_str()).collect();
        format!("{}: {}", self.sweep, values.join(" · "))
    }
}

/// A load that was taken from an earlier sweep, and what it follows from. In `run.json`; not hashed, for the load itself is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TakenValue {
    /// The axis that has it.
    pub axis: String,
    /// The sweep that it was taken from.
    pub from: String,
    /// What was taken of it.
    pub take: SweepMetric,
    /// Which of `found` was used; absent where each cell takes its own.
    #[serde(rename = "use", default, skip_serializing_if = "Option::is_none")]
    pub uses: Option<String>,
    /// By what it was multiplied.
    pub times: Decimal,
    /// The load: the value, multiplied and rounded down.
    pub load: Decimal,
    /// What was found; several where one value was made over an axis.
    pub found: Vec<FoundValue>,
}

/// What an earlier sweep found in one of its cells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FoundValue {
    /// Its values on the axes other than the load.
    pub cell: BTreeMap<String, String>,
    /// The load that it found.
    pub load: Decimal,
    /// Whether the highest load may lie above it: no heavier one was run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// What a reader must know of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<String>,
    /// The ids of the runs that it rests on.
    pub runs: Vec<String>,
}

impl TakenValue {
    /// In one line: `limit: max_qps_under_slo 23.4 qps (vllm · llama · chat) × 0.8 → 18.7 qps`.
    pub fn words(&self) -> String {
        let unit = self.take.unit();
        let one = |found: &FoundValue| {
            let cell: Vec<&str> = found.cell.values().map(String::as_str).collect();
            let least = if found.at_least { "at least " } else { "" };
            format!("{least}{} {unit} ({})", found.load, cell.join(" · "))
        };
        let found: Vec<String> = self.found.iter().map(one).collect();
        let which = self.uses.as_ref().map(|uses| format!("{uses} of ")).unwrap_or_default();
        let times = if self.times == Decimal::from(1) { String::new() } else { format!(" × {}", self.times) };
        let name = self.take.name();
        format!("{}: {name} {which}{}{times} → {} {unit}", self.from, found.join(" and "), self.load)
    }
}
