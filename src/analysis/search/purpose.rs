//! The purpose of each run of a search, derived from earlier runs. No decisions are made here.

use super::bracket::met;
use super::fitted::{LOOK, SEEN, nothing_missed};
use super::question::Probe;

/// The purpose of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Purpose {
    /// A heavier load than any before, because no earlier load missed.
    Up,
    /// A load near the estimated result.
    ClosingIn,
    /// A load well above the found one.
    WellAbove,
    /// A long run that confirms the result, or shows it.
    Confirm,
    /// An ordinary run after the long runs.
    Again,
    /// A replacement, because the previous run provides no evidence.
    Instead,
    /// A load between a load that meets the cost limit and one that does not.
    Bracketing,
}

impl Purpose {
    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the purpose of a run at this load, given the runs `before` it.
    pub fn of(before: &[Probe], load: f64, confirms: bool) -> Purpose {
        let said = || before.iter().filter(|probe| met(probe).is_some());
        let is_replaced = |last: &Probe| met(last).is_none() && last.load == load && last.confirms == confirms;
        let highest = said().map(|probe| probe.load).fold(0.0, f64::max);
        // A run well above the found load measures LOOK times that load, and every load measured before is
        // below SEEN times that load.
        let is_far = load >= highest * (LOOK / SEEN);
        match before.last() {
            Some(last) if is_replaced(last) => Purpose::Instead,
            _ if confirms => Purpose::Confirm,
            _ if said().any(|probe| probe.confirms) => Purpose::Again,
            _ if load > highest && nothing_missed(before) => Purpose::Up,
            _ if is_far => Purpose::WellAbove,
            _ => Purpose::ClosingIn,
        }
    }

    /// Returns the purpose in a few words.
    pub fn words(self) -> &'static str {
        match self {
            Purpose::Up => "going up",
            Purpose::ClosingIn => "closing in",
            Purpose::WellAbove => "looking above",
            Purpose::Confirm => "confirming",
            Purpose::Again => "once more",
            Purpose::Instead => "repeating",
            Purpose::Bracketing => "bracketing the cost",
        }
    }

    /// Returns why a run with this purpose is requested.
    pub fn why(self) -> &'static str {
        match self {
            Purpose::Up => "a heavier load, because no run before had missed the objective",
            Purpose::ClosingIn => "the load at which a curve fitted to all runs so far crosses the limit",
            Purpose::WellAbove => {
                "a load well above the limit, to see whether the server meets the objective again there"
            }
            Purpose::Confirm => "a run with a longer window, to show that its load meets the objective",
            Purpose::Again => "an ordinary run at the end, to check that the server has not changed",
            Purpose::Bracketing => "the lowest load within the cost limit is bracketed, and the bracket narrowed",
            Purpose::Instead => {
                "the previous run does not count: it is invalid, or has too few requests for the percentile"
            }
        }
    }
}
