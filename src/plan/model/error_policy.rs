//! How a run treats a server that is unavailable or rejects load.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether an outage ends a run or is part of the measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ErrorPolicy {
    /// An outage ends the attempt, and none of it is committed; sporadic errors count as measurements.
    #[default]
    Environment,
    /// Every error counts as a measurement, including responses with 429 or 503 and a server that is gone.
    Measured,
}
