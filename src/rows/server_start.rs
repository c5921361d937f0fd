//! How the server of a run was started, where sweepline started it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The start of a launched server on which a run was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerStart {
    /// When its command was started, in UTC.
    pub at: String,
    /// From there until it had answered a first generation, in nanoseconds.
    pub ready_ns: u64,
    /// Where its output is, in the results folder.
    pub log: String,
}
