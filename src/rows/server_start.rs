//! The start of a run's server, if sweepline launched it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The record of the start of a launched server on which a run was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerStart {
    /// Time at which the server's command was started, in UTC.
    pub at: String,
    /// Time from the start until the readiness path returned a 2xx status, in nanoseconds. Without a
    /// readiness path, this is the time until the server listed its models.
    pub ready_ns: u64,
    /// Time from the start until the server had returned its first response, with four tokens, in
    /// nanoseconds.
    pub first_answer_ns: u64,
    /// Bytes that the server's processes had read from storage when the first response was complete: many
    /// if the page cache was cold, few if it held the weights. Null if the system does not report this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_read_bytes: Option<u64>,
    /// The path of the server's output in the results folder.
    pub log: String,
    /// Names of the environment variables that the server inherited from sweepline and that configure inference
    /// engines: `CUDA_*`, `HF_*`, `NCCL_*`, `SGLANG_*`, `VLLM_*`. Their values are not recorded. Absent if there were
    /// none, and in runs of versions that did not record them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inherited_variables: Vec<String>,
}
