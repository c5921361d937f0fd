//! The end of a search: the long runs that confirm the result and show it, and the caveats.

use super::bracket::{Bracket, met, votes};
use super::fit::Fit;
use super::grid::Grid;
use super::outcome::{Caveat, End, Outcome};
use super::question::{Next, Probe, Question};
use super::short::Short;
use super::showing;
use crate::analysis::slo::Answer;

/// Maximum number of long runs in a search.
pub(super) const CONFIRMATIONS: usize = 5;
/// A drift or two modes are mentioned if they explain the runs more than `LIKELY` times better than noise
/// does, and they become the reason why the search ended if they explain the runs more than `SHOWN` times
/// better.
const LIKELY: f64 = 3.0;
const SHOWN: f64 = 20.0;
/// A run is fast if its pressure is at most `FAST`. A slow run is far from a fast run if the pressure of
/// the fast run is lower by more than the share `FAR` of the slow run's pressure.
const FAST: f64 = 1.1;
const FAR: f64 = 0.375;
/// Maximum width of the 90 % interval of the result, in steps of the resolution.
const COARSE: f64 = 2.5;
/// The factor by which a load that holds must exceed a load that misses in order to contradict it.
const APART: f64 = 1.05;

/// Returns the next step once the runs have settled on the highest load that holds, or on no load.
pub(super) fn next(question: &Question, grid: &Grid, probes: &[Probe], bracket: &Bracket, at: Option<f64>) -> Next {
    let end = |found, end| Next::Ended(outcome(question, grid, found, bracket, end, probes));
    let Some(at) = at else {
        return end(None, End::BelowRange);
    };
    let own = probes.iter().filter(|probe| probe.own && probe.confirms);
    let long: Vec<Probe> = own.filter(|probe| met(probe).is_some()).copied().collect();
    let loads = || long.iter().map(|probe| probe.load);
    let failed = loads().filter(|load| votes(&long, *load) < 0).reduce(f64::min);
    // A load above one whose long runs failed is too high, even if its own long run met the objective.
    let is_below = |load: &f64| failed.is_none_or(|failed| *load < failed);
    let held = loads().filter(|load| votes(&long, *load) >= 0).filter(is_below).reduce(f64::max);
    if let (false, None) | (_, Some(_)) = (question.confirm, held) {
        let found = held.unwrap_or(at);
        if question.confirm && !is_measured_again(probes) {
            // One long run is left for a lower load, if one of these runs fails.
            return match showing::load(grid, probes, found, CONFIRMATIONS - 1) {
                Some(load) => Next::show(probes, load, found),
                None => Next::probe(probes, found),
            };
        }
        return end(Some(found), if found >= grid.last() { End::AboveRange } else { End::Found });
    }
    let candidate = match failed {
        Some(failed) if failed <= at => grid.below(failed),
        _ => Some(at),
    };
    match candidate {
        Some(candidate) if long.len() < CONFIRMATIONS => Next::confirm(probes, candidate),
        _ => end(None, End::Unconfirmed),
    }
}

/// Returns whether an ordinary run followed the long runs. A different result at the same load shows that
/// runs vary. This run ends the search, so a search that ended before long runs had to show their load
/// requests no more runs.
fn is_measured_again(probes: &[Probe]) -> bool {
    let last = probes.iter().rposition(|probe| probe.own && probe.confirms);
    last.is_none_or(|last| probes[last + 1..].iter().any(|probe| met(probe).is_some()))
}

/// Returns the outcome of a search that reached its maximum number of runs.
pub(super) fn out_of_probes(question: &Question, grid: &Grid, probes: &[Probe], bracket: &Bracket) -> Outcome {
    let mut outcome = outcome(question, grid, None, bracket, End::OutOfProbes, probes);
    outcome.caveats.extend(bracket.low.map(|load| Caveat::Unconfirmed { load }));
    outcome
}

/// Returns the outcome of a search that reached a load at which no run can decide.
pub(super) fn too_few_requests(
    question: &Question,
    grid: &Grid,
    probes: &[Probe],
    bracket: &Bracket,
    (load, short): (f64, Short),
) -> Outcome {
    let mut outcome = outcome(question, grid, None, bracket, End::TooFewRequests, probes);
    outcome.caveats.insert(0, Caveat::TooFewRequests { load, short });
    outcome.caveats.extend(bracket.low.map(|load| Caveat::Unconfirmed { load }));
    outcome
}

