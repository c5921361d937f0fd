//! The record of a run whose attempts were all spoiled by the environment. It contains the reason, but no
//! rows.

use std::fmt;

use super::Spoiled;

/// A run that was retried as often as its endpoint allows and was spoiled each time, although the server
/// responded well between the attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenUp {
    /// The cause that spoiled the last attempt.
    pub spoiled: Spoiled,
    /// Number of retries, which is the maximum that the plan allowed.
    pub retries: u32,
}

impl GivenUp {
    /// Returns the reason in short form: `429 (3 of 3)`.
    pub fn reason(&self) -> String {
        self.spoiled.cause.given_up(self.retries)
    }

    /// Whether the run remains given up if the plan now allows `retries` retries. If the plan allows more
    /// retries than before, the run is tried again. If it allows none, no run is ever given up.
    pub fn stands(&self, retries: u32) -> bool {
        (1..=self.retries).contains(&retries)
    }

    /// Whether giving up the run shows that the server did not sustain the load. Otherwise, nothing is
    /// known about the load, as if it had never been measured.
    pub fn is_a_miss(&self) -> bool {
        self.spoiled.is_of_the_load()
    }
}

impl fmt::Display for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "given up: {}", self.reason())
    }
}
