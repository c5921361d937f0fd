//! What is left of a run that the environment spoiled each time: no rows, but a reason.

use std::fmt;

use super::Spoiled;

/// A run that was tried again as often as its endpoint allows, and was spoiled each time although the server answered well between
/// the attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenUp {
    /// What spoiled its last attempt.
    pub spoiled: Spoiled,
    /// How often it was tried again: as often as it may be.
    pub retries: u32,
}

impl GivenUp {
    /// The reason in a few words: `429 (3 of 3)`.
    pub fn reason(&self) -> String {
        format!("{} ({1} of {1})", self.spoiled.cause, self.retries)
    }

    /// Whether the server did not meet the load. Else nothing is known of the load, as if it had not been measured.
    pub fn is_a_miss(&self) -> bool {
        self.spoiled.cause.is_of_the_load()
    }
}

impl fmt::Display for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "given up: {}", self.reason())
    }
}
