//! The cost of an endpoint: rented by the hour, or bought.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Decimal;

/// Purchased hardware, instead of `price_per_hour`: its price spread over the hours of its lifetime, whether
/// in use or idle, plus the energy that it uses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Owned {
    /// Purchase price of the whole endpoint, in your currency.
    #[schemars(range(min = 0), example = 240_000)]
    pub purchase_price: Decimal,
    /// Years of linear depreciation.
    #[schemars(extend("exclusiveMinimum" = 0), example = 4)]
    pub lifetime_years: Decimal,
    /// Price of a kilowatt-hour; requires `watts`. Default: energy is not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), example = 0.25)]
    pub energy_price_per_kwh: Option<Decimal>,
}
