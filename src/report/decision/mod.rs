//! The record of a decision, in Markdown. It contains the question and the contract, the accepted and the
//! other configurations with the numbers of `curves`, `capacity` and `compare`, and what remains unknown.
//! Each part is a separate block, so that people can write between the blocks.
//!
//! This module does not read files or compute statistics. `cli/decide` writes the parts into the file.

mod contract;
mod decided;
mod evidence;
mod history;
mod markdown;
mod not_known;
mod numbers;
mod outcome;
mod standing;
mod stopped;
mod verdict;

pub(crate) use decided::{Chosen, Decided};
pub(crate) use evidence::{Evidence, MeasuredRun};
pub(crate) use markdown::inert;
pub(crate) use numbers::{Kin, kin};
pub(crate) use standing::{Outcome, Standing};

/// The parts of a record, in the order that they have in a new record.
pub(crate) const PARTS: [&str; 7] =
    ["decision", "contract", "configurations", "outcome", "not-known", "stopped", "history"];

/// Renders each part, in the order of [`PARTS`]. `decisions` contains all decisions, the current one last.
pub(crate) fn parts(evidence: &Evidence, accepted: usize, decisions: &[Decided]) -> Option<[String; 7]> {
    let (stands, earlier) = decisions.split_last()?;
    let standings: Vec<Standing> = evidence.standings(accepted, stands.configuration.load);
    Some([
        verdict::text(evidence, &standings[accepted], stands),
        contract::text(evidence),
        numbers::text(evidence, accepted, &standings),
        outcome::text(evidence),
        not_known::text(evidence, accepted, &standings),
        stopped::text(evidence, accepted),
        history::text(earlier),
    ])
}
