//! What becomes of a run whose server is away or turns the load away.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether an outage ends a run, or is what the run measures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ErrorPolicy {
    /// An outage ends the attempt, and nothing of it is committed; sporadic errors are measurements.
    #[default]
    Environment,
    /// Every error is a measurement: 429, 503 and a server that is gone, too.
    Measured,
}
