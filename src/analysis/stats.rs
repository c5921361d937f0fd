//! Exact percentiles with intervals. Some of the values may be failures, which rank above every observed value.
//!
//! Percentiles are of type 7 of Hyndman and Fan, which is numpy's default, and are computed from all values without a
//! histogram or a reservoir. Two tools that agree on the rows therefore agree on the number.

use std::fmt;

use crate::plan::Percentile;
use crate::units::text::digits;

use super::worth::{Sample, Span};
use super::{binomial, quantile};

/// A number that may lie among the failures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// The number itself.
    Exact(f64),
    /// The rank falls among failures, so the number is larger than this value, which is the largest
    /// observed value or bound.
    AtLeast(f64),
    /// For rates: the rank falls among failures, so the rate is below this value, which is the smallest
    /// observed rate.
    AtMost(f64),
    /// The rank falls among failures, and no value was observed.
    Failed,
}

impl Value {
    /// Returns the number; `None` if it lies among failures.
    pub fn exact(self) -> Option<f64> {
        match self {
            Value::Exact(value) => Some(value),
            Value::AtLeast(_) | Value::AtMost(_) | Value::Failed => None,
        }
    }

    /// Formats the number with three digits, preceded by `> ` (for a rate `< `) if it lies among failures.
    pub fn short(self) -> String {
        match self {
            Value::Exact(value) => digits(value),
            Value::AtLeast(bound) => format!("> {}", digits(bound)),
            Value::AtMost(bound) => format!("< {}", digits(bound)),
            Value::Failed => "failed".to_owned(),
        }
    }

    /// Returns the number for comparisons of times; infinity if it lies among failures, which are above every
    /// number.
    pub fn or_infinity(self) -> f64 {
        self.exact().unwrap_or(f64::INFINITY)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, f.precision()) {
            (Value::Exact(value), Some(digits)) => write!(f, "{value:.digits$}"),
            (Value::Exact(value), None) => write!(f, "{value}"),
            (Value::AtLeast(value), Some(digits)) => write!(f, "> {value:.digits$}"),
            (Value::AtLeast(value), None) => write!(f, "> {value}"),
            (Value::AtMost(value), Some(digits)) => write!(f, "< {value:.digits$}"),
            (Value::AtMost(value), None) => write!(f, "< {value}"),
            (Value::Failed, _) => f.write_str("failed"),
        }
    }
}

/// A 95 % interval within one run, with at most 2.5 % on either side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end; `None` if the run has too little evidence for it.
    pub low: Option<Value>,
    /// Upper end; `None` if the run has too little evidence for it.
    pub high: Option<Value>,
}

impl Interval {
    /// Creates an interval with both ends.
    pub fn between(low: Value, high: Value) -> Interval {
        Interval { low: Some(low), high: Some(high) }
    }

    /// Returns the lower end as a number; `None` if it is open or lies among failures.
    pub(crate) fn low_number(&self) -> Option<f64> {
        self.low?.exact()
    }

    /// Returns the upper end as a number; `None` if it is open or lies among failures.
    pub(crate) fn high_number(&self) -> Option<f64> {
        self.high?.exact()
    }
}

/// One percentile, or why it is missing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Estimate {
    /// The percentile is known.
    Is {
        /// The value of the percentile.
        value: Value,
        /// The interval of the percentile; `None` if the run is too short for one.
        interval: Option<Interval>,
        /// Whether the percentile has the mark `few samples` (`docs/METRICS.md`), because n is
        /// small for this percentile, or the run has too little evidence for the upper end of a
        /// p99.
        few_samples: bool,
    },
    /// There are too few values for an interval of the percentile.
    NotEnough {
        /// Number of values, requests or gaps that are available, including failures.
        n: u64,
        /// Number of counted objects that are required.
        need: u64,
        /// What is counted: values, requests or gaps.
        of: Counted,
    },
}

/// The objects that are counted for a percentile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counted {
    /// Values, one for each request.
    Values,
    /// Requests that have gaps.
    Requests,
    /// Gaps, by their effective number.
    Gaps,
}

impl Counted {
    /// Formats `n=212 < 368`, with the name of the counted objects if they are not values.
    pub fn short_of(self, n: u64, need: u64) -> String {
        match self {
            Counted::Values => format!("n={n} < {need}"),
            Counted::Requests => format!("requests={n} < {need}"),
            Counted::Gaps => format!("worth={n} < {need}"),
        }
    }
}

impl Estimate {
    /// Returns the value as a number; `None` if there are too few values or the rank falls among failures.
    pub fn exact(&self) -> Option<f64> {
        self.value()?.exact()
    }

    /// Returns the value; `None` if there are too few values.
    pub fn value(&self) -> Option<Value> {
        match self {
            Estimate::Is { value, .. } => Some(*value),
            Estimate::NotEnough { .. } => None,
        }
    }

