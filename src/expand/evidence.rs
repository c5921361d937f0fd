//! The evidence for a load derived from an earlier sweep, as recorded in `run.json`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::SweepMetric;
use crate::units::Decimal;

/// A load derived from an earlier sweep, with its evidence. Recorded in `run.json`, but not hashed,
/// because the load itself is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TakenValue {
    /// The axis of the load.
    pub axis: String,
    /// The earlier sweep that the load is derived from.
    pub from: String,
    /// The result that was taken from the earlier sweep.
    pub take: SweepMetric,
    /// The figure of a search that was taken: shown; absent for the load that the sweep found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The aggregate of `found` that was used; absent if each cell uses its own value.
    #[serde(rename = "use", default, skip_serializing_if = "Option::is_none")]
    pub uses: Option<String>,
    /// The factor that multiplies the value.
    pub times: Decimal,
    /// The load: the value multiplied by the factor and rounded down.
    pub load: Decimal,
    /// The findings of the earlier sweep; there are several if they were aggregated over an axis.
    pub found: Vec<FoundValue>,
}

/// The finding of an earlier sweep in one of its cells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FoundValue {
    /// The values of the cell on all axes except the load.
    pub cell: BTreeMap<String, String>,
    /// The load that the sweep found in the cell.
    pub load: Decimal,
    /// Whether the highest load that meets the objective may be above this load, because no heavier load was
    /// run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// Caveats for readers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<String>,
    /// The ids of the runs that the finding is based on.
    pub runs: Vec<String>,
}

impl TakenValue {
    /// A one-line form: `limit: max_qps_under_slo 23.4 qps (vllm · llama · chat) × 0.8 → 18.7 qps`.
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
        let name = self.value.as_ref().map_or_else(|| name.to_owned(), |value| format!("{name} ({value})"));
        format!("{}: {name} {which}{}{times} → {} {unit}", self.from, found.join(" and "), self.load)
    }
}
