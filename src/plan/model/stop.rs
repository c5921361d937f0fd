//! The rule by which a series of loads ends early.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Decimal;

/// The rule that ends a series of loads: loads run from the lightest up, all repeats of a load together, and
/// the series ends after the first load that is shown to meet the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopRule {
    /// The load is shown to miss the plan's `slo`.
    SloMissed,
    /// Requests arrive faster than the server completes them.
    Saturated,
    /// So many requests fail that a run is invalid, or a run is given up because the server rejects the load.
    Errors,
    /// The load is cheap enough: a million output tokens are shown to cost no more than this amount, in the currency of the plan's prices.
    CostPerMillion(#[schemars(description = "Maximum cost of a million output tokens.", example = 3)] Decimal),
}
