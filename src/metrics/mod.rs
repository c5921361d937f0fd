//! The metrics of a run. Each is defined once, with its name, unit, better direction, averaging and test
//! method, required number of requests, definition, and the conditions under which it is null.
//!
//! Plans use these names. `analysis` defines how each metric is read from a run (`analysis/metric.rs`), and
//! exports, reports and schemas derive their columns, lines and names from here. To add a metric, add its
//! definition to `table.rs` and its accessor to `analysis/metric.rs`.

mod jitter;
mod table;

use schemars::JsonSchema;
use serde::Serialize;

pub use jitter::{JITTER_MARKS, ScaleMark};
pub use table::METRICS;

/// The unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Unit {
    /// Milliseconds.
    #[strum(serialize = "ms")]
    Millis,
    /// Tokens per second.
    #[strum(serialize = "tokens/s")]
    TokensPerSecond,
    /// Requests per second.
    #[strum(serialize = "requests/s")]
    RequestsPerSecond,
    /// Average number of requests.
    Requests,
    /// A share between 0 and 1.
    Share,
    /// A ratio.
    #[strum(serialize = "")]
    Ratio,
    /// An amount of money, in the currency of the plan's `price_per_hour`.
    Money,
    /// Tokens.
    Tokens,
}

impl Unit {
    /// Returns the suffix of a column's name; empty if the unit is clear from the key.
    pub fn suffix(self) -> &'static str {
        match self {
            Unit::Millis => "_ms",
            Unit::TokensPerSecond => "_tokens_per_s",
            Unit::RequestsPerSecond => "_requests_per_s",
            Unit::Requests | Unit::Share | Unit::Ratio | Unit::Money | Unit::Tokens => "",
        }
    }

    /// Returns the unit's name in the documentation of a column; empty for a ratio.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the unit that is shown next to a printed number.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Millis => "ms",
            Unit::TokensPerSecond => "tok/s",
            Unit::RequestsPerSecond => "req/s",
            Unit::Requests => "requests",
            Unit::Tokens => "tokens",
            Unit::Share | Unit::Ratio | Unit::Money => "",
        }
    }
}

/// The better direction of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Lower is better.
    Lower,
    /// Higher is better.
    Higher,
    /// Neither direction is better: the metric describes the load, not the performance.
    Neither,
}

/// How values of a metric are averaged and compared over runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Linear, with arithmetic means and differences.
    Plain,
    /// Logarithmic, with geometric means and ratios.
    Log,
}

impl Scale {
    /// Converts a value to the scale; `None` if the value is not finite, or has no logarithm on a
    /// logarithmic scale.
    pub fn enter(self, value: f64) -> Option<f64> {
        match self {
            Scale::Plain => value.is_finite().then_some(value),
            Scale::Log => (value > 0.0 && value.is_finite()).then(|| value.ln()),
        }
    }

    /// Converts a value of the scale back to the metric.
    pub fn leave(self, value: f64) -> f64 {
        match self {
            Scale::Plain => value,
            Scale::Log => value.exp(),
        }
    }
}

/// The items over which a distribution is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// One value per request; failed requests are worse than all others.
    Requests,
    /// Every gap of a request. Gaps of one request are correlated, so their effective number is used instead
    /// of their count.
    Gaps,
}

/// How many values of the metric a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A single count, which is never null.
    Count,
    /// One number.
    Single,
    /// One number that depends on the plan's thresholds or prices.
    OfPlan,
    /// Many values, with percentiles.
    Distribution {
        /// The items that the distribution covers.
        of: Of,
        /// Minimum number of requests for percentiles, in addition to the percentile's own minimum
        /// sample size.
        fewest_requests: u64,
        /// Describes when a single request has no value.
        null_of_request: &'static str,
    },
}

impl Kind {
    /// Whether the metric has percentiles.
    pub fn is_distribution(self) -> bool {
        matches!(self, Kind::Distribution { .. })
    }
}

/// One metric of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// The key of the metric in all formats.
    pub key: &'static str,
    /// The title of the metric in reports.
    pub title: &'static str,
    /// The unit of the metric.
    pub unit: Unit,
    /// The better direction. For metrics where higher is better, percentiles count from the lower side: p99
    /// is the value that 99 % reached or exceeded.
    pub better: Better,
    /// How the metric is averaged and tested over runs.
    pub scale: Scale,
    /// How many values a run has.
    pub kind: Kind,
    /// The definition, worded as in METRICS.md.
    pub definition: &'static str,
    /// Describes when a run has no value; empty if it always has one.
    pub null_when: &'static str,
}

impl Metric {
    /// Whether the metric is a distribution of rates: a failed request is below all others, and a
    /// percentile is the value that the given share of requests reached or exceeded.
    pub fn is_rate(&self) -> bool {
        self.kind.is_distribution() && self.better == Better::Higher
    }

    /// Returns the name of the metric's column in exports, for a metric without percentiles: the key and the
    /// unit.
    pub fn column(&self) -> String {
        format!("{}{}", self.key, self.unit.suffix())
    }
}

/// Finds the metric with this key; `None` if there is no such metric.
pub fn find(key: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.key == key)
}

#[cfg(test)]
mod tests;
