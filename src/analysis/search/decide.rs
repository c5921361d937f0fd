//! The next step of a search, decided by the method or, at the end, by the confirmation.

use super::bracket::Bracket;
use super::ending;
use super::grid::Grid;
use super::method::{Method, Step};
use super::question::{Next, Probe, Question};
use super::silent;

/// Maximum number of invalid runs that are replaced.
const INVALID: usize = 4;

/// Returns what to do next according to a method.
pub(super) fn next_by(method: &impl Method, question: &Question, probes: &[Probe]) -> Next {
    let grid = Grid::of(question);
    let bracket = Bracket::of(&grid, probes);
    if probes.iter().filter(|probe| probe.own).count() >= most_by(method, question) {
        return Next::Ended(ending::out_of_probes(question, &grid, probes, &bracket));
    }
    if let Some((load, short)) = silent::load(probes) {
        return Next::Ended(ending::too_few_requests(question, &grid, probes, &bracket, (load, short)));
    }
    match method.next(&grid, probes, &bracket) {
        Step::Probe(load) => Next::probe(probes, load),
        Step::Settled(at) => ending::next(question, &grid, probes, &bracket, at),
    }
}

/// Returns the maximum number of runs of a search with this method.
pub(super) fn most_by(method: &impl Method, question: &Question) -> usize {
    let confirmations = if question.confirm { ending::CONFIRMATIONS + 1 } else { 0 };
    method.most(&Grid::of(question)) + INVALID + confirmations
}
