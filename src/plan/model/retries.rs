//! How often to retry a run that the environment spoiled.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How often to retry runs that the environment spoiled: the server went away, limited the rate, or lost the
/// model. This does not affect measurements, so runs keep their results when it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Retries {
    /// Number of retries after the first spoiled attempt, counted over invocations; then the run is
    /// given up. With 0, runs are not retried within an invocation and never given up. Default 3.
    #[schemars(extend("default" = 3), range(max = 100), example = 10)]
    pub runs: u32,
}

impl Retries {
    /// The maximum number of retries that a plan may set.
    pub const MOST: u32 = 100;
}

impl Default for Retries {
    fn default() -> Retries {
        Retries { runs: 3 }
    }
}
