//! One finding of a verdict.

use schemars::JsonSchema;
use serde::Serialize;

use super::state::State;

/// A finding that counts against a run, or labels it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Reason {
    /// The name of the reason in docs/METRICS.md, such as client_late.
    pub name: &'static str,
    /// The effect of the reason on the run: valid, suspect or invalid.
    pub state: State,
    /// A sentence with the figures.
    pub text: String,
}
