//! Tests whether requests fail equally often on two arms. The test compares failure counts and allows
//! for bursts of failures.
//!
//! The model is quasi-binomial: the counts of both arms have the binomial variance times a dispersion, which
//! is the same for both arms if they do not differ. The dispersion is the larger of two estimates. The
//! estimate *inside runs* is based on how failures are distributed within each run ([`FailureCount`]), with
//! each run weighted by its number of failures. The estimate *between runs* of an arm is Pearson's χ² over
//! its degrees of freedom; it also captures differences between runs, such as a server that failed in one
//! repeat of five. The difference divided by its standard error is compared with Student's t, with the
//! degrees of freedom of the larger estimate. The degrees of freedom are counted in batches for the estimate
//! inside runs (with several runs, at most three for each degree of freedom between runs), and in runs for
//! the estimate between runs. A single round provides only the estimate inside runs. The variation between
//! runs is then unknown, and the result applies to these runs only.
//!
//! The interval is by Newcombe (Interval estimation for the difference between independent proportions,
//! 1998, method 10). It uses the limits of each arm by Korn and Graubard (1998), so the interval for
//! 0 failures of n also has an upper end.

use schemars::JsonSchema;
use serde::Serialize;

use crate::analysis::binomial;
use crate::analysis::dispersion::{BATCHES, FailureCount};
use crate::analysis::paired::power;
use crate::analysis::student;

/// Maximum degrees of freedom inside runs per degree of freedom between runs, if there are several runs.
/// Without this bound, 8 of 100 comparisons of two rounds find a difference merely because runs vary;
/// with it, 3 do (simulated, with bursts of 20 requests, 2 to 18 per window).
const ALIKE: f64 = 3.0;

/// Source of the dispersion estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The positions of failures inside each run.
    InsideRuns,
    /// The variation between the runs of an arm.
    BetweenRuns,
}

/// The failed share of an arm, compared with the baseline's failed share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorTest {
    /// The arm's share minus the baseline's.
    pub difference: f64,
    /// Lower end of the difference's 95 % interval.
    pub low: f64,
    /// Upper end of the difference's 95 % interval.
    pub high: f64,
    /// Two-sided p-value; 1 if no request failed or all requests failed.
    pub p: f64,
    /// The variance of the counts divided by the variance for independent failures.
    pub dispersion: f64,
    /// Source of the dispersion.
    pub basis: Basis,
}

/// Returns the test, or `None` if an arm has no requests.
pub fn test(baseline: &[FailureCount], arm: &[FailureCount]) -> Option<ErrorTest> {
    let sides = [baseline, arm].map(Side::of);
    if sides.iter().any(|side| side.requests == 0.0) {
        return None;
    }
    let difference = sides[1].share() - sides[0].share();
    let requests = sides[0].requests + sides[1].requests;
    let common = (sides[0].failed + sides[1].failed) / requests;
    let unit = common * (1.0 - common);
    let (dispersion, df, basis) = dispersion([baseline, arm], unit);
    let error = (dispersion * unit * (1.0 / sides[0].requests + 1.0 / sides[1].requests)).sqrt();
    let p = if unit > 0.0 { student::two_sided(difference / error, df) } else { 1.0 };
    // A dispersion estimated from few batches or runs may be too small.
    let few = (student::critical(power::LEVEL, 1e6) / student::critical(power::LEVEL, df)).powi(2);
    let [[from_low, from_high], [to_low, to_high]] = sides.map(|side| side.limits(few / dispersion));
    let (from, to) = (sides[0].share(), sides[1].share());
    let low = difference - (to - to_low).hypot(from_high - from);
    let high = difference + (to_high - to).hypot(from - from_low);
    Some(ErrorTest { difference, low, high, p, dispersion, basis })
}

/// Returns the larger of the two estimates of the dispersion, with its degrees of freedom; `unit` is the
/// variance for one request.
fn dispersion(sides: [&[FailureCount]; 2], unit: f64) -> (f64, f64, Basis) {
    let weight = |run: &FailureCount| run.failed as f64 * (1.0 - run.share());
    let seen = || sides.into_iter().flatten().filter_map(|run| Some((weight(run), run.dispersion?)));
    let all: f64 = seen().map(|(weight, _)| weight).sum();
    let inside = match all > 0.0 {
        true => seen().map(|(weight, dispersion)| weight * dispersion).sum::<f64>() / all,
        false => 1.0,
    };
    let batches = (seen().count().max(1) * (BATCHES - 1)) as f64;
    let df: f64 = sides.iter().map(|runs| runs.len() as f64 - 1.0).sum();
    let spread = |runs: &[FailureCount]| {
        let share = Side::of(runs).share();
        runs.iter().map(|run| run.requests as f64 * (run.share() - share).powi(2)).sum::<f64>()
    };
    let between = sides.into_iter().map(spread).sum::<f64>() / unit / df;
    if df > 0.0 && between > inside {
        return (between, df, Basis::BetweenRuns);
    }
    // Two or three runs may look alike by chance, so this does not show that there is no variation
    // between runs.
    let known = if df > 0.0 { batches.min(ALIKE * df) } else { batches };
    (inside, known, Basis::InsideRuns)
}

/// The totals over all runs of an arm.
#[derive(Debug, Clone, Copy)]
struct Side {
    requests: f64,
    failed: f64,
}

impl Side {
    fn of(runs: &[FailureCount]) -> Side {
        let sum = |of: fn(&FailureCount) -> u64| runs.iter().map(of).sum::<u64>() as f64;
        Side { requests: sum(|run| run.requests), failed: sum(|run| run.failed) }
    }

    fn share(self) -> f64 {
        self.failed / self.requests
    }

    /// Returns the 95 % limits of the share if each request carries the information of `worth`
    /// independent requests.
    fn limits(self, worth: f64) -> [f64; 2] {
        binomial::share_interval(self.requests * worth, self.share())
    }
}
