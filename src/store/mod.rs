//! The results folder: committed runs, attempts in progress, and how a kill at any instant loses nothing.
//!
//! Readers trust only `runs/<id>/run.json` and need no lock. A run is written in `attempts/`,
//! checked, given its `run.json`, which contains its own digest (`seal`), and renamed into `runs/`
//! (`commit`); the next writer repairs what a crash leaves between two steps (`recover`). The
//! `inventory` lists all commits.

mod attempt;
mod calibration;
mod commit;
mod deleted;
mod disk;
mod error;
mod failpoint;
mod find;
mod folder;
mod given_up;
mod held;
mod hex;
mod inventory;
mod layout;
mod list;
mod lock;
mod parallel;
mod past;
mod record;
mod recover;
mod seal;
mod signal;
#[cfg(test)]
mod tests;
mod tries;
mod verify;

pub use attempt::*;
pub use calibration::*;
pub use commit::*;
pub use deleted::Deleted;
pub use error::*;
pub use failpoint::*;
pub use given_up::GivenUpRun;
pub use inventory::{Entered, Entry};
pub use layout::*;
pub use list::*;
pub use lock::*;
pub use past::PastTry;
pub use record::*;
pub use recover::*;
pub use signal::*;
pub use tries::*;
pub use verify::*;

use std::path::PathBuf;

/// A results folder for reading: no lock, nothing is written.
#[derive(Debug, Clone)]
pub struct Store {
    layout: Layout,
}

impl Store {
    /// Opens the results folder at `dir`; if it does not exist, it has no runs.
    pub fn open(dir: impl Into<PathBuf>) -> Store {
        Store { layout: Layout::new(dir) }
    }

    /// Returns the layout of the folder.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}
