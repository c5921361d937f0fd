//! Comparisons whose rounds may stop early: at which look one is judged.
//!
//! Each p-value holds over the whole sequence of its test, wherever that stops, so Holm's method over such p-values holds the chance of
//! any false finding among all tests of the declaration, whichever cells stop when.

use schemars::JsonSchema;
use serde::Serialize;

use super::CellAnswer;
use crate::analysis::sequential::looks;

/// The look of a group-sequential comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SequenceLook {
    /// Rounds so far, after which it is judged.
    pub round: u32,
    /// Most rounds: the repeats of the plan.
    pub at_most: u32,
}

impl SequenceLook {
    /// `group-sequential, look 5 of 12`.
    pub fn words(&self) -> String {
        format!("group-sequential, look {} of {}", self.round, self.at_most)
    }

    /// The plain level that is tested at after so many rounds for the whole sequence to be tested at `level`.
    pub(super) fn nominal(&self, rounds: usize, level: f64) -> f64 {
        looks(self.at_most).nominal(rounds, level)
    }

    /// The p-value over the whole sequence of a plain one of so many rounds.
    pub(super) fn p(&self, rounds: usize, p: f64) -> f64 {
        looks(self.at_most).p(rounds, p)
    }
}

impl CellAnswer {
    /// The look at which its tests are judged, the latest of them; none where the number of rounds was fixed beforehand.
    pub fn look(&self) -> Option<SequenceLook> {
        self.tests.iter().filter_map(|test| test.sequence).max_by_key(|look| look.round)
    }
}