    /// Returns the number of available values if there are too few; otherwise `None`.
    pub(crate) fn too_few(&self) -> Option<u64> {
        match self {
            Estimate::NotEnough { n, .. } => Some(*n),
            Estimate::Is { .. } => None,
        }
    }

    /// Returns the interval; `None` if there are too few values for an interval.
    pub fn interval(&self) -> Option<Interval> {
        match self {
            Estimate::Is { interval, .. } => *interval,
            Estimate::NotEnough { .. } => None,
        }
    }

    /// Returns whether the estimate has the mark `few samples`.
    pub fn few_samples(&self) -> bool {
        matches!(self, Estimate::Is { few_samples: true, .. })
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Estimate::Is { value, .. } => value.fmt(f),
            Estimate::NotEnough { n: 0, .. } => f.write_str("n/a"),
            Estimate::NotEnough { n, need, of } => write!(f, "n/a ({})", of.short_of(*n, *need)),
        }
    }
}

/// Sorted values, with the failures above them.
pub(super) struct Ordered<'a> {
    /// Number of observed values.
    pub observed: u64,
    /// Returns the observed value at an index, which counts the values in rising order from 0.
    pub at: &'a dyn Fn(u64) -> f64,
    /// Number of failures.
    pub failures: u64,
    /// Largest observed value or bound.
    pub largest: Option<f64>,
}

impl Ordered<'_> {
    fn n(&self) -> u64 {
        self.observed + self.failures
    }

    fn above(&self) -> Value {
        self.largest.map_or(Value::Failed, Value::AtLeast)
    }

    /// Returns the order statistic at an index from 0.
    fn statistic(&self, index: u64) -> Value {
        if index < self.observed { Value::Exact((self.at)(index)) } else { self.above() }
    }

    /// Returns the type 7 quantile at `permille` thousandths. There must be at least one value.
    pub(super) fn quantile(&self, permille: u64) -> Value {
        let scaled = (self.n() - 1) * permille;
        let (index, share) = (scaled / 1000, (scaled % 1000) as f64 / 1000.0);
        let below = self.statistic(index);
        if share == 0.0 {
            return below;
        }
        match (below, self.statistic(index + 1)) {
            (Value::Exact(a), Value::Exact(b)) => Value::Exact(lerp(a, b, share)),
            _ => self.above(),
        }
    }

    /// Returns the interval of a percentile of independent values.
    fn interval(&self, percentile: Percentile) -> Option<Interval> {
        let (low, high) = binomial::interval_ranks(self.n(), quantile::share(percentile))?;
        Some(Interval::between(self.statistic(low - 1), self.statistic(high - 1)))
    }

    /// Returns the interval between the order statistics at these indices.
    fn spanned(&self, span: Span) -> Interval {
        Interval {
            low: span.low.map(|index| self.statistic(index)),
            high: span.high.map(|index| self.statistic(index)),
        }
    }

    /// Estimates the percentile, with the interval returned by `interval`, if any.
    pub(super) fn estimate(&self, percentile: Percentile, interval: impl FnOnce() -> Option<Interval>) -> Estimate {
        let (n, need) = (self.n(), quantile::need(percentile));
        if n < need {
            return Estimate::NotEnough { n, need, of: Counted::Values };
        }
        self.known(percentile, interval(), n as f64)
    }

    /// Estimates the percentile and its interval, given the effective number of independent values.
    pub(super) fn known(&self, percentile: Percentile, interval: Option<Interval>, worth: f64) -> Estimate {
        // If the upper end of a tail percentile's interval is unknown, the percentile is marked as if it had
        // few values.
        let is_open = interval.is_none_or(|interval| interval.high.is_none());
        let mark = quantile::unmarked_from(percentile) as f64;
        Estimate::Is {
            value: self.quantile(quantile::permille(percentile)),
            interval,
            few_samples: worth < mark || mark > 0.0 && is_open,
        }
    }
}

/// Returns the type 7 quantile of `rising` values at `permille` thousandths; `None` without values.
pub(super) fn sorted_quantile(rising: &[f64], permille: u64) -> Option<f64> {
    let at = |index: u64| rising[index as usize];
    let ordered = Ordered { observed: rising.len() as u64, at: &at, failures: 0, largest: None };
    if rising.is_empty() { None } else { ordered.quantile(permille).exact() }
}

/// Interpolates between `a` and `b` from the nearer end, as numpy does, so that the result always lies
/// between them.
fn lerp(a: f64, b: f64, share: f64) -> f64 {
    if share < 0.5 { a + (b - a) * share } else { b - (b - a) * (1.0 - share) }
}

