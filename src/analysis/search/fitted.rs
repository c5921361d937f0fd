//! The method that the program uses: doubling, then runs where the fitted curve crosses the objective,
//! until the crossing is known.

use super::bracket::{self, Bracket, met};
use super::fit::Fit;
use super::grid::Grid;
use super::method::{Method, Step};
use super::question::{Probe, Question};
use crate::analysis::slo::Answer;

/// Minimum and maximum number of runs after the doubling.
const LEAST: usize = 3;
const MOST: usize = 8;
/// The crossing is known if its standard deviation is at most this many steps of the resolution.
const GOAL: f64 = 0.45;
/// Probability that the found load is above the crossing if no long run confirms it.
const UNCONFIRMED: f64 = 0.5;
/// Probability that the load of a long run is above the crossing: for the first load that a long run
/// measures, and for later loads. A failed long run sends the search down, but no run sends it up, so the
/// search starts slightly too high.
const FIRST: f64 = 0.65;
const AFTER: f64 = 0.75;
/// A pressure above `PLAIN` counts as a miss regardless of the test. `SHORT` is the factor of a step up
/// beyond the fit's estimate.
const PLAIN: f64 = 1.5;
const SHORT: f64 = 1.25;
/// Minimum number of runs at an end of the range before the result can be reported to lie beyond that end.
const ENDS: usize = 2;
/// The load at which the search checks that no higher load holds again, as a multiple of the found load;
/// and the multiple from which an existing run at a higher load is sufficient.
pub(super) const LOOK: f64 = 1.4;
pub(super) const SEEN: f64 = 1.3;

/// The search by a fitted curve, down to a resolution.
pub(super) struct Fitted {
    pub within: f64,
    /// Whether long runs confirm the result.
    pub confirms: bool,
}

impl Fitted {
    /// Creates the method for a question.
    pub(super) fn of(question: &Question) -> Fitted {
        Fitted { within: question.within, confirms: question.confirm }
    }
}

impl Method for Fitted {
    fn next(&self, grid: &Grid, probes: &[Probe], _: &Bracket) -> Step {
        let (first, last) = (grid.first(), grid.last());
        let said = || probes.iter().filter(|probe| !probe.confirms && met(probe).is_some());
        let highest = said().map(|probe| probe.load).reduce(f64::max);
        let (Some(highest), Some(fit)) = (highest, Fit::of(grid, probes)) else { return Step::Probe(first) };
        let middle = fit.quantile(0.5);
        let at = |load: f64| said().filter(|probe| probe.load == load).count();
        let is_below = fit.quantile(0.9) < first && at(first) >= ENDS;
        let is_above = fit.quantile(0.1) > last && at(last) >= ENDS;
        let confirmed = probes.iter().any(|probe| probe.own && probe.confirms);
        let near = said().filter(|probe| (probe.load / middle).ln().abs() < 0.3).count();
        let nearest = grid.nearest(middle);
        let step = (1.0 + self.within).ln().max((grid.above(nearest).unwrap_or(nearest) / nearest).ln());
        let is_known = near >= LEAST && fit.deviation() <= GOAL * step;
        let is_spent =
            within_range(probes) >= MOST || said().filter(|probe| probe.own).count() >= bracket::most(grid) + MOST;
        let is_short = !is_below && nothing_missed(probes) && highest < last;
        if is_short || !(confirmed || is_below || is_above || is_known || is_spent) {
            return Step::Probe(match upwards(grid, probes, highest) {
                Some(higher) => higher.min(nearest.max(grid.times(highest, SHORT))),
                None => nearest,
            });
        }
        if is_below || fit.quantile(0.9) < first {
            return Step::Settled(None);
        }
        let share = match (self.confirms, confirmed) {
            (false, _) => UNCONFIRMED,
            (true, false) => FIRST,
            (true, true) => AFTER,
        };
        let found = grid.nearest(fit.quantile(share));
        // On a coarse grid, the next higher load may be below the threshold from which an existing run
        // is usually sufficient.
        let above = grid.times(found, LOOK);
        let seen = said().any(|probe| probe.load >= above.min(SEEN * found));
        if !confirmed && LOOK * found <= last && !seen {
            return Step::Probe(above);
        }
        Step::Settled(Some(found))
    }

    fn most(&self, grid: &Grid) -> usize {
        bracket::most(grid) + MOST + 1
    }
}

/// Returns whether no run has missed clearly. A miss with an undecided test may be noise.
pub(super) fn nothing_missed(probes: &[Probe]) -> bool {
    let missed = |probe: &Probe| met(probe) == Some(false) && probe.pressure.is_none_or(|pressure| pressure > PLAIN);
    !probes.iter().any(|probe| missed(probe) || probe.answer == Some(Answer::Misses))
}

/// Returns the next load of the doubling, as long as no run missed.
fn upwards(grid: &Grid, probes: &[Probe], highest: f64) -> Option<f64> {
    (nothing_missed(probes) && highest < grid.last()).then(|| grid.times(highest, 2.0))
}

/// Returns the number of runs that this search requested at loads below or equal to an earlier load.
fn within_range(probes: &[Probe]) -> usize {
    let mut highest = 0.0;
    let said = probes.iter().filter(|probe| !probe.confirms && met(probe).is_some());
    said.filter(|probe| {
        let is_higher = probe.load > highest;
        highest = probe.load.max(highest);
        probe.own && !is_higher
    })
    .count()
}
