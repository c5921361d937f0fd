//! Comparisons whose rounds may stop early, and the look at which a comparison is judged.
//!
//! Each p-value holds over the whole sequence of its test, wherever the sequence stops. Holm's method
//! applied to these p-values therefore bounds the chance of any false finding among all tests of the
//! declaration, no matter when each cell stops.

use schemars::JsonSchema;
use serde::Serialize;

use super::CellAnswer;
use crate::analysis::sequential::looks;

/// The look of a group-sequential comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SequenceLook {
    /// Number of rounds so far, after which the comparison is judged.
    pub round: u32,
    /// Maximum number of rounds: the repeats of the plan.
    pub at_most: u32,
}

impl SequenceLook {
    /// Describes the look: `group-sequential, look 5 of 12`.
    pub fn words(&self) -> String {
        format!("group-sequential, look {} of {}", self.round, self.at_most)
    }

    /// Returns the level that the plain test after this many rounds must use so that the whole sequence
    /// is tested at `level`.
    pub(super) fn nominal(&self, rounds: usize, level: f64) -> f64 {
        looks(self.at_most).nominal(rounds, level)
    }

    /// Converts a plain p-value after this many rounds to a p-value over the whole sequence.
    pub(super) fn p(&self, rounds: usize, p: f64) -> f64 {
        looks(self.at_most).p(rounds, p)
    }
}

impl CellAnswer {
    /// Returns the look at which the tests of the family are judged, the latest one if they differ;
    /// `None` if the number of rounds was fixed in advance.
    pub fn look(&self) -> Option<SequenceLook> {
        self.tests.iter().filter_map(|test| test.sequence).max_by_key(|look| look.round)
    }
}
