//! What an endpoint costs: rented by the hour, or bought.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::endpoint::Hardware;
use crate::units::Decimal;

/// Hours of a year of 365 days.
const HOURS_PER_YEAR: f64 = 8_760.0;

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

impl Hardware {
    /// What the whole endpoint costs per hour, rented or owned; none where neither is declared.
    pub fn cost_per_hour(&self) -> Option<f64> {
        if let Some(price) = self.price_per_hour {
            return Some(price.to_f64());
        }
        let Owned { purchase_price, lifetime_years, energy_price_per_kwh } = self.owned?;
        let worn = purchase_price.to_f64() / (lifetime_years.to_f64() * HOURS_PER_YEAR);
        let energy =
            energy_price_per_kwh.zip(self.watts).map(|(price, watts)| price.to_f64() * watts.to_f64() / 1_000.0);
        Some(worn + energy.unwrap_or(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    #[test]
    fn owned_hardware_costs_its_price_over_its_life_and_its_energy() {
        let owned = Owned {
            purchase_price: decimal("262800"),
            lifetime_years: decimal("3"),
            energy_price_per_kwh: Some(decimal("0.25")),
        };
        let hardware = Hardware { owned: Some(owned), watts: Some(decimal("6000")), ..Hardware::default() };
        // 262 800 over 26 280 hours is 10 an hour; 6 kW at 0.25 are 1.5.
        assert!((hardware.cost_per_hour().unwrap() - 11.5).abs() < 1e-12);
        let cold = Hardware { watts: None, ..hardware.clone() };
        assert!((cold.cost_per_hour().unwrap() - 10.0).abs() < 1e-12);
        let rented = Hardware { price_per_hour: Some(decimal("31.2")), owned: None, ..hardware };
        assert_eq!(rented.cost_per_hour(), Some(31.2));
        assert_eq!(Hardware::default().cost_per_hour(), None);
    }
}
