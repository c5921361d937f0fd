//! Tests on the differences between two arms that are measured in rounds, with one run of each arm per
//! round.
//!
//! A difference is between two logarithms if the metric is compared as a ratio, and otherwise between
//! two values. Everything that both arms of a round share, such as the requests and the machine's state,
//! cancels out.

pub(crate) mod benjamini;
pub(crate) mod bootstrap;
pub mod holm;
pub mod power;
pub(crate) mod wilcoxon;

use super::student;

/// Minimum number of rounds for a test. With two rounds, a t test detects only differences of at least
/// nine standard deviations.
pub const FEWEST: usize = 3;

/// A paired t test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairedT {
    /// Number of rounds.
    pub n: usize,
    /// Mean difference.
    pub mean: f64,
    /// Standard deviation of the differences, divided by n − 1.
    pub sd: f64,
    /// Two-sided p-value.
    pub p: f64,
    /// Lower end of the mean's 95 % interval.
    pub low: f64,
    /// Upper end of the mean's 95 % interval.
    pub high: f64,
}

/// Computes the paired t test of differences around zero; `None` for fewer than two differences, or if
/// they are all equal, because then there is no random variation.
pub fn t_test(differences: &[f64]) -> Option<PairedT> {
    let (mean, sd) = moments(differences).filter(|(mean, sd)| *sd > mean.abs() * 1e-12)?;
    let n = differences.len();
    let (error, df) = (sd / (n as f64).sqrt(), (n - 1) as f64);
    let half = student::critical(power::LEVEL, df) * error;
    Some(PairedT { n, mean, sd, p: student::two_sided(mean / error, df), low: mean - half, high: mean + half })
}

/// Returns mean and standard deviation; `None` for fewer than two values.
pub(crate) fn moments(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (values.len() > 1).then(|| (mean, (squares / (n - 1.0)).sqrt()))
}
