//! Runs that were measured elsewhere, which are being copied into this folder.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::commit::take_place;
use super::disk::{self, Sync};
use super::error::{Doing, StoreError};
use super::inventory;
use super::layout::{Layout, short};
use super::record::RunRecord;

/// Prefix of the folder in `attempts/` of a run that is being fetched. Attempts never have such names, so
/// the folder cannot be confused with one.
const FETCHED: &str = ".fetched-";

/// Creates an empty folder for the files of the run `id` (short) that are being fetched. Removes
/// leftovers of an earlier fetch.
pub(super) fn fetched(layout: &Layout, id: &str) -> Result<PathBuf, StoreError> {
    let dir = layout.attempts().join(format!("{FETCHED}{id}.{}", std::process::id()));
    if disk::is_taken(&dir) {
        fs::remove_dir_all(&dir).map_err(StoreError::on(Doing::Remove, &dir))?;
    }
    disk::create_dir(&dir)?;
    Ok(dir)
}

/// Removes the unfinished fetches of processes that no longer exist. The caller holds the lock.
pub(super) fn clear_up(layout: &Layout) -> Result<(), StoreError> {
    let is_left = |name: &&String| {
        let process = name.strip_prefix(FETCHED).and_then(|name| name.split_once('.')).map(|(_, process)| process);
        process.is_some_and(|process| !is_alive(process))
    };
    for name in disk::names(&layout.attempts())?.iter().filter(is_left) {
        let dir = layout.attempts().join(name);
        fs::remove_dir_all(&dir).map_err(StoreError::on(Doing::Remove, &dir))?;
    }
    Ok(())
}

/// Whether a process with this ID exists, including those of other users.
fn is_alive(process: &str) -> bool {
    let pid = process.parse().ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

/// Makes the checked files in `dir` the committed run of their `run.json`. An unusable run in its place
/// is moved to `superseded/`.
pub(super) fn adopt(layout: &Layout, dir: &Path, record: &RunRecord) -> Result<(), StoreError> {
    take_place(layout, dir, short(&record.id))?;
    inventory::write(layout, record, Sync::Now)
}

/// Does the same for files that can be fetched again, without waiting for the disk. If another
/// process was faster, its folder stays.
pub(super) fn adopt_copy(layout: &Layout, dir: &Path, record: &RunRecord) -> Result<(), StoreError> {
    let run = layout.run(&record.id);
    match fs::rename(dir, &run) {
        Ok(()) => inventory::write(layout, record, Sync::Later),
        Err(_) if disk::is_taken(&run) => fs::remove_dir_all(dir).map_err(StoreError::on(Doing::Remove, dir)),
        Err(error) => Err(StoreError::io(Doing::Move, dir, error)),
    }
}
