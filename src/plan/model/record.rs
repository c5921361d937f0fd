//! The data that a run records in addition to its numbers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The data that a run records in addition to its numbers, as set by the plan or a sweep. It does not affect
/// measurements: runs keep their results when it changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordPatch {
    /// Record the texts of all requests and responses verbatim, in a separate file, texts.parquet.
    /// Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    #[schemars(example = true)]
    pub text: Option<bool>,
}
