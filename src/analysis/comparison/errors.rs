//! Do two arms fail equally often? A test of counts of failures that knows that failures come in bursts.
//!
//! Quasi-binomial: the counts of both arms have the variance of binomial ones times a dispersion, the same for both where they do not
//! differ. It is the larger of two estimates. *Inside runs* by how failures lie in each ([`FailureCount`]), weighted by how many there
//! are. *Between runs* of an arm by Pearson's χ² over its degrees of freedom, which sees also what makes one run unlike the next: a
//! server that failed in one repeat of five. The difference over its deviation is held against Student's t, with the degrees of freedom
//! of the estimate that was the larger one: batches (where there are several runs, at most three for each degree between these), or
//! runs. From one round there is only the first, so what runs differ by is not known then, and the answer is about these runs.
//!
//! The interval is that of Newcombe (Interval estimation for the difference between independent proportions, 1998, method 10) from the
//! limits of each arm by Korn and Graubard (1998), so that 0 of n has an upper end.

use schemars::JsonSchema;
use serde::Serialize;

use crate::analysis::binomial;
use crate::analysis::dispersion::{BATCHES, FailureCount};
use crate::analysis::paired::power;
use crate::analysis::student;

/// Degrees of freedom that the inside of runs is given at most for each one between runs, where there are several: without a bound runs that
/// differ are told apart in 8 of 100 comparisons of two rounds, with this one in 3 (simulated, with bursts of 20 requests, 2 to 18 a window).
const ALIKE: f64 = 3.0;

/// What the dispersion of failures was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// How failures lie inside each run.
    InsideRuns,
    /// By how much the runs of an arm differ.
    BetweenRuns,
}

/// The arm's share of failed requests against the baseline's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorTest {
    /// The arm's share − the baseline's.
    pub difference: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end of its 95 % interval.
    pub high: f64,
    /// Two-sided p-value; 1 where no request failed, or all did.
    pub p: f64,
    /// How many times the variance of independent failures the counts have.
    pub dispersion: f64,
    /// What that was read from.
    pub basis: Basis,
}

/// The test; none where an arm has no requests.
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
    // A dispersion from few batches or runs may be too small.
    let few = (student::critical(power::LEVEL, 1e6) / student::critical(power::LEVEL, df)).powi(2);
    let [[from_low, from_high], [to_low, to_high]] = sides.map(|side| side.limits(few / dispersion));
    let (from, to) = (sides[0].share(), sides[1].share());
    let low = difference - (to - to_low).hypot(from_high - from);
    let high = difference + (to_high - to).hypot(from - from_low);
    Some(ErrorTest { difference, low, high, p, dispersion, basis })
}

/// The larger of both estimates of the dispersion, with its degrees of freedom; `unit` is the variance of one request.
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
    // Two or three runs may look alike by chance: they do not show that the inside of runs tells all.
    let known = if df > 0.0 { batches.min(ALIKE * df) } else { batches };
    (inside, known, Basis::InsideRuns)
}

/// All runs of an arm together.
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

    /// The 95 % limits of the share, where one request is worth `worth` independent ones.
    fn limits(self, worth: f64) -> [f64; 2] {
        binomial::share_interval(self.requests * worth, self.share())
    }
}
