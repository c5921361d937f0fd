//! The contents of a printed table of runs, for the notes below it.

use serde::{Deserialize, Serialize};

use crate::sweep::calibrate::Loaded;

/// The contents of a table of results.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Shown {
    /// The id of the first run.
    pub first: Option<String>,
    /// The id of the first invalid run, or if there is none, of the first suspect run.
    pub doubtful: Option<String>,
    /// The ids of invalid runs.
    pub invalid: Vec<String>,
    /// The load that each run put on the generator, if its rows record it.
    pub loaded: Vec<Loaded>,
}
