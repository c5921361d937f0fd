//! How often to retry a run that the environment spoiled.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How often to retry runs that the environment spoiled: a server that went away, limits the rate, or
/// has lost the model. It does not affect measurements: runs keep their results when it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Retries {
    /// Number of retries after the first spoiled attempt, counted over invocations; then the run is
    /// given up. With 0 it is not retried within an invocation, and never given up. Default 3.
    #[schemars(extend("default" = 3), range(max = 100), example = 10)]
    pub runs: u32,
}

impl Retries {
    /// The maximum number that a plan may set.
    pub const MOST: u32 = 100;
}

impl Default for Retries {
    fn default() -> Retries {
        Retries { runs: 3 }
    }
}
