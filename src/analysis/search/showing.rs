//! Long runs that show which load meets the objective, once a long run met it only in what was seen.

use super::bracket::met;
use super::grid::Grid;
use super::question::Probe;
use crate::analysis::slo::Answer;

/// Number of loads of the grid, which are two steps of the resolution, by which the load of the first long run
/// lies below the found load if another long run there would not show it. Each further step down is twice as
/// wide: the limit is close, so a small step may do, but the long runs are few.
const STEP: usize = 2;

/// Returns the load of the long run that comes next, of `most` in all; `None` if the found load is shown, if no
/// long run is left, or if a load that is at least as high as the next one is already shown.
pub(super) fn load(grid: &Grid, probes: &[Probe], found: f64, most: usize) -> Option<f64> {
    let long = || probes.iter().filter(|probe| probe.own && probe.confirms);
    if long().count() >= most {
        return None;
    }
    let last = long().rfind(|probe| met(probe).is_some() && probe.load <= found)?;
    let at = last.load;
    let shown = probes.iter().filter(|probe| probe.load <= found && is_shown(probes, probe.load));
    let shown = shown.map(|probe| probe.load).reduce(f64::max);
    if shown.is_some_and(|shown| shown >= at) {
        return None;
    }
    let next = if one_more_shows(probes, last) { at } else { lower(grid, at, steps_down(probes, found))? };
    shown.is_none_or(|shown| next > shown).then_some(next)
}

/// Returns whether all runs at a load together show that it meets the objective.
fn is_shown(probes: &[Probe], load: f64) -> bool {
    latest(probes, load).is_some_and(|probe| probe.together == Some(Answer::Holds))
}

/// Returns the last run at a load that provides evidence.
fn latest(probes: &[Probe], load: f64) -> Option<&Probe> {
    probes.iter().rfind(|probe| probe.load == load && probe.answer.is_some())
}

/// Returns whether one more run like this long run would show that its load meets the objective.
fn one_more_shows(probes: &[Probe], long: &Probe) -> bool {
    let there = probes.iter().filter(|probe| probe.load == long.load && probe.answer.is_some());
    let requests = there.map(|probe| probe.requests).sum::<u64>() as f64;
    let needed = latest(probes, long.load).and_then(|latest| latest.grows);
    needed.is_some_and(|times| times * requests <= requests + long.requests as f64)
}

/// Returns how many times long runs have gone below the found load.
fn steps_down(probes: &[Probe], found: f64) -> u32 {
    let mut below: Vec<f64> = probes
        .iter()
        .filter(|probe| probe.own && probe.confirms && met(probe) == Some(true) && probe.load < found)
        .map(|probe| probe.load)
        .collect();
    below.sort_unstable_by(f64::total_cmp);
    below.dedup();
    below.len() as u32
}

/// Returns the load below another one by the next step; `None` if it is the lowest.
fn lower(grid: &Grid, load: f64, steps: u32) -> Option<f64> {
    let mut next = grid.below(load)?;
    for _ in 1..STEP << steps {
        next = grid.below(next).unwrap_or(next);
    }
    Some(next)
}
