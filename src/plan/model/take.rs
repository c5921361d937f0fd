//! A load that is derived from the result of an earlier sweep, as written by the user.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::plan::model::shorthand::OneOrMany;
use crate::units::Decimal;

/// The result to read from a sweep.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SweepMetric {
    /// The highest rate of an open loop that meets the plan's `slo`, in requests per second.
    MaxQpsUnderSlo,
    /// The largest batch of a closed loop that meets the plan's `slo`, in requests in flight.
    MaxBatchSizeUnderSlo,
}

impl SweepMetric {
    /// All results that can be read.
    pub const ALL: [SweepMetric; 2] = [SweepMetric::MaxQpsUnderSlo, SweepMetric::MaxBatchSizeUnderSlo];

    /// The name in plans.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The axis to which the result belongs.
    pub fn axis(self) -> &'static str {
        match self {
            SweepMetric::MaxQpsUnderSlo => "qps",
            SweepMetric::MaxBatchSizeUnderSlo => "batch_size",
        }
    }

    /// The unit of the result.
    pub fn unit(self) -> &'static str {
        match self {
            SweepMetric::MaxQpsUnderSlo => "qps",
            SweepMetric::MaxBatchSizeUnderSlo => "in flight",
        }
    }
}

/// Which of several values is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Use {
    /// The smallest value, which is a load that all configurations sustain.
    #[default]
    Min,
    /// The largest value.
    Max,
}

impl Use {
    /// The name in plans.
    pub fn name(self) -> &'static str {
        match self {
            Use::Min => "min",
            Use::Max => "max",
        }
    }
}

/// Which figure of a search is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Figure {
    /// The highest load that is shown to meet the objective.
    Shown,
}

impl Figure {
    /// The name in plans.
    pub fn name(self) -> &'static str {
        match self {
            Figure::Shown => "shown",
        }
    }
}

/// A load derived from an earlier sweep: for each cell, the sweep's result in the cell with the same
/// values on all common axes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Take {
    /// The earlier sweep.
    pub from: String,
    /// The result to read.
    pub take: SweepMetric,
    /// The figure of a search that is used; `None` for the load that the search found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Figure>,
    /// Axes of the earlier sweep to aggregate over, so that all values of these axes get the same load.
    #[serde(default, skip_serializing_if = "OneOrMany::is_empty")]
    pub over: OneOrMany<String>,
    /// Which of the values over these axes is used.
    #[serde(rename = "use", default, skip_serializing_if = "Option::is_none")]
    pub uses: Option<Use>,
    /// The factor by which the value is multiplied.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub times: Decimal,
}

fn one() -> Decimal {
    Decimal::from(1)
}

fn is_one(times: &Decimal) -> bool {
    *times == one()
}

/// Formats the load for display before its value is known: `0.8 × limit.max_qps_under_slo`.
impl fmt::Display for Take {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !is_one(&self.times) {
            write!(f, "{} × ", self.times)?;
        }
        write!(f, "{}.{}", self.from, self.take.name())?;
        if let Some(figure) = self.value {
            write!(f, " ({})", figure.name())?;
        }
        if !self.over.is_empty() {
            write!(f, ", {} over {}", self.uses.unwrap_or_default().name(), self.over.0.join(" and "))?;
        }
        Ok(())
    }
}

/// Significant digits of a derived rate.
const DIGITS: u32 = 3;

impl Take {
    /// The load that results from a value of the sweep. The value is multiplied and then rounded down:
    /// a rate to three significant digits, a batch size to a whole number. `None` if the result is not
    /// a valid load because it is 0 or too large.
    pub fn load(&self, value: Decimal) -> Option<Decimal> {
        let product = value.checked_mul(self.times)?;
        let load = match self.take {
            SweepMetric::MaxQpsUnderSlo => product.cut_to_digits(DIGITS),
            SweepMetric::MaxBatchSizeUnderSlo => product.cut_to_whole(),
        };
        load.is_positive().then_some(load)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(metric: SweepMetric, times: &str) -> Take {
        let times = times.parse().expect("a number");
        let (from, over) = ("limit".to_owned(), OneOrMany::default());
        Take { from, take: metric, value: None, over, uses: None, times }
    }

    #[test]
    fn loads_are_rounded_down_after_they_are_multiplied() {
        let load = |metric, value: &str, times| {
            take(metric, times).load(value.parse().expect("a number")).map(|load| load.to_string())
        };
        for (value, times, expected) in [
            ("23.4", "0.8", "18.7"),
            ("23.4", "1", "23.4"),
            ("1234", "1", "1230"),
            ("0.123", "0.1", "0.0123"),
            ("199", "0.9999", "198"),
        ] {
            assert_eq!(load(SweepMetric::MaxQpsUnderSlo, value, times).as_deref(), Some(expected), "{value} × {times}");
        }
        assert_eq!(load(SweepMetric::MaxBatchSizeUnderSlo, "33", "0.8").as_deref(), Some("26"));
        assert_eq!(load(SweepMetric::MaxBatchSizeUnderSlo, "1", "0.8"), None);
    }

    #[test]
    fn it_is_shown_as_what_it_will_be() {
        let mut take = take(SweepMetric::MaxQpsUnderSlo, "0.8");
        assert_eq!(take.to_string(), "0.8 × limit.max_qps_under_slo");
        take.over = OneOrMany(vec!["endpoint".to_owned()]);
        take.times = Decimal::from(1);
        assert_eq!(take.to_string(), "limit.max_qps_under_slo, min over endpoint");
        take.value = Some(Figure::Shown);
        assert_eq!(take.to_string(), "limit.max_qps_under_slo (shown), min over endpoint");
    }
}
