//! `profile:` of a scenario: the location of the file, and its content.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::model::file_ref::FileRef;
use crate::plan::model::profiled::Profiled;
use crate::units::Decimal;

/// An anonymous profile of traffic, as written by `sweepline dataset profile`; a plain path is short for
/// `{ file: PATH }`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileFile {
    /// The file, relative to the plan's.
    #[schemars(example = "data/profile.json")]
    pub file: FileRef<Arc<Profiled>>,
    /// Replay speed relative to the recording: times are divided by it, and the recorded rate is
    /// multiplied by it. Default 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(extend("default" = 1), range(min = 0.000001), example = 24)]
    pub speed: Decimal,
}

fn one() -> Decimal {
    Decimal::from(1)
}

fn is_one(speed: &Decimal) -> bool {
    *speed == one()
}

impl ProfileFile {
    /// The content of the file; `None` if it could not be read, which is an error in the plan.
    pub fn found(&self) -> Option<&Profiled> {
        self.file.found().map(Arc::as_ref)
    }
}
