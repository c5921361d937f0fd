//! The start of a run's server, if sweepline launched it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The start of a launched server on which a run was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerStart {
    /// Start of its command, in UTC.
    pub at: String,
    /// Time from there until its ready path responded with 2xx, or without one until it listed its models,
    /// in nanoseconds.
    pub ready_ns: u64,
    /// Time from there until it had returned a first generation of four tokens, in nanoseconds.
    pub first_answer_ns: u64,
    /// Bytes that its processes had fetched from storage by then: many if the page cache was cold, few if
    /// it held the weights. Null if the system does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_read_bytes: Option<u64>,
    /// The path of its output, in the results folder.
    pub log: String,
}
