//! Combines the repeats of a cell into one number: the mean over runs, with an interval and its
//! basis.
//!
//! Requests of one run are correlated near saturation, so a claim about a configuration needs several
//! runs. Latencies, rates, money and ratios are positive and skewed, so their mean is geometric, and
//! their interval is Student's on logarithms. Shares, counts and waits that may be 0 are averaged directly.
//! The scale depends only on the metric, never on the values.

pub use crate::metrics::Scale;
use crate::metrics::{Metric, Unit};

use super::paired::{moments, power};
use super::student;

/// Basis of a 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntervalKind {
    /// Order statistics of the requests of one run.
    OrderStatistic,
    /// Order statistics of the gaps of one run, whose effective number is computed by request.
    GapsByRequests,
    /// Clopper and Pearson's interval of a share, based on the effective number of independent
    /// requests in one or several runs.
    ShareOfRequests,
    /// Student's t over runs.
    TOverRuns,
    /// Student's t over the logarithms of runs, with a geometric mean.
    LogTOverRuns,
}

impl IntervalKind {
    /// Returns the name in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            IntervalKind::OrderStatistic => "order statistics of requests",
            IntervalKind::GapsByRequests => "order statistics of gaps by requests",
            IntervalKind::ShareOfRequests => "binomial, effective number of requests",
            IntervalKind::TOverRuns => "t over runs",
            IntervalKind::LogTOverRuns => "t over runs, log scale",
        }
    }
}

/// The ends of a 95 % interval, in the unit of the metric, and the basis of the interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ends {
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Basis of the interval.
    pub kind: IntervalKind,
}

/// A metric over several runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OverRuns {
    /// Number of runs.
    pub n: usize,
    /// The mean over the runs: geometric on the log scale. `None` without runs, or if a value has no
    /// logarithm.
    pub mean: Option<f64>,
    /// The interval of the mean by Student's t; `None` below two runs.
    pub ends: Option<Ends>,
}

/// Computes the mean over runs, given one value for each run.
pub fn over_runs(values: &[f64], scale: Scale) -> OverRuns {
    let n = values.len();
    let Some(entered) = values.iter().map(|value| scale.enter(*value)).collect::<Option<Vec<f64>>>() else {
        return OverRuns { n, mean: None, ends: None };
    };
    let mean = (n > 0).then(|| entered.iter().sum::<f64>() / n as f64);
    let ends = moments(&entered).map(|(mean, sd)| {
        let half = student::critical(power::LEVEL, (n - 1) as f64) * sd / (n as f64).sqrt();
        Ends { low: scale.leave(mean - half), high: scale.leave(mean + half), kind: kind_of(scale) }
    });
    OverRuns { n, mean: mean.map(|mean| scale.leave(mean)), ends }
}

/// Returns the basis of the interval of a mean on a scale.
fn kind_of(scale: Scale) -> IntervalKind {
    match scale {
        Scale::Plain => IntervalKind::TOverRuns,
        Scale::Log => IntervalKind::LogTOverRuns,
    }
}

impl OverRuns {
    /// Computes the mean of a metric over runs, given one value for each run. The interval of a share
    /// stays within 0 and 1. If the share is 0 in every run, or 1 in every run, there is no interval,
    /// because the distance of the true share from that value is unknown.
    pub fn of(metric: &Metric, values: &[f64]) -> OverRuns {
        let over = over_runs(values, metric.scale);
        if metric.unit != Unit::Share {
            return over;
        }
        let is_known = |ends: &Ends| ends.low < ends.high || (0.0 < ends.low && ends.low < 1.0);
        let within = |ends: Ends| Ends { low: ends.low.clamp(0.0, 1.0), high: ends.high.clamp(0.0, 1.0), ..ends };
        OverRuns { ends: over.ends.filter(is_known).map(within), ..over }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::metric;

    #[test]
    fn a_share_stays_a_share() {
        let of = |values: &[f64]| OverRuns::of(metric::find("error_share").unwrap(), values);
        let ends = of(&[0.0, 0.0, 0.02]).ends.unwrap();
        assert!(ends.low == 0.0 && (0.02..0.05).contains(&ends.high), "{ends:?}");
        assert_eq!(of(&[1.0, 0.9]).ends.unwrap().high, 1.0);
        assert_eq!([of(&[0.0; 3]).ends, of(&[1.0; 3]).ends], [None, None]);
        assert!(of(&[0.5; 3]).ends.is_some());
    }
}
