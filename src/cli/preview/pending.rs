//! Cells in a preview that have no runs (yet), because they depend on the result of an earlier sweep.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::expand::{Pending, Waits};
use crate::plan::Scalar;

/// A cell that has no runs (yet), because it depends on the result of an earlier sweep.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PendingCell {
    /// The sweep of the cell.
    pub sweep: String,
    /// The cell's value for each axis; an unknown load is shown as its formula, `0.8 ×
    /// limit.max_qps_under_slo`.
    pub cell: Map<String, Value>,
    /// The number of repeats that the cell would have.
    pub repeats: u32,
    /// `pending`: an earlier sweep has no answer yet; `blocked`: the earlier sweep ended without an answer,
    /// so there is no load; `pruned`: `skip_if` skips the cell; `left_out`: the budget skips the cell;
    /// `stopped`: a gate failed; `undecided`: a gate cannot be decided.
    pub state: Waits,
    /// The reason for the state, in words.
    pub why: String,
}

impl PendingCell {
    /// Creates the preview's entry for a cell.
    pub(crate) fn of(pending: &Pending) -> PendingCell {
        let value = |value: &Scalar| serde_json::to_value(value).unwrap_or(Value::Null);
        PendingCell {
            sweep: pending.sweep.to_string(),
            cell: pending.cell.iter().map(|(axis, one)| (axis.to_owned(), value(one))).collect(),
            repeats: pending.repeats,
            state: pending.state,
            why: pending.why.clone(),
        }
    }

    /// Returns the display name of the cell within its sweep.
    pub(crate) fn name(&self) -> String {
        let value = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.cell.values().map(value).collect::<Vec<_>>().join(" · ")
    }
}