/// One distribution of a run, in the unit of its metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Number of values, including failures.
    pub n: u64,
    /// Number of failures among the values. In percentiles, failures are worse than every other value (above
    /// for times, below for rates); mean and deviation exclude them.
    pub failures: u64,
    /// Mean of the completed requests; `None` if there are none.
    pub mean: Option<f64>,
    /// Standard deviation of the completed requests, with divisor n − 1; `None` for fewer than two.
    pub sd: Option<f64>,
    /// The percentiles, in the order of [`quantile::ALL`].
    pub percentiles: [Estimate; 6],
    /// The largest value; `None` without values.
    pub max: Option<Value>,
    /// Lower bound of percentiles among failures: the largest observed value or bound. `None` without
    /// failures, or if nothing was observed.
    pub above: Option<f64>,
    /// For rates, whose failures lie below all values: the upper bound of percentiles among failures, which
    /// is the smallest observed value. `None` for other metrics.
    pub below: Option<f64>,
    /// For gaps: their effective numbers; `None` if every request has at most one value.
    pub(crate) clusters: Option<Clustered>,
}

/// The effective numbers of gaps, which come in clusters because gaps of the same request are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clustered {
    /// Number of requests that have gaps.
    pub requests: u64,
    /// For each percentile, in the order of [`quantile::ALL`], the equivalent number of independent gaps,
    /// which is gaps / design effect.
    pub effective: [u64; 6],
}

impl Summary {
    /// Summarizes independent `values`, in any order, with `failures` above them; `bound` is the largest
    /// known bound of a failure.
    pub fn of(mut values: Vec<f64>, failures: u64, bound: Option<f64>) -> Summary {
        values.sort_unstable_by(f64::total_cmp);
        let largest = values.last().copied().into_iter().chain(bound).reduce(f64::max);
        let at = |index: u64| values[index as usize];
        let ordered = Ordered { observed: values.len() as u64, at: &at, failures, largest };
        let estimate = |percentile| ordered.estimate(percentile, || ordered.interval(percentile));
        Summary::assemble(&ordered, quantile::ALL.map(estimate))
    }

    /// Summarizes the requests of a run, which depend on each other: intervals are based on their effective
    /// number. `bound` is the largest known bound of a failure.
    pub(crate) fn of_sample(sample: &Sample, bound: Option<f64>) -> Summary {
        let rising = sample.rising();
        let observed = rising.partition_point(|value| value.is_finite());
        let largest = rising[..observed].last().copied().into_iter().chain(bound).reduce(f64::max);
        let at = |index: u64| rising[index as usize];
        let failures = (rising.len() - observed) as u64;
        let ordered = Ordered { observed: observed as u64, at: &at, failures, largest };
        let interval = |percentile| Some(ordered.spanned(sample.interval(quantile::share(percentile))?));
        let estimate = |percentile| ordered.estimate(percentile, || interval(percentile));
        Summary::assemble(&ordered, quantile::ALL.map(estimate))
    }

    /// Completes a summary, given its percentiles.
    pub(super) fn assemble(ordered: &Ordered, percentiles: [Estimate; 6]) -> Summary {
        let values = || (0..ordered.observed).map(|index| (ordered.at)(index));
        let (mean, sd) = moments(values);
        let n = ordered.n();
        Summary {
            n,
            failures: ordered.failures,
            mean,
            sd,
            percentiles,
            max: (n > 0).then(|| ordered.statistic(n - 1)),
            above: ordered.largest.filter(|_| ordered.failures > 0),
            below: None,
            clusters: None,
        }
    }

    /// Returns one of the percentiles.
    pub fn percentile(&self, percentile: Percentile) -> Estimate {
        self.percentiles[percentile as usize]
    }

    /// Returns the highest percentile that n values support; `None` if they do not even support the median.
    pub fn highest(&self) -> Option<Percentile> {
        quantile::ALL.into_iter().rev().find(|percentile| self.percentile(*percentile).value().is_some())
    }

    /// Returns p99 / p50; `None` if either is missing or lies among failures, or p50 is 0.
    pub(crate) fn tail_ratio(&self) -> Option<f64> {
        let median = self.percentile(Percentile::P50).exact().filter(|median| *median > 0.0)?;
        Some(self.percentile(Percentile::P99).exact()? / median)
    }
}

/// Returns mean and sample standard deviation, computed in two passes, because the one-pass formula loses
/// digits when the spread is small.
fn moments<I: Iterator<Item = f64>>(values: impl Fn() -> I) -> (Option<f64>, Option<f64>) {
    let n = values().count();
    if n == 0 {
        return (None, None);
    }
    let mean = values().sum::<f64>() / n as f64;
    let squares = values().map(|value| (value - mean).powi(2)).sum::<f64>();
    (Some(mean), (n > 1).then(|| (squares / (n - 1) as f64).sqrt()))
}

/// Returns the type 7 quantile, without a minimum number of values.
pub(super) fn raw_quantile(mut values: Vec<f64>, permille: u64) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let at = |index: u64| values[index as usize];
    let ordered = Ordered { observed: values.len() as u64, at: &at, failures: 0, largest: None };
    (!values.is_empty()).then(|| ordered.quantile(permille).exact()).flatten()
}

#[cfg(test)]
#[path = "stats_tests.rs"]
mod tests;
