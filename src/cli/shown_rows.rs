//! What a table of runs has shown, for what is said below it.

use serde::{Deserialize, Serialize};

use crate::sweep::calibrate::Loaded;

/// What a table of results holds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Shown {
    /// The id of the first run.
    pub first: Option<String>,
    /// The id of the first run that is invalid, or suspect where none is.
    pub doubtful: Option<String>,
    /// The ids of those that are invalid.
    pub invalid: Vec<String>,
    /// How hard each was for the generator, where its rows say it.
    pub loaded: Vec<Loaded>,
}
