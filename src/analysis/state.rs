//! How far a run can be trusted, and the limits that it must pass.

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::{Defaults, Limits};
use crate::units::Share;

/// How far a run can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, strum::IntoStaticStr, Hash)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum State {
    /// There is no reason to doubt the run.
    Valid,
    /// The run is shown and used, together with its reason.
    Suspect,
    /// The run is shown, but excluded from curves, comparisons and SLO answers.
    Invalid,
}

impl State {
    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Returns the state of a value that is above the plan's limits or, without those, above the limits
/// of `docs/METRICS.md` (`defaults`).
pub(super) fn exceeded(limits: Limits, defaults: Defaults, above: impl Fn(f64) -> bool) -> Option<State> {
    let Limits { suspect, invalid } = limits.or(defaults);
    let is_above = |limit: Option<Share>| limit.map(Share::to_f64).is_some_and(&above);
    if is_above(invalid) { Some(State::Invalid) } else { is_above(suspect).then_some(State::Suspect) }
}
