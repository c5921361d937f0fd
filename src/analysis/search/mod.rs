//! Decides what to measure next to find the highest load that meets an objective. The code is pure: it uses
//! no clock, no I/O and no random numbers, so a resumed sweep makes the same decisions from the same runs.
//!
//! A search has several steps, each derived from the runs so far, in this order: the load doubles from the lower
//! end of the range until a run misses; a curve fitted to the runs estimates where the objective is crossed,
//! and the next run goes there (`fit`); one run well above it shows that no higher load holds again; and a
//! long run confirms the found load. If the long run fails, the search goes down. If it meets the objective
//! without showing it, further long runs show the load or a lower one (`showing`). One more ordinary run shows
//! whether the server is still the same (`ending`). For the alternatives that were tried, and how often each
//! is wrong, see `docs/SEARCH.md`.

mod bracket;
mod cheapest;
mod decide;
mod ending;
mod fit;
mod fitted;
mod grid;
mod method;
mod outcome;
mod purpose;
mod question;
mod short;
mod showing;
mod silent;

pub use cheapest::{Cheapest, CheapestNext, cheapest, most_cheapest};
pub use grid::Grid;
pub use outcome::{Caveat, End, Outcome};
pub use purpose::Purpose;
pub use question::{Next, Ordinary, Probe, Question, Standing};
pub use short::Short;

use bracket::Bracket;
use decide::{most_by, next_by};
use fitted::Fitted;

/// Returns what to do next, given all runs so far in the order in which they were decided.
pub fn next(question: &Question, probes: &[Probe]) -> Next {
    next_by(&Fitted::of(question), question, probes)
}

/// Returns the maximum number of runs of a search, regardless of how the server behaves.
pub fn most_probes(question: &Question) -> usize {
    most_by(&Fitted::of(question), question)
}

/// Returns the state of the search after the runs `probes`.
pub fn standing(question: &Question, probes: &[Probe]) -> Standing {
    let bracket = Bracket::of(&Grid::of(question), probes).below_failed_confirmations(probes);
    let confirming = match next(question, probes) {
        Next::Confirm { load, .. } => Some(load),
        _ => None,
    };
    Standing { low: bracket.low, high: bracket.high, runs: probes.len(), confirming }
}

#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;
