//! Runs that were measured elsewhere, on their way into this folder.

use std::fs;
use std::path::{Path, PathBuf};

use super::commit::take_place;
use super::disk::{self, Sync};
use super::error::{Doing, StoreError};
use super::inventory;
use super::layout::{Layout, short};
use super::record::RunRecord;

/// What the folder of a run that is being fetched is called, in `attempts/`. No attempt has such a name, so nobody takes it for one.
const FETCHED: &str = ".fetched-";

/// An empty folder for the files of the run `id` (short) that are being fetched. What an earlier one left there is removed.
pub(super) fn fetched(layout: &Layout, id: &str) -> Result<PathBuf, StoreError> {
    let dir = layout.attempts().join(format!("{FETCHED}{id}.{}", std::process::id()));
    if disk::is_taken(&dir) {
        fs::remove_dir_all(&dir).map_err(StoreError::on(Doing::Remove, &dir))?;
    }
    disk::create_dir(&dir)?;
    Ok(dir)
}

/// Removes what processes that are no more were fetching. The caller holds the lock.
pub(super) fn clear_up(layout: &Layout) -> Result<(), StoreError> {
    let is_left = |name: &&String| {
        let process = name.strip_prefix(FETCHED).and_then(|name| name.split_once('.')).map(|(_, process)| process);
        process.is_some_and(|process| !Path::new("/proc").join(process).exists())
    };
    for name in disk::names(&layout.attempts())?.iter().filter(is_left) {
        let dir = layout.attempts().join(name);
        fs::remove_dir_all(&dir).map_err(StoreError::on(Doing::Remove, &dir))?;
    }
    Ok(())
}

/// Makes the checked files in `dir` the committed run of their `run.json`. What cannot be used in its place goes to `superseded/`.
pub(super) fn adopt(layout: &Layout, dir: &Path, record: &RunRecord) -> Result<(), StoreError> {
    take_place(layout, dir, short(&record.id))?;
    inventory::write(layout, record, Sync::Now)
}

/// The same of what can be fetched again: nobody waits for the disk. Where another process was faster, its folder stays.
pub(super) fn adopt_copy(layout: &Layout, dir: &Path, record: &RunRecord) -> Result<(), StoreError> {
    let run = layout.run(&record.id);
    match fs::rename(dir, &run) {
        Ok(()) => inventory::write(layout, record, Sync::Later),
        Err(_) if disk::is_taken(&run) => fs::remove_dir_all(dir).map_err(StoreError::on(Doing::Remove, dir)),
        Err(error) => Err(StoreError::io(Doing::Move, dir, error)),
    }
}
