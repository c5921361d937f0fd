//! Distributions of rates. Higher is better, so a percentile is the rate that this share of requests
//! reached or exceeded, and a failed request is below every rate.
//!
//! A rate is summarized as its negative, so that everything that applies to latencies also applies to
//! it: ranks, intervals, failures and effective sample sizes. The sign of the summary is then reversed.

use super::stats::{Estimate, Interval, Summary, Value};

impl Value {
    /// Returns the value that belongs to the negative.
    fn turned(self) -> Value {
        match self {
            Value::Exact(value) => Value::Exact(-value),
            Value::AtLeast(bound) => Value::AtMost(-bound),
            Value::AtMost(bound) => Value::AtLeast(-bound),
            Value::Failed => Value::Failed,
        }
    }
}

impl Estimate {
    fn turned(self) -> Estimate {
        match self {
            Estimate::Is { value, interval, few_samples } => {
                let turned = |end: Option<Value>| end.map(Value::turned);
                let around = |interval: Interval| Interval { low: turned(interval.high), high: turned(interval.low) };
                Estimate::Is { value: value.turned(), interval: interval.map(around), few_samples }
            }
            Estimate::NotEnough { .. } => self,
        }
    }
}

impl Summary {
    /// Returns the summary of rates, given the summary of their negatives and the largest rate.
    pub(super) fn turned(self, largest: Option<f64>) -> Summary {
        Summary {
            mean: self.mean.map(|mean| -mean),
            percentiles: self.percentiles.map(Estimate::turned),
            max: largest.map(Value::Exact),
            above: None,
            below: self.above.map(|above| -above),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::worth::{Sample, Turns};
    use crate::plan::Percentile;

    /// Returns the rates 1, 2, … 1 000, with the lowest `failed` of them replaced by failures.
    fn rates(failed: usize) -> Summary {
        let mut values: Vec<f64> = (1..=1000).map(|at| -f64::from((at * 387) % 1000 + 1)).collect();
        values.iter_mut().filter(|value| **value >= -(failed as f64)).for_each(|value| *value = f64::INFINITY);
        Summary::of_sample(&Sample::new(values, Turns::CLOSED), None).turned(Some(1000.0))
    }

    #[test]
    fn a_percentile_is_what_that_share_got_or_better() {
        let summary = rates(0);
        let exact = |percentile| summary.percentile(percentile).exact().unwrap();
        assert!((exact(Percentile::P99) - 10.99).abs() < 1e-9, "{}", exact(Percentile::P99));
        assert!((exact(Percentile::P90) - 100.9).abs() < 1e-9 && exact(Percentile::P50) == 500.5);
        assert_eq!((summary.max, summary.mean, summary.below), (Some(Value::Exact(1000.0)), Some(500.5), None));
        let interval = summary.percentile(Percentile::P95).interval().unwrap();
        assert!(interval.low_number().unwrap() < 50.95 && 50.95 < interval.high_number().unwrap());
    }

    #[test]
    fn failures_are_below_every_rate() {
        let summary = rates(20);
        assert_eq!(summary.percentile(Percentile::P99).value(), Some(Value::AtMost(21.0)));
        assert_eq!(summary.percentile(Percentile::P99).to_string(), "< 21");
        assert_eq!((summary.n, summary.failures, summary.below, summary.above), (1000, 20, Some(21.0), None));
        assert_eq!(summary.percentile(Percentile::P95).exact().map(f64::round), Some(51.0));
    }
}
