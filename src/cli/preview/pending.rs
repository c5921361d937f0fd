//! Cells in a preview that are no runs, or not yet: what an earlier sweep finds decides about them.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::expand::{Pending, Waits};
use crate::plan::Scalar;

/// A cell that is no run as long as an earlier sweep says nothing else.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PendingCell {
    /// Its sweep.
    pub sweep: String,
    /// A value for each axis; a load that is not known stands as it will be made, `0.8 × limit.max_qps_under_slo`.
    pub cell: Map<String, Value>,
    /// How often it would be run.
    pub repeats: u32,
    /// `pending`: an earlier sweep has not answered yet; `blocked`: it has no answer, so that there is no load; `pruned`: `skip_if` leaves
    /// it out; `left_out`: the budget does; `stopped`: a gate said no; `undecided`: a gate cannot be decided.
    pub state: Waits,
    /// Why, in words.
    pub why: String,
}

impl PendingCell {
    /// It as a preview has it.
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

    /// What people call it in its sweep.
    pub(crate) fn name(&self) -> String {
        let value = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.cell.values().map(value).collect::<Vec<_>>().join(" · ")
    }
}
