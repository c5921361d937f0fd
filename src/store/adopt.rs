//! Commits runs that were measured elsewhere and copied into this results folder.

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

/// Prefix of the name of the folder in `attempts/` into which a run is fetched. The folders of attempts
/// never have this prefix.
const FETCHED: &str = ".fetched-";

/// Creates an empty folder into which the files of the run `id` (short) are fetched. Files of an earlier
/// fetch are removed first.
pub(super) fn fetched(layout: &Layout, id: &str) -> Result<PathBuf, StoreError> {
    let dir = layout.attempts().join(format!("{FETCHED}{id}.{}", std::process::id()));
    if disk::is_taken(&dir) {
        fs::remove_dir_all(&dir).map_err(StoreError::on(Doing::Remove, &dir))?;
    }
    disk::create_dir(&dir)?;
    Ok(dir)
}

/// Removes the folders of unfinished fetches whose processes no longer exist. The caller holds the lock.
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

/// Whether a process with this id exists; it may belong to another user.
pub fn is_alive(process: &str) -> bool {
    let pid = process.parse().ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

/// Commits the run in `dir`, whose files have been checked. An unusable run with the same id is moved to
/// `superseded/`.
pub(super) fn adopt(layout: &Layout, dir: &Path, record: &RunRecord) -> Result<(), StoreError> {
    take_place(layout, dir, short(&record.id))?;
    inventory::write(layout, record, Sync::Now)
}

/// Commits the run in `dir` without waiting for the disk, because its files can be fetched again. If
/// another process has already committed the run, `dir` is removed.
pub(super) fn adopt_copy(layout: &Layout, dir: &Path, record: &RunRecord) -> Result<(), StoreError> {
    let run = layout.run(&record.id);
    match disk::again(|| fs::rename(dir, &run)) {
        Ok(()) => inventory::write(layout, record, Sync::Later),
        Err(_) if disk::is_taken(&run) => fs::remove_dir_all(dir).map_err(StoreError::on(Doing::Remove, dir)),
        Err(error) => Err(StoreError::io(Doing::Move, dir, error)),
    }
}
