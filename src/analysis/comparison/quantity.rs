//! A metric as it is compared: its unit, which direction is better, and how differences of it are formed.

use super::Better;
use crate::analysis::metric::{Metric, Unit};
use crate::analysis::paired::PairedT;
use crate::analysis::replicates::Scale;
use crate::plan::MetricName;

/// A metric as it is compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quantity {
    /// The metric, with its percentile.
    pub(super) name: MetricName,
    /// Unit; empty for shares, ratios and money.
    pub(super) unit: &'static str,
    /// The unit, of which `unit` is the symbol.
    pub(super) measured_in: Unit,
    /// Which direction is better.
    pub(super) better: Better,
    /// Whether differences are those of logarithms.
    pub(super) scale: Scale,
}

/// A mean difference of a metric over cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Effect {
    /// The metric.
    pub(super) quantity: Quantity,
    /// The test of whether the mean over cells is zero, on the metric's scale.
    pub(super) t: PairedT,
}

impl Quantity {
    pub(super) fn of(name: MetricName, metric: &Metric) -> Quantity {
        let Metric { unit, better, scale, .. } = *metric;
        Quantity { name, unit: unit.symbol(), measured_in: unit, better, scale }
    }

    /// Returns 1 if a higher value of the metric is worse, and -1 if a lower value is worse.
    pub(super) fn sign(&self) -> f64 {
        if self.better == Better::Lower { 1.0 } else { -1.0 }
    }

    /// Returns `ratio` or `difference`: what a change of the metric is.
    pub(super) fn change(&self) -> &'static str {
        if self.scale == Scale::Log { "ratio" } else { "difference" }
    }

    /// Returns the margin on the metric's scale, as a positive number; `None` for a metric that has no
    /// margin.
    pub(super) fn limit(&self, margin: f64) -> Option<f64> {
        match (self.better, self.scale) {
            (Better::Neither, _) => None,
            (Better::Lower, Scale::Log) => Some(margin.ln_1p()),
            (Better::Higher, Scale::Log) => Some(-(-margin).ln_1p()),
            (_, Scale::Plain) => (self.measured_in == Unit::Share).then_some(margin),
        }
    }
}
