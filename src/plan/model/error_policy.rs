//! How a run treats a server that is unavailable or rejects load.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether an outage ends a run or is part of the measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ErrorPolicy {
    /// An outage ends the attempt, and none of it is committed; sporadic errors are measurements.
    #[default]
    Environment,
    /// Every error is a measurement, including 429, 503 and a server that is gone.
    Measured,
}
