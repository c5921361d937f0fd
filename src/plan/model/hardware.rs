//! The hardware that a server runs on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::model::per_cell::PerCell;
use crate::plan::model::price::Owned;
use crate::units::Decimal;

/// The declared hardware of an endpoint. `gpu` and `gpus` are part of a run's identity; the rest is for
/// readers of the results, and runs keep their results when it changes.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hardware {
    /// The accelerator, like H100-SXM-80GB.
    #[schemars(example = "H100-SXM-80GB")]
    pub gpu: Option<String>,
    /// Number of accelerators that serve this endpoint.
    #[schemars(range(min = 1))]
    #[schemars(example = 8)]
    pub gpus: Option<PerCell<u32>>,
    /// Number of equal instances of the server behind this endpoint's load balancer. `capacity` reads endpoints that
    /// differ in this number as the measured scaling.
    #[schemars(range(min = 1))]
    #[schemars(example = 2)]
    pub replicas: Option<u32>,
    /// Memory of one accelerator, like 80GB HBM3.
    #[schemars(example = &"80GB HBM3")]
    pub memory: Option<String>,
    /// Memory bandwidth of one accelerator, like 3.35TB/s.
    #[schemars(example = "3.35TB/s")]
    pub memory_bandwidth: Option<String>,
    /// Interconnect of the accelerators, like nvlink.
    #[schemars(example = &"nvlink")]
    pub interconnect: Option<String>,
    /// The network between client and server, like 25GbE in one rack; `loopback` if both are on one
    /// host.
    #[schemars(example = &"25GbE, one rack")]
    pub network: Option<String>,
    /// Storage that the server loads its weights from, like local NVMe.
    #[schemars(example = &"local NVMe")]
    pub storage: Option<String>,
    /// Price of the whole endpoint per hour, in your currency.
    #[schemars(range(min = 0))]
    #[schemars(example = 31.2)]
    pub price_per_hour: Option<PerCell<Decimal>>,
    /// Cost of purchased hardware, instead of `price_per_hour`.
    #[schemars(example = serde_json::json!({ "purchase_price": 240_000, "lifetime_years": 4, "energy_price_per_kwh": 0.25 }))]
    pub owned: Option<Owned>,
    /// Power of the whole endpoint under load, in watts.
    #[schemars(extend("exclusiveMinimum" = 0), example = 5_600)]
    pub watts: Option<PerCell<Decimal>>,
}

/// Number of hours in a year of 365 days.
const HOURS_PER_YEAR: f64 = 8_760.0;

impl Hardware {
    /// Whether a price is declared.
    pub(crate) fn has_price(&self) -> bool {
        self.price_per_hour.is_some() || self.owned.is_some()
    }

    /// Number of accelerators that serve the endpoint, if it is the same in every cell.
    pub fn gpus(&self) -> Option<u32> {
        self.gpus.as_ref()?.same()
    }

    /// Power of the whole endpoint under load, if it is the same in every cell.
    pub fn watts(&self) -> Option<Decimal> {
        self.watts.as_ref()?.same()
    }

    /// The expressions that each cell evaluates, each with the name of its field.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let gpus = self.gpus.as_ref().and_then(PerCell::expression).map(|text| ("gpus", text));
        let price = self.price_per_hour.as_ref().and_then(PerCell::expression).map(|text| ("price_per_hour", text));
        let watts = self.watts.as_ref().and_then(PerCell::expression).map(|text| ("watts", text));
        [gpus, price, watts].into_iter().flatten()
    }

    /// Hourly cost of the whole endpoint, rented or owned; `None` if no cost is declared, or if it
    /// differs by cell.
    pub fn cost_per_hour(&self) -> Option<f64> {
        if let Some(price) = &self.price_per_hour {
            return price.same().map(Decimal::to_f64);
        }
        let Owned { purchase_price, lifetime_years, energy_price_per_kwh } = self.owned?;
        let worn = purchase_price.to_f64() / (lifetime_years.to_f64() * HOURS_PER_YEAR);
        let energy =
            energy_price_per_kwh.zip(self.watts()).map(|(price, watts)| price.to_f64() * watts.to_f64() / 1_000.0);
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
        let hardware =
            Hardware { owned: Some(owned), watts: Some(PerCell::Same(decimal("6000"))), ..Hardware::default() };
        // 262 800 over 26 280 hours is 10 per hour, and 6 kW at 0.25 per kWh is 1.5 per hour.
        assert!((hardware.cost_per_hour().unwrap() - 11.5).abs() < 1e-12);
        let cold = Hardware { watts: None, ..hardware.clone() };
        assert!((cold.cost_per_hour().unwrap() - 10.0).abs() < 1e-12);
        let rented = Hardware { price_per_hour: Some(PerCell::Same(decimal("31.2"))), owned: None, ..hardware };
        assert_eq!(rented.cost_per_hour(), Some(31.2));
        assert_eq!(Hardware::default().cost_per_hour(), None);
    }
}
