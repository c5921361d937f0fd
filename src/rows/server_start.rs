//! How the server of a run was started, where sweepline started it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The start of a launched server on which a run was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerStart {
    /// When its command was started, in UTC.
    pub at: String,
    /// From there until its ready path answered with 2xx, or without one until it listed its models, in nanoseconds.
    pub ready_ns: u64,
    /// From there until it had answered a first generation of four tokens, in nanoseconds.
    pub first_answer_ns: u64,
    /// Bytes that its processes had fetched from storage by then: many where the page cache was cold, few where it held the weights. None
    /// where the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_read_bytes: Option<u64>,
    /// Where its output is, in the results folder.
    pub log: String,
}
