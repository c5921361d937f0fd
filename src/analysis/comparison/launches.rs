//! The launches of the servers on which the rounds of a cell were measured.
//!
//! A server that is started again is not quite the same server: memory is laid out differently, kernels are chosen anew,
//! another node may have another clock. The variation between the rounds of one launch does not contain this, so a
//! difference shown over them is one between these launches, and not yet one between the arms. Only if every round has
//! launches of its own does the variation between rounds contain that between launches.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

/// How many launches the rounds of a cell have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Launches {
    /// Number of launches of the baseline's server. All runs whose launch is unknown count as one.
    pub baseline: u32,
    /// Number of launches of the arm's server. All runs whose launch is unknown count as one.
    pub arm: u32,
    /// Whether every round has a launch of its own on both sides. If not, the differences are those of these launches.
    pub of_rounds: bool,
}

impl Launches {
    /// Counts the launches of rounds, each with the launches of the baseline and of the arm; `None` for an unknown one.
    pub fn of(rounds: &[[Option<&str>; 2]]) -> Launches {
        let side = |side: usize| rounds.iter().map(move |round| round[side]);
        let distinct = |at: usize| side(at).collect::<BTreeSet<_>>().len();
        let is_own = |at: usize| side(at).all(|launch| launch.is_some()) && distinct(at) == rounds.len();
        Launches {
            baseline: distinct(0) as u32,
            arm: distinct(1) as u32,
            of_rounds: !rounds.is_empty() && is_own(0) && is_own(1),
        }
    }

    /// Whether what the rounds show is shown of these launches only.
    pub fn limit_the_claim(&self) -> bool {
        self.baseline > 0 && !self.of_rounds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rounds: &[[Option<&str>; 2]]) -> (u32, u32, bool) {
        let launches = Launches::of(rounds);
        (launches.baseline, launches.arm, launches.limit_the_claim())
    }

    #[test]
    fn rounds_speak_of_more_than_their_launches_only_if_each_has_its_own() {
        assert_eq!(of(&[[Some("a"), Some("x")], [Some("b"), Some("y")], [Some("c"), Some("z")]]), (3, 3, false));
        assert_eq!(of(&[[Some("a"), Some("x")], [Some("a"), Some("x")], [Some("a"), Some("x")]]), (1, 1, true));
        // One side alone was started again.
        assert_eq!(of(&[[Some("a"), Some("x")], [Some("a"), Some("y")]]), (1, 2, true));
        assert_eq!(of(&[[Some("a"), Some("x")], [Some("b"), Some("y")], [Some("b"), Some("y")]]), (2, 2, true));
        // Unknown launches are the commonest case, and count as one.
        assert_eq!(of(&[[None, None], [None, None]]), (1, 1, true));
        assert_eq!(of(&[[None, Some("x")], [Some("a"), Some("y")]]), (2, 2, true));
        assert_eq!(of(&[]), (0, 0, false));
    }
}
