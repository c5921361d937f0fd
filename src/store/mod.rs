//! The results folder: what is committed, what is under way, and how a kill at any instant loses nothing.
//!
//! Readers believe `runs/<id>/run.json` only and need no lock. A run is written in `attempts/`, checked, given its
//! `run.json`, which carries a digest of itself (`seal`), and renamed into `runs/` (`commit`); what a crash leaves between two
//! steps the next writer puts right (`recover`). The `inventory` remembers what was committed.

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

/// A results folder as readers see it: no lock, nothing is written.
#[derive(Debug, Clone)]
pub struct Store {
    layout: Layout,
}

impl Store {
    /// The results folder at `dir`, which need not exist: then it has no runs.
    pub fn open(dir: impl Into<PathBuf>) -> Store {
        Store { layout: Layout::new(dir) }
    }

    /// Where things lie.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}
