//! What a load that was taken from an earlier sweep follows from: what `run.json` keeps of it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::SweepMetric;
use crate::units::Decimal;

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
