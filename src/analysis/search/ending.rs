//! The end of a search: the long run that confirms, and what is said of the answer.

use super::Answer;
use super::bracket::{Bracket, met};
use super::{Caveat, End, Grid, Next, Outcome, Probe, Question, confirm};

/// Long runs that a search may take.
pub(super) const CONFIRMATIONS: usize = 5;

/// The next step once the runs have settled on the highest load that holds, or on none.
pub(super) fn next(question: &Question, grid: &Grid, probes: &[Probe], bracket: &Bracket, at: Option<f64>) -> Next {
    let Some(at) = at else {
        return Next::Ended(outcome(None, bracket, End::BelowRange, probes));
    };
    let long = || probes.iter().filter(|probe| probe.confirms);
    let failed = long().filter(|probe| met(probe) == Some(false)).map(|probe| probe.load).reduce(f64::min);
    let candidate = match failed {
        Some(failed) if failed <= at => match grid.below(failed) {
            Some(below) => below,
            None => return Next::Ended(outcome(None, bracket, End::Unconfirmed, probes)),
        },
        _ => at,
    };
    let held = long().any(|probe| probe.load == candidate && met(probe) == Some(true));
    if question.confirm && !held {
        return match long().count() < CONFIRMATIONS {
            true => confirm(probes, candidate),
            false => Next::Ended(outcome(None, bracket, End::Unconfirmed, probes)),
        };
    }
    let end = if bracket.high.is_none() { End::AboveRange } else { End::Found };
    Next::Ended(outcome(Some(candidate), bracket, end, probes))
}

/// The end of a search that reached its bound.
pub(super) fn out_of_probes(probes: &[Probe], bracket: &Bracket) -> Outcome {
    let mut outcome = outcome(None, bracket, End::OutOfProbes, probes);
    outcome.caveats.extend(bracket.low.map(|load| Caveat::Unconfirmed { load }));
    outcome
}

fn outcome(found: Option<f64>, bracket: &Bracket, end: End, probes: &[Probe]) -> Outcome {
    let missed = probes.iter().filter(|probe| probe.answer == Some(Answer::Misses)).map(|probe| probe.load);
    let misses = missed.filter(|load| found.is_none_or(|found| *load > found)).reduce(f64::min).or(bracket.high);
    let mut caveats = Vec::new();
    let long = || probes.iter().filter(|probe| probe.confirms);
    if let Some(load) = found {
        let shown = |probe: &Probe| probe.load == load && probe.answer == Some(Answer::Holds);
        if long().any(|probe| probe.load == load) && !long().any(shown) {
            caveats.push(Caveat::NotShown { load });
        }
    }
    let failed = long().filter(|probe| met(probe) == Some(false)).count() as u32;
    if failed > 0 {
        caveats.push(Caveat::FailedConfirmations { runs: failed });
    }
    let invalid = probes.iter().filter(|probe| probe.answer.is_none()).count() as u32;
    if invalid > 0 {
        caveats.push(Caveat::Invalid { runs: invalid });
    }
    Outcome { found, misses, end, caveats }
}