fn outcome(
    question: &Question,
    grid: &Grid,
    found: Option<f64>,
    bracket: &Bracket,
    end: End,
    probes: &[Probe],
) -> Outcome {
    let missed = probes.iter().filter(|probe| met(probe) == Some(false)).map(|probe| probe.load);
    let misses = missed.filter(|load| found.is_none_or(|found| *load > found)).reduce(f64::min);
    let mut caveats = about_confirmation(question, found, probes);
    let mut end = end;
    if let Some(found) = found
        && let Some(caveat) = higher(found, probes)
    {
        end = End::NotMonotone;
        caveats.push(caveat);
    }
    if let (Some(_), Some(fit)) = (bracket.high, Fit::of(grid, probes)) {
        let moved = fit.movement(probes, question.within);
        let (drift, modes) = (moved.drift, moved.modes);
        if drift.1 > LIKELY && drift.1 >= modes.1 {
            caveats.push(Caveat::Drift { share: drift.0.exp_m1() });
            end = if drift.1 > SHOWN && end == End::Found { End::Drifting } else { end };
        } else if let Some(share) = contradicted(found, probes) {
            caveats.push(Caveat::Unsteady { share });
            end = if end == End::Found { End::Unsteady } else { end };
        } else if modes.1 > LIKELY {
            caveats.push(Caveat::Unsteady { share: -(-modes.0).exp_m1() });
            end = if modes.1 > SHOWN && end == End::Found { End::Unsteady } else { end };
        }
        let [low, high] = [0.05, 0.95].map(|share| fit.quantile(share));
        if found.is_some() && (high / low).ln() > COARSE * (1.0 + question.within).ln() && !question.whole {
            caveats.push(Caveat::Coarse { low: grid.at_or_below(low), high: grid.at_or_below(high) });
        }
    }
    let invalid = probes.iter().filter(|probe| probe.answer.is_none()).count() as u32;
    if invalid > 0 {
        caveats.push(Caveat::Invalid { runs: invalid });
    }
    Outcome { found, misses, end, caveats }
}

/// Returns a load above the found one that is shown to miss, and a higher load that is shown to hold.
fn higher(found: f64, probes: &[Probe]) -> Option<Caveat> {
    let above = |answer| probes.iter().filter(move |probe| probe.load > found && probe.answer == Some(answer));
    let misses = above(Answer::Misses).map(|probe| probe.load).reduce(f64::min)?;
    let holds = above(Answer::Holds).map(|probe| probe.load).reduce(f64::max)?;
    (holds > APART * misses).then_some(Caveat::NotMonotone { misses, holds })
}

/// Returns the largest contradiction between a run that misses and a fast run at the same or a higher load:
/// the difference of their pressures, as a share of the slower run's pressure. Above the found load, a run
/// that misses counts only if it is far slower than the fast run. `None` if no runs contradict each other.
fn contradicted(found: Option<f64>, probes: &[Probe]) -> Option<f64> {
    let of = |probe: &Probe| probe.pressure.filter(|pressure| *pressure > 0.0);
    let fast = |slow: &Probe| {
        let as_high = probes.iter().filter(|probe| probe.load >= slow.load && met(probe).is_some());
        as_high.filter_map(of).filter(|pressure| *pressure <= FAST).reduce(f64::min)
    };
    let slow = probes.iter().filter(|probe| probe.answer == Some(Answer::Misses));
    let shares = slow.filter_map(|slow| {
        let share = 1.0 - fast(slow)? / of(slow)?;
        let is_below = found.is_some_and(|found| slow.load <= found);
        (share > FAR || (is_below && share > 0.0)).then_some(share)
    });
    shares.reduce(f64::max)
}

fn about_confirmation(question: &Question, found: Option<f64>, probes: &[Probe]) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    let long = || probes.iter().filter(|probe| probe.own && probe.confirms);
    if let Some(load) = found {
        // If no long run is requested, only the ordinary ones count.
        let judges = |probe: &Probe| probe.load == load && probe.confirms == question.confirm;
        let is_shown = probes.iter().any(|probe| probe.own && judges(probe) && probe.answer == Some(Answer::Holds));
        let is_told = !question.confirm || long().any(|probe| probe.load == load);
        if is_told && !is_shown {
            caveats.push(Caveat::NotShown { load });
        }
    }
    let is_higher = |probe: &&Probe| found.is_some_and(|found| probe.load > found);
    let failed = || long().filter(is_higher).filter(|probe| met(probe) == Some(false)).map(|probe| probe.load);
    if let Some(lowest) = failed().reduce(f64::min) {
        caveats.push(Caveat::FailedConfirmations { runs: failed().count() as u32, lowest });
    }
    caveats
}
