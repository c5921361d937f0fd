//! `profile:` of a scenario: where the file lies, and what was found in it.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::model::file_ref::FileRef;
use crate::plan::model::profiled::Profiled;
use crate::units::Decimal;

/// An anonymous profile of traffic, as `sweepline dataset profile` writes it; its path alone says `{ file: PATH }`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileFile {
    /// The file, relative to the plan's.
    #[schemars(example = "data/profile.json")]
    pub file: FileRef<Arc<Profiled>>,
    /// How many times as fast as it was recorded: times are divided by it, and the recorded rate grows with it. Default 1.
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
    /// What the file says; none where it could not be read, which is a mistake of the plan.
    pub fn found(&self) -> Option<&Profiled> {
        self.file.found().map(Arc::as_ref)
    }
}
