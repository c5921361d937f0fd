//! The results folder, which contains committed runs and attempts. A kill at any instant loses no committed
//! run.
//!
//! Readers trust only `runs/<id>/run.json` and need no lock. A run is written in `attempts/` and checked.
//! Then its `run.json` is written, which contains its own digest (`seal`), and the folder is moved into
//! `runs/` (`commit`). If a crash interrupts these steps, the next writer repairs the run (`recover`). The
//! `inventory` lists all commits.

mod adopt;
mod attempt;
mod brief;
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
mod index;
mod inventory;
mod layout;
mod list;
mod lock;
pub mod object;
mod overview;
#[cfg(test)]
mod overview_tests;
mod parallel;
mod past;
mod record;
mod recover;
mod remote;
mod seal;
mod signal;
mod stamp;
#[cfg(test)]
mod tests;
mod tries;
mod verify;

pub use adopt::is_alive;
pub use attempt::*;
pub use brief::{Brief, Common, Said, ShortId};
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
pub use overview::Overview;
pub use past::PastTry;
pub use record::*;
pub use recover::*;
pub use remote::{Remote, Standing};
pub use signal::*;
pub use tries::*;
pub use verify::*;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A results folder that is opened without a lock. Runs that are measured here are committed only through
/// a `Writer`.
#[derive(Debug, Clone)]
pub struct Store {
    layout: Layout,
    /// The shared results that the folder is a copy of; `None` for an ordinary folder.
    remote: Option<Arc<dyn Remote>>,
}

impl Store {
    /// Opens the results folder at `dir`. A folder that does not exist has no runs.
    pub fn open(dir: impl Into<PathBuf>) -> Store {
        Store { layout: Layout::new(dir), remote: None }
    }

    /// Opens shared results, with the folder at `dir` as their local copy. Does not send a request yet.
    pub fn shared(dir: impl Into<PathBuf>, remote: Arc<dyn Remote>) -> Store {
        Store { layout: Layout::new(dir), remote: Some(remote) }
    }

    /// Returns the shared results that the folder is a copy of; `None` for an ordinary folder.
    pub fn remote(&self) -> Option<&dyn Remote> {
        self.remote.as_deref()
    }

    /// Returns the location of the results: the address of shared results as the user wrote it, or the
    /// folder.
    pub fn place(&self) -> &Path {
        self.remote().map_or_else(|| self.layout.root(), |remote| Path::new(remote.url()))
    }

    /// Fetches the records of the runs that other workers have committed since the last fetch. Does nothing
    /// for an ordinary folder.
    pub fn refresh(&self) -> Result<(), StoreError> {
        self.remote().map_or(Ok(()), |remote| remote.refresh(&self.layout, None))
    }

    /// Like `refresh`, but only for the `wanted` runs (short ids). `wanted` is called only if results are
    /// shared. Runs that exist locally are not requested, because a commit never changes.
    pub fn refresh_these(&self, wanted: impl FnOnce() -> BTreeSet<String>) -> Result<(), StoreError> {
        self.remote().map_or(Ok(()), |remote| remote.refresh(&self.layout, Some(&wanted())))
    }

    /// Returns the short ids of the runs in this copy that other workers no longer find in the shared results, because
    /// their commits were removed there, sorted: those of the `wanted` runs (short ids), or of all runs. Empty for an
    /// ordinary folder.
    pub fn vanished(&self, wanted: Option<&BTreeSet<String>>) -> Result<Vec<String>, StoreError> {
        self.remote().map_or(Ok(Vec::new()), |remote| remote.vanished(&self.layout, wanted))
    }

    /// Whether the folder has runs that are missing from the shared results. Always false for an ordinary
    /// folder.
    pub fn has_unsent(&self) -> Result<bool, StoreError> {
        let unsent = self.remote().map(|_| remote::unsent(&self.layout)).transpose()?;
        Ok(unsent.is_some_and(|runs| !runs.is_empty()))
    }

    /// Returns the layout of the folder.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}
