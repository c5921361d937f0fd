//! What a run keeps besides its numbers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a run keeps besides its numbers, where the plan or a sweep says so. It decides no number: a run keeps its result
/// when this changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordPatch {
    /// Keep what was sent and answered, word by word, in a file of its own, texts.parquet. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    #[schemars(example = true)]
    pub text: Option<bool>,
}
