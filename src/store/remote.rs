//! The interface of a results folder to the shared results that it is a copy of.
//!
//! The folder has its usual form. A run that was measured elsewhere has its `run.json` here, with the
//! mark [`SHARED`] next to it; its row files are fetched when they are read. A run without the mark
//! was committed here and has not been shared yet.

use std::collections::BTreeSet;
use std::fmt::Debug;

use super::disk;
use super::error::StoreError;
use super::layout::{Layout, is_short_id};
use super::record::RunRecord;

/// An empty file in the folder of a run. It marks that this `run.json` is also committed in the shared
/// results.
pub(crate) const SHARED: &str = ".shared";

/// The state of a run in shared results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The run is not committed, and no other worker is measuring it.
    Open,
    /// Another worker is measuring the run or holds its server.
    Taken,
    /// The run is committed, and its `run.json` is now in the folder.
    Committed,
}

/// Shared results. All methods may be called from several threads, outside of any asynchronous runtime.
pub trait Remote: Debug + Send + Sync {
    /// Returns the address of the shared results, as the user wrote it.
    fn url(&self) -> &str;

    /// Copies the `run.json` of committed runs into the folder: either of the `wanted` runs (short
    /// ids), or of all runs.
    fn refresh(&self, layout: &Layout, wanted: Option<&BTreeSet<String>>) -> Result<(), StoreError>;

    /// Copies a row file of a committed run into its folder, checked against its digest.
    fn fetch(&self, layout: &Layout, record: &RunRecord, name: &str) -> Result<(), StoreError>;

    /// Checks before the first write whether the store is reliable. Also sends runs that an earlier
    /// process committed in the folder but could not send.
    fn begin(&self, layout: &Layout) -> Result<(), StoreError>;

    /// Commits a run of the folder to the shared results. If another result of the same run came first,
    /// that result replaces the run in the folder.
    fn commit(&self, layout: &Layout, id: &str) -> Result<(), StoreError>;

    /// Takes a run (short id) for this process if it is open, after taking the server that the run needs
    /// if workers share it. A run stays taken until it is committed. `release`, or the end of the process,
    /// gives back both the run and the server. If another worker holds the server, the run is `Taken`.
    fn claim(&self, layout: &Layout, id: &str, server: Option<&str>) -> Result<Standing, StoreError>;

    /// Returns the state of a run, without taking it.
    fn look(&self, layout: &Layout, id: &str, server: Option<&str>) -> Result<Standing, StoreError>;

    /// Returns the names of damaged objects other than runs. Nothing depends on them.
    fn damaged(&self) -> Result<Vec<String>, StoreError>;

    /// Gives back every run that this process took but did not commit, and every server.
    fn release(&self);
}

/// Returns the short ids of the runs that are committed in the folder but not shared yet, sorted.
pub(super) fn unsent(layout: &Layout) -> Result<Vec<String>, StoreError> {
    let mut names = disk::names(&layout.runs())?;
    names.retain(|name| is_short_id(name) && !disk::is_taken(&layout.runs().join(name).join(SHARED)));
    Ok(names)
}
