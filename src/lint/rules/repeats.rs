//! Rules about repeats that end when means are known precisely enough.

use super::super::finding::Finding;
use super::super::view::{SweepView, View, steps};
use crate::analysis::student;

/// Smallest difference that is expected between runs of the same server: one standard deviation, as a
/// share of the mean. `optimize` assumes the same value (docs/SEARCH.md, The best settings of a server).
const DIFFER: f64 = 0.01;
/// Significance level of the intervals of means.
const LEVEL: f64 = 0.05;
/// Maximum number of repeats that is recommended.
const MOST: u32 = 100;

/// M030: if runs differ by one percent, even the maximum number of repeats does not determine a mean as
/// precisely as `until` requires.
pub(crate) fn unreachable_until(_: &View, sweep: &SweepView) -> Option<Finding> {
    let repeats = &sweep.sweep.repeats;
    let until = repeats.until?;
    let half = |runs: u32| student::critical(LEVEL, f64::from(runs) - 1.0) * DIFFER / f64::from(runs).sqrt();
    let reached = |runs: &u32| half(*runs) <= until.to_f64();
    if repeats.at_most < 3 || reached(&repeats.at_most) {
        return None;
    }
    let message = format!(
        "if runs differ by 1%, {} repeats determine a mean only to within {:.2}%, not {until}: most likely, all \
         repeats will run without reaching this precision",
        repeats.at_most,
        100.0 * half(repeats.at_most),
    );
    let remedy = match (repeats.at_most..=MOST).find(reached) {
        Some(enough) => format!("write `at_most: {enough}` or more, or a wider `until`"),
        None => "write a wider `until`".to_owned(),
    };
    Some(sweep.finding(steps!["sweeps", sweep.name, "repeats", "at_most"], message, remedy))
}
