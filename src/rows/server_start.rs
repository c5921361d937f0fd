//! The start of a run's server, if sweepline launched it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The start of a launched server on which a run was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerStart {
    /// When its command was started, in UTC.
    pub at: String,
    /// Time from the start until the readiness path responded with 2xx, in nanoseconds; without such a
    /// path, until the server listed its models.
    pub ready_ns: u64,
    /// Time from the start until the server had returned a first generation of four tokens, in
    /// nanoseconds.
    pub first_answer_ns: u64,
    /// Bytes that the server's processes had fetched from storage by then: many if the page cache was
    /// cold, few if the cache held the weights. Null if the system does not report this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_read_bytes: Option<u64>,
    /// The path of the server's output in the results folder.
    pub log: String,
}
