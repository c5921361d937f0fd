//! What a paired t test can see: its power, the smallest difference that it finds in 80 % of cases, and how many pairs a
//! difference takes. Differences are in standard deviations of one pair's difference.

use crate::analysis::student;

/// Chance of a false finding, two-sided; of several tests together.
pub const LEVEL: f64 = 0.05;
/// The share of cases in which a detectable difference is found.
pub const POWER: f64 = 0.8;
/// More pairs than this are not looked for.
const MOST_PAIRS: usize = 10_000;

/// The chance that `n` pairs show a difference of `effect` standard deviations at `level`.
pub fn power(n: usize, effect: f64, level: f64) -> f64 {
    let df = (n - 1) as f64;
    student::beyond(student::critical(level, df), df, effect * (n as f64).sqrt())
}

/// The difference that `n` pairs, two or more, show at `level` with a power of 80 %, in true standard deviations.
pub fn detectable(n: usize, level: f64) -> f64 {
    let df = (n - 1) as f64;
    let critical = student::critical(level, df);
    student::bisect(|shift| student::beyond(critical, df, shift) >= POWER) / (n as f64).sqrt()
}

/// The same in standard deviations as `n` pairs measured them. A measured deviation may be too small, by a lot from few
/// pairs, so this is larger than [`detectable`]: such that other `n` pairs find the difference in 80 % of cases, whatever
/// the deviation came out as, on average.
pub fn detectable_as_measured(n: usize, level: f64) -> f64 {
    let df = (n - 1) as f64;
    let critical = student::critical(level, df);
    // Power by the shift, from a table: the mean below asks for it thousands of times.
    let table: Vec<f64> = (0..=STEPS).map(|step| student::beyond(critical, df, step as f64 * critical / PER)).collect();
    let found = |shift: f64| {
        let at = shift / critical * PER;
        let below = (at as usize).min(STEPS - 1);
        table[below] + (table[below + 1] - table[below]) * (at - below as f64).min(1.0)
    };
    student::bisect(|shift| student::over_spread(df, |measured| found(shift * measured)) >= POWER) / (n as f64).sqrt()
}

/// Steps of the table for each critical value, and how many there are: where it ends all is found.
const PER: f64 = 64.0;
const STEPS: usize = 512;

/// The fewest pairs, from `fewest` on, that show a difference of `effect` true standard deviations at `level` with a power
/// of 80 %; none up to 10 000.
pub(crate) fn pairs_for(effect: f64, level: f64, fewest: usize) -> Option<usize> {
    let (mut low, mut high) = (fewest.max(2), MOST_PAIRS + 1);
    while low < high {
        let middle = (low + high) / 2;
        if power(middle, effect, level) >= POWER { high = middle } else { low = middle + 1 }
    }
    (low <= MOST_PAIRS).then_some(low)
}
