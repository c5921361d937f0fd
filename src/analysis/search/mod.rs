//! What to measure next, to find the highest load that meets an objective. Pure: no clock, no I/O, no random numbers, so that a
//! resumed sweep decides the same from the same runs.
//!
//! Four steps, each read off the runs so far, in this order: the load doubles from the lower end of the range until a run misses; a curve fitted to the runs says where the objective is crossed, and the next run goes there (`fit`); one run
//! well above shows that the server does not hold again higher up; a long run confirms the load that was found, its failure sends
//! the search down, and one more ordinary run shows whether the server is still the same (`ending`). What was tried against it, and how often each is wrong: `docs/SEARCH.md`.

mod bracket;
mod ending;
mod fit;
mod fitted;
mod grid;
mod outcome;

pub use super::slo::Answer;
pub use grid::Grid;
pub use outcome::{Caveat, End, Outcome};

use bracket::{Bracket, Step};

/// What is looked for: the highest load in `[from, to]` that meets the objective, to a relative resolution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// The lowest load that is of interest.
    pub from: f64,
    /// The highest load that is of interest.
    pub to: f64,
    /// The resolution, as a share of the load: 0.05 for 5 %.
    pub within: f64,
    /// Whether loads are whole numbers: batch sizes, sessions.
    pub whole: bool,
    /// Whether a long run confirms what was found.
    pub confirm: bool,
}

/// One finished run. Several at one load are repeats of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probe {
    /// Its load.
    pub load: f64,
    /// Whether it is the long run that confirms.
    pub confirms: bool,
    /// What this run alone says of the objective, and of whether the server kept up; none of an invalid run, which says nothing.
    pub answer: Option<Answer>,
    /// The observed percentile over its limit, the largest over the limits; infinite where it lies among failures.
    pub pressure: Option<f64>,
    /// Requests of its window.
    pub requests: u64,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// An ordinary run.
    Probe {
        /// Its load.
        load: f64,
        /// Which run of this load it is, from 0.
        repeat: u32,
    },
    /// The long run that confirms.
    Confirm {
        /// Its load.
        load: f64,
        /// Which long run of this load it is, from 0.
        repeat: u32,
    },
    /// Nothing: the search is over.
    Ended(Outcome),
}

/// Where a search stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// The highest load seen to hold below every load that missed; none where none held.
    pub low: Option<f64>,
    /// The lowest load seen to miss above it; none where none missed.
    pub high: Option<f64>,
    /// Runs so far, invalid ones among them.
    pub runs: usize,
    /// The load that a long run is to confirm, once there is one.
    pub confirming: Option<f64>,
}

impl Question {
    /// Why this question has no answer: in words, with the remedy; none where it can be asked.
    pub fn fault(&self) -> Option<String> {
        let Question { from, to, within, .. } = *self;
        if !(from > 0.0 && to.is_finite() && from < to) {
            Some(format!("the range {from} to {to} is empty: `from` must be above 0 and below `to`"))
        } else if !(0.005..=0.5).contains(&within) {
            Some(format!("a resolution of {} % is out of range: choose one from 0.5 % to 50 %", 100.0 * within))
        } else if Grid::of(self).loads().len() < 2 {
            Some(format!("no two loads between {from} and {to} differ by the resolution: widen the range"))
        } else {
            None
        }
    }
}

/// How the load is found between two that are known to hold and to miss.
trait Method {
    /// The next run, or the load that was found; `bracket` is of `probes`.
    fn next(&self, grid: &Grid, probes: &[Probe], bracket: &Bracket) -> Step;
    /// The most runs that this takes, from the first.
    fn most(&self, grid: &Grid) -> usize;
}

/// Invalid runs that are made up for.
const INVALID: usize = 4;

/// What to do next, given all runs so far in the order in which they were decided.
pub fn next(question: &Question, probes: &[Probe]) -> Next {
    next_by(&fitted::Fitted { within: question.within }, question, probes)
}

fn next_by(method: &impl Method, question: &Question, probes: &[Probe]) -> Next {
    let grid = Grid::of(question);
    let bracket = Bracket::of(&grid, probes);
    if probes.len() >= most_by(method, question) {
        return Next::Ended(ending::out_of_probes(question, &grid, probes, &bracket));
    }
    match method.next(&grid, probes, &bracket) {
        Step::Probe(load) => probe(probes, load),
        Step::Settled(at) => ending::next(question, &grid, probes, &bracket, at),
    }
}

/// How many runs a search may take, whatever the server does.
pub fn most_probes(question: &Question) -> usize {
    most_by(&fitted::Fitted { within: question.within }, question)
}

fn most_by(method: &impl Method, question: &Question) -> usize {
    let confirmations = if question.confirm { ending::CONFIRMATIONS + 1 } else { 0 };
    method.most(&Grid::of(question)) + INVALID + confirmations
}

/// Where the search stands after these runs.
pub fn standing(question: &Question, probes: &[Probe]) -> Standing {
    let bracket = Bracket::of(&Grid::of(question), probes);
    let confirming = match next(question, probes) {
        Next::Confirm { load, .. } => Some(load),
        _ => None,
    };
    Standing { low: bracket.low, high: bracket.high, runs: probes.len(), confirming }
}

fn probe(probes: &[Probe], load: f64) -> Next {
    Next::Probe { load, repeat: repeats(probes, load, false) }
}

fn confirm(probes: &[Probe], load: f64) -> Next {
    Next::Confirm { load, repeat: repeats(probes, load, true) }
}

fn repeats(probes: &[Probe], load: f64, confirms: bool) -> u32 {
    probes.iter().filter(|probe| probe.load == load && probe.confirms == confirms).count() as u32
}

#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;
