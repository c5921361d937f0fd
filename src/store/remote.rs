//! The interface between a results folder and the shared results of which the folder is a copy.
//!
//! The folder has the usual layout. For a run that was measured elsewhere, it contains the `run.json` and,
//! next to it, the marker file [`SHARED`]; row files are fetched when they are read. A run without this
//! marker was committed here and has not been shared yet.

use std::collections::BTreeSet;
use std::fmt::Debug;

use super::disk;
use super::error::StoreError;
use super::layout::{Layout, is_short_id};
use super::record::RunRecord;

/// The name of the empty file that marks a run whose `run.json` is also committed in the shared results.
pub(crate) const SHARED: &str = ".shared";

/// The state of a run in shared results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The run is not committed, and no other worker is measuring it.
    Open,
    /// Another worker is measuring the run, or has claimed the server that the run needs.
    Taken,
    /// The run is committed, and its `run.json` is now in the folder.
    Committed,
}

/// Shared results. All methods may be called from several threads, outside of any asynchronous runtime.
pub trait Remote: Debug + Send + Sync {
    /// Returns the address of the shared results, as the user wrote it.
    fn url(&self) -> &str;

    /// Copies the `run.json` files of committed runs into the folder: those of the `wanted` runs (short
    /// ids), or those of all runs if `wanted` is `None`.
    fn refresh(&self, layout: &Layout, wanted: Option<&BTreeSet<String>>) -> Result<(), StoreError>;

    /// Returns the short ids of the runs that the folder has as shared, but that are no longer committed in the shared
    /// results, sorted: those of the `wanted` runs (short ids), or of all runs if `wanted` is `None`.
    fn vanished(&self, layout: &Layout, wanted: Option<&BTreeSet<String>>) -> Result<Vec<String>, StoreError>;

    /// Copies a row file of a committed run into the run's folder, after checking the file's digest.
    fn fetch(&self, layout: &Layout, record: &RunRecord, name: &str) -> Result<(), StoreError>;

    /// Checks before the first write that the store supports conditional writes. Also sends the runs that
    /// an earlier process committed in the folder but could not send.
    fn begin(&self, layout: &Layout) -> Result<(), StoreError>;

    /// Commits a run of the folder to the shared results. If another result of the same run has already
    /// been committed there, that result replaces the run in the folder.
    fn commit(&self, layout: &Layout, id: &str) -> Result<(), StoreError>;

    /// Claims a run (short id) for this process if the run is open. If workers share the server `server`,
    /// it is claimed first; if another worker has claimed it, `Taken` is returned. The run remains claimed
    /// until it is committed. `release`, or the end of the process, gives up the claims on the run and the
    /// server.
    fn claim(&self, layout: &Layout, id: &str, server: Option<&str>) -> Result<Standing, StoreError>;

    /// Returns the state of a run, without claiming it.
    fn look(&self, layout: &Layout, id: &str, server: Option<&str>) -> Result<Standing, StoreError>;

    /// Returns the names of damaged objects in the shared results that are not runs. No result depends on
    /// these objects.
    fn damaged(&self) -> Result<Vec<String>, StoreError>;

    /// Gives up the claims of this process on servers, and on runs that it did not commit.
    fn release(&self);
}

/// Returns the short ids of the runs that are committed in the folder but not shared yet, sorted.
pub(super) fn unsent(layout: &Layout) -> Result<Vec<String>, StoreError> {
    marked(layout, false)
}

/// Returns the short ids of the runs in the folder that are also in the shared results, sorted.
pub(super) fn shared(layout: &Layout) -> Result<Vec<String>, StoreError> {
    marked(layout, true)
}

/// Returns the short ids of the runs in the folder with or without the marker file.
fn marked(layout: &Layout, is_marked: bool) -> Result<Vec<String>, StoreError> {
    let mut names = disk::names(&layout.runs())?;
    let has_mark = |name: &str| disk::is_taken(&layout.runs().join(name).join(SHARED));
    names.retain(|name| is_short_id(name) && has_mark(name) == is_marked);
    Ok(names)
}
