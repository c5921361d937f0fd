//! When a ladder of loads ends early.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Decimal;

/// What ends a ladder: its loads run from the lightest up, all repeats of one together, and the first of which this is shown is the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopRule {
    /// The load is shown to miss the plan's `slo`.
    SloMissed,
    /// More comes than the server answers.
    Saturated,
    /// So many requests fail that a run is invalid, or a run is given up because the server rejects the load.
    Errors,
    /// The load is cheap enough: a million output tokens are shown to cost no more than this, in the currency of the plan's prices.
    CostPerMillion(#[schemars(description = "The most that a million output tokens may cost.", example = 3)] Decimal),
}
