//! The sensitivity of a paired t test: its power, the smallest difference that it finds in 80 % of cases,
//! and the number of pairs that a difference requires. Differences are expressed in standard deviations of
//! one pair's difference.

use crate::analysis::student;

/// Chance of a false finding, two-sided; for several tests, the chance of any false finding.
pub const LEVEL: f64 = 0.05;
/// The share of cases in which a detectable difference is found.
pub const POWER: f64 = 0.8;
/// Maximum number of pairs considered.
const MOST_PAIRS: usize = 10_000;

/// Returns the probability that `n` pairs show a difference of `effect` standard deviations at `level`.
pub fn power(n: usize, effect: f64, level: f64) -> f64 {
    let df = (n - 1) as f64;
    student::beyond(student::critical(level, df), df, effect * (n as f64).sqrt())
}

/// Returns the difference that `n` pairs show at `level` with a power of 80 %, in true standard
/// deviations. `n` must be at least 2.
pub fn detectable(n: usize, level: f64) -> f64 {
    let df = (n - 1) as f64;
    let critical = student::critical(level, df);
    student::bisect(|shift| student::beyond(critical, df, shift) >= POWER) / (n as f64).sqrt()
}

/// Returns the detectable difference in standard deviations as measured by `n` pairs. The measured
/// deviation may be too small, especially with few pairs, so the result is larger than [`detectable`]:
/// averaged over measured deviations, another `n` pairs find the difference in 80 % of cases.
pub fn detectable_as_measured(n: usize, level: f64) -> f64 {
    let df = (n - 1) as f64;
    let critical = student::critical(level, df);
    // The power is tabulated by shift, because the mean below needs it thousands of times.
    let table: Vec<f64> = (0..=STEPS).map(|step| student::beyond(critical, df, step as f64 * critical / PER)).collect();
    let found = |shift: f64| {
        let at = shift / critical * PER;
        let below = (at as usize).min(STEPS - 1);
        table[below] + (table[below + 1] - table[below]) * (at - below as f64).min(1.0)
    };
    student::bisect(|shift| student::over_spread(df, |measured| found(shift * measured)) >= POWER) / (n as f64).sqrt()
}

/// Number of steps of the table per critical value, and total number of steps. Beyond the end of the table,
/// the power is 1.
const PER: f64 = 64.0;
const STEPS: usize = 512;

/// Returns the smallest number of pairs, at least `fewest`, that show a difference of `effect` true
/// standard deviations at `level` with a power of 80 %; `None` if more than 10 000 pairs are needed.
pub(crate) fn pairs_for(effect: f64, level: f64, fewest: usize) -> Option<usize> {
    let (mut low, mut high) = (fewest.max(2), MOST_PAIRS + 1);
    while low < high {
        let middle = (low + high) / 2;
        if power(middle, effect, level) >= POWER { high = middle } else { low = middle + 1 }
    }
    (low <= MOST_PAIRS).then_some(low)
}
