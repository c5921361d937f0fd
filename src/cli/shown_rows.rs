//! Facts about the runs in a printed table, for the notes below the table.

use serde::{Deserialize, Serialize};

use crate::sweep::calibrate::Loaded;

/// Facts about the runs in a table of results.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Shown {
    /// The id of the first run; `None` if the table is empty.
    pub first: Option<String>,
    /// The id of the first invalid run or, if there is none, of the first suspect run; `None` if every run is
    /// valid.
    pub doubtful: Option<String>,
    /// The ids of invalid runs.
    pub invalid: Vec<String>,
    /// The load that each run put on the generator, if its rows record it.
    pub loaded: Vec<Loaded>,
}
