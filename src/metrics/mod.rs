//! The metrics of a run, each described once: name, unit, which way is better, how it is averaged and tested, from how many requests
//! it exists, what it is and when there is none.
//!
//! Plans take their names from here, `analysis` adds how each is read off a run (`analysis/metric.rs`), exports make their columns,
//! reports their lines, schemas their names. A metric is added by its entry in `table.rs` and its reading.

mod jitter;
mod table;

use schemars::JsonSchema;
use serde::Serialize;

pub use jitter::{JITTER_MARKS, ScaleMark};
pub use table::METRICS;

/// What a metric is counted in.
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
    /// Requests, as an average.
    Requests,
    /// A share between 0 and 1.
    Share,
    /// A ratio.
    #[strum(serialize = "")]
    Ratio,
    /// Money, in the currency of the plan's `price_per_hour`.
    Money,
    /// Tokens.
    Tokens,
}

impl Unit {
    /// The end of a column's name; none where the key says it already.
    pub fn suffix(self) -> &'static str {
        match self {
            Unit::Millis => "_ms",
            Unit::TokensPerSecond => "_tokens_per_s",
            Unit::RequestsPerSecond => "_requests_per_s",
            Unit::Requests | Unit::Share | Unit::Ratio | Unit::Money | Unit::Tokens => "",
        }
    }

    /// Its name in the documentation of a column; empty for a ratio.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The unit beside a printed number.
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

/// Which of two values of a metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// The lower one.
    Lower,
    /// The higher one.
    Higher,
    /// Neither: it says what was done, not how well.
    Neither,
}

/// How values of a metric are averaged and compared over runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// As they are: means and differences.
    Plain,
    /// By their logarithms: geometric means and ratios.
    Log,
}

impl Scale {
    /// A value on the scale; none for what has no logarithm.
    pub fn enter(self, value: f64) -> Option<f64> {
        match self {
            Scale::Plain => value.is_finite().then_some(value),
            Scale::Log => (value > 0.0 && value.is_finite()).then(|| value.ln()),
        }
    }

    /// A value of the scale as the metric's own.
    pub fn leave(self, value: f64) -> f64 {
        match self {
            Scale::Plain => value,
            Scale::Log => value.exp(),
        }
    }
}

/// What a distribution is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// One value of a request: failed ones are worse than every other.
    Requests,
    /// Every gap of a request. Gaps of one request are alike, so they count for what they are worth.
    Gaps,
}

/// How many values a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A count, never null.
    Count,
    /// One number.
    Single,
    /// One number that takes the plan: its thresholds or prices.
    OfPlan,
    /// Many, with percentiles.
    Distribution {
        /// What they are of.
        of: Of,
        /// Fewest requests from which percentiles exist, whatever their own smallest sample.
        fewest_requests: u64,
        /// When one request has none.
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
    /// Its name everywhere.
    pub key: &'static str,
    /// What people read in reports.
    pub title: &'static str,
    /// What it is counted in.
    pub unit: Unit,
    /// Which way is better. Percentiles of what is better when higher are of the lower side: p99 is what 99 % got or better.
    pub better: Better,
    /// How it is averaged and tested over runs.
    pub scale: Scale,
    /// How many values a run has.
    pub kind: Kind,
    /// What it is, in METRICS' words.
    pub definition: &'static str,
    /// When a run has none; empty where it always has.
    pub null_when: &'static str,
}

impl Metric {
    /// Whether it is a distribution of rates: a failed request is below all others, and a percentile is what that share got or
    /// better.
    pub fn is_rate(&self) -> bool {
        self.kind.is_distribution() && self.better == Better::Higher
    }

    /// The name of its column in exports, of a metric without percentiles: the key and the unit.
    pub fn column(&self) -> String {
        format!("{}{}", self.key, self.unit.suffix())
    }
}

/// The metric of a key.
pub fn find(key: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.key == key)
}

#[cfg(test)]
mod tests;
