//! How often a run is tried again that the environment spoiled.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How often runs are tried again that the environment spoiled: a server that went away, limits the rate, or has lost the
/// model. It decides no number: a run keeps its result when this changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Retries {
    /// How often a run is tried again after its first spoiled attempt, counted over invocations; then it is given up. With 0
    /// it is not tried again within an invocation, and never given up. Default 3.
    #[schemars(extend("default" = 3), range(max = 100), example = 10)]
    pub runs: u32,
}

impl Retries {
    /// The most that a plan may ask for.
    pub const MOST: u32 = 100;
}

impl Default for Retries {
    fn default() -> Retries {
        Retries { runs: 3 }
    }
}
