//! What an endpoint costs: rented by the hour, or bought.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Decimal;

/// Hardware that was bought, in the place of `price_per_hour`: its price over the hours of its life, on or idle, and the energy
/// that it takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Owned {
    /// What the whole endpoint cost, in your currency.
    #[schemars(range(min = 0), example = 240_000)]
    pub purchase_price: Decimal,
    /// Years until it is written off, in equal parts.
    #[schemars(extend("exclusiveMinimum" = 0), example = 4)]
    pub lifetime_years: Decimal,
    /// Price of a kilowatt-hour; needs `watts` beside it. Default: energy is not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), example = 0.25)]
    pub energy_price_per_kwh: Option<Decimal>,
}
