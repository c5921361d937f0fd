//! The results folder: what is committed, what is under way, and how a kill at any instant loses nothing.
//!
//! Readers believe `runs/<id>/run.json` only and need no lock. A run is written in `attempts/`, checked, given its
//! `run.json`, which carries a digest of itself (`seal`), and renamed into `runs/` (`commit`); what a crash leaves between two
//! steps the next writer puts right (`recover`). The `inventory` remembers what was committed.

mod adopt;
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
mod hex;
mod inventory;
mod layout;
mod list;
mod lock;
pub mod object;
mod parallel;
mod past;
mod record;
mod recover;
mod remote;
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
pub use remote::{Remote, Standing};
pub use signal::*;
pub use tries::*;
pub use verify::*;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A results folder as readers see it: no lock, nothing is written.
#[derive(Debug, Clone)]
pub struct Store {
    layout: Layout,
    /// The shared results that the folder is a copy of; none where it is all there is.
    remote: Option<Arc<dyn Remote>>,
}

impl Store {
    /// The results folder at `dir`, which need not exist: then it has no runs.
    pub fn open(dir: impl Into<PathBuf>) -> Store {
        Store { layout: Layout::new(dir), remote: None }
    }

    /// Shared results, of which the folder at `dir` keeps a copy. Nothing is asked of them yet.
    pub fn shared(dir: impl Into<PathBuf>, remote: Arc<dyn Remote>) -> Store {
        Store { layout: Layout::new(dir), remote: Some(remote) }
    }

    /// The shared results that the folder is a copy of; none where it is all there is.
    pub fn remote(&self) -> Option<&dyn Remote> {
        self.remote.as_deref()
    }

    /// Where the results are, as the user wrote it: the address of shared results, or the folder.
    pub fn place(&self) -> &Path {
        self.remote().map_or_else(|| self.layout.root(), |remote| Path::new(remote.url()))
    }

    /// Learns which runs were committed elsewhere since. Nothing to do for a folder that is no copy.
    pub fn refresh(&self) -> Result<(), StoreError> {
        self.remote().map_or(Ok(()), |remote| remote.refresh(&self.layout, None))
    }

    /// The same of these runs alone (short ids), which are listed only where that matters. Of runs that are here nothing is asked: a commit
    /// never changes.
    pub fn refresh_these(&self, wanted: impl FnOnce() -> BTreeSet<String>) -> Result<(), StoreError> {
        self.remote().map_or(Ok(()), |remote| remote.refresh(&self.layout, Some(&wanted())))
    }

    /// Whether there are runs that shared results do not have yet.
    pub fn has_unsent(&self) -> Result<bool, StoreError> {
        let unsent = self.remote().map(|_| remote::unsent(&self.layout)).transpose()?;
        Ok(unsent.is_some_and(|runs| !runs.is_empty()))
    }

    /// Where things lie.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}
