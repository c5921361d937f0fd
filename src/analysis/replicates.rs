//! Repeats of a cell as one number: the mean over runs with an interval that says of which kind it is.
//!
//! Requests of one run are correlated near saturation, so a claim about a configuration comes from several runs. Latencies,
//! rates, money and ratios are positive and skewed: their mean is geometric, their interval Student's on logarithms.
//! Shares, counts and waits that may be 0 are averaged as they are. The scale follows from the metric alone, never from
//! the values.

use super::metric::{Metric, Unit};
use super::paired::{bootstrap, moments, power};
use super::student;

/// What a 95 % interval rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntervalKind {
    /// Order statistics of the requests of one run.
    OrderStatistic,
    /// A bootstrap over the requests of one run.
    BootstrapOverRequests,
    /// Student's t over runs.
    TOverRuns,
    /// Student's t over the logarithms of runs: the mean is geometric.
    LogTOverRuns,
    /// A studentized bootstrap over runs.
    BootstrapOverRuns,
}

impl IntervalKind {
    /// The name in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            IntervalKind::OrderStatistic => "order statistics of requests",
            IntervalKind::BootstrapOverRequests => "bootstrap over requests",
            IntervalKind::TOverRuns => "t over runs",
            IntervalKind::LogTOverRuns => "t over runs, log scale",
            IntervalKind::BootstrapOverRuns => "bootstrap over runs",
        }
    }
}

/// How values of a metric are averaged and compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// As they are: means and differences.
    Plain,
    /// By their logarithms: geometric means and ratios.
    Log,
}

/// Times that are 0 where all is well.
const WAITS: [&str; 3] = ["lateness", "connecting", "cap_wait"];

impl Scale {
    /// The scale of a metric.
    pub fn of(metric: &Metric) -> Scale {
        match metric.unit {
            Unit::Share | Unit::Requests => Scale::Plain,
            _ if WAITS.contains(&metric.key) => Scale::Plain,
            _ => Scale::Log,
        }
    }

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

    fn kind(self) -> IntervalKind {
        match self {
            Scale::Plain => IntervalKind::TOverRuns,
            Scale::Log => IntervalKind::LogTOverRuns,
        }
    }
}

/// The ends of a 95 % interval and what they rest on, in the unit of the metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ends {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// What they rest on.
    pub kind: IntervalKind,
}

/// A metric over several runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OverRuns {
    /// Runs.
    pub n: usize,
    /// Their mean: geometric on the log scale. Null without runs, and where a value has no logarithm.
    pub mean: Option<f64>,
    /// Its interval by Student's t; null below two runs.
    pub ends: Option<Ends>,
}

/// The mean over runs, one value of each.
pub fn over_runs(values: &[f64], scale: Scale) -> OverRuns {
    let n = values.len();
    let Some(entered) = values.iter().map(|value| scale.enter(*value)).collect::<Option<Vec<f64>>>() else {
        return OverRuns { n, mean: None, ends: None };
    };
    let mean = (n > 0).then(|| entered.iter().sum::<f64>() / n as f64);
    let ends = moments(&entered).map(|(mean, sd)| {
        let half = student::critical(power::LEVEL, (n - 1) as f64) * sd / (n as f64).sqrt();
        Ends { low: scale.leave(mean - half), high: scale.leave(mean + half), kind: scale.kind() }
    });
    OverRuns { n, mean: mean.map(|mean| scale.leave(mean)), ends }
}

/// The interval of the same mean by a studentized bootstrap, which takes no distribution for granted; none below eight
/// runs.
pub fn bootstrapped(values: &[f64], scale: Scale) -> Option<Ends> {
    let entered = values.iter().map(|value| scale.enter(*value)).collect::<Option<Vec<f64>>>()?;
    let (low, high) = bootstrap::interval(&entered)?;
    Some(Ends { low: scale.leave(low), high: scale.leave(high), kind: IntervalKind::BootstrapOverRuns })
}
