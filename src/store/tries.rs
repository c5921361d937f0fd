//! Summarizes the attempts at a run that were not committed: how many of them the environment spoiled, how
//! the last attempt ended, and whether the run is given up.
//!
//! Only the attempts after a run's last commit are read. The spec in an `attempt.json` is skipped, so
//! reading thousands of attempts takes only a moment.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::Timestamp;
use serde::Deserialize;

use super::error::StoreError;
use super::inventory;
use super::layout::{ATTEMPT_JSON, RUN_JSON, is_short_id, split_numbered};
use super::record::{Moment, RunRecord, read};
use super::{Store, disk, parallel};
use crate::rows::Spoiled;

/// The failure that is recorded for an attempt that the user interrupted.
pub const INTERRUPTED: &str = "interrupted";

/// Minimum number of runs per thread when attempts are summarized.
const RUNS_A_THREAD: usize = 64;

/// The attempts at a run since its last commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tries {
    /// Number of spoiled attempts. The count starts at the last attempt that the user requested although
    /// the run had been given up.
    pub spoiled: u32,
    /// The last attempt; `None` if there are no attempts since the last commit.
    pub last: Option<LastTry>,
    /// The last spoiled attempt if the run was given up with it; otherwise `None`.
    pub given_up: Option<GivenUp>,
}

/// The last attempt at a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastTry {
    /// The number of the attempt at the run, from 1.
    pub number: u32,
    /// When the attempt began; `None` if its `attempt.json` cannot be read.
    pub started: Option<Moment>,
    /// When the attempt ended; `None` while it is in progress, or if the time is unknown. If the attempt's
    /// process was killed, this is the time at which the newest file in its folder was last written.
    pub ended: Option<Moment>,
    /// How the attempt ended.
    pub how: How,
    /// The number of retries if the run was given up with this attempt; otherwise `None`.
    pub given_up: Option<u32>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// The attempt has not ended. It is being made by the process with this id, which holds the folder's
    /// lock.
    UnderWay(u32),
    /// The user interrupted the attempt, or its process was killed.
    Interrupted,
    /// The attempt failed for a reason other than the environment; the string gives the reason.
    Failed(String),
    /// The environment spoiled the attempt.
    Spoiled(Spoiled),
}

/// A run that is given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenUp {
    /// The number of the attempt with which the run was given up.
    pub number: u32,
    /// The number of retries.
    pub times: u32,
    /// When the attempt with which the run was given up ended; `None` if this was not recorded.
    pub ended: Option<Moment>,
    /// How the environment spoiled the attempt with which the run was given up.
    pub spoiled: Spoiled,
}

/// An `attempt.json` without the spec of the run.
#[derive(Debug, Deserialize)]
struct Brief {
    started: Moment,
    pid: u32,
    ended: Option<Moment>,
    failure: Option<String>,
    spoiled: Option<Spoiled>,
    given_up: Option<u32>,
    #[serde(default)]
    afresh: bool,
}

/// A process that holds the folder's lock, and the time when it took the lock; `None` if this is unknown,
/// as for a shared lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Holder {
    pid: u32,
    since: Option<Moment>,
}

impl Store {
    /// Returns the uncommitted attempts of all runs, by the run's short id. Runs that have no such attempt
    /// since their last commit are omitted.
    pub fn tries(&self) -> Result<HashMap<String, Tries>, StoreError> {
        self.tries_of(&|_| true)
    }

    /// Returns the uncommitted attempts of the runs whose short ids are `wanted`.
    pub fn tries_of(&self, wanted: &dyn Fn(&str) -> bool) -> Result<HashMap<String, Tries>, StoreError> {
        let mut numbers: HashMap<String, Vec<u32>> = HashMap::new();
        for name in disk::names(&self.layout.attempts())? {
            if let Some((id, number)) = split_numbered(&name).filter(|(id, _)| is_short_id(id) && wanted(id)) {
                numbers.entry(id.to_owned()).or_default().push(number);
            }
        }
        if numbers.is_empty() {
            return Ok(HashMap::new());
        }
        let holders = self.holders();
        let numbers: Vec<(String, Vec<u32>)> = numbers.into_iter().collect();
        let one = |(id, numbers): &(String, Vec<u32>)| Some((id.clone(), self.tries_at(id, numbers, &holders)?));
        Ok(parallel::filter_map(&numbers, RUNS_A_THREAD, &one).into_iter().collect())
    }

    /// Summarizes the attempts `numbers` at the run `id`; `None` if there are none since its last commit.
    fn tries_at(&self, id: &str, numbers: &[u32], holders: &[Holder]) -> Option<Tries> {
        let committed = self.last_committed(id);
        let mut newest_first: Vec<u32> = numbers.iter().copied().filter(|number| *number > committed).collect();
        newest_first.sort_unstable_by(|a, b| b.cmp(a));
        let mut tries = Tries { spoiled: 0, last: None, given_up: None };
        for number in newest_first {
            let dir = self.layout.attempt(id, number);
            let read = brief(&dir);
            // The attempt's folder is about to be moved into `runs/`, or was just moved out of it.
            if matches!(&read, Ok(None)) && disk::is_taken(&dir.join(RUN_JSON)) {
                continue;
            }
            let brief = read.as_ref().ok().and_then(Option::as_ref);
            let spoiled = brief.and_then(|brief| brief.spoiled.as_ref());
            if let (Some(brief), Some(spoiled), 0) = (brief, spoiled, tries.spoiled) {
                let (ended, spoiled) = (brief.ended, spoiled.clone());
                tries.given_up = brief.given_up.map(|times| GivenUp { number, times, ended, spoiled });
            }
            tries.spoiled += u32::from(spoiled.is_some());
            let is_first = brief.is_some_and(|brief| brief.afresh);
            if tries.last.is_none() {
                tries.last = Some(last(number, &dir, read, holders));
            }
            if is_first {
                break;
            }
        }
        tries.last.is_some().then_some(tries)
    }

    /// Returns the number of the last committed attempt at a run, even if the run's folder has been removed
    /// since; 0 if no attempt was committed.
    fn last_committed(&self, id: &str) -> u32 {
        let entry = inventory::folder(&self.layout).and_then(|folder| inventory::entry(folder.as_ref(), id));
        match entry {
            Ok(Some(entry)) => entry.attempt,
            _ => RunRecord::read(&self.layout.run(id)).map_or(0, |record| record.attempt),
        }
    }

    /// Returns the id of the process that currently writes the results folder; `None` if there is none, or
    /// if the system does not list its locks.
    pub fn writing_process(&self) -> Option<u32> {
        self.holders().first().map(|holder| holder.pid)
    }

    /// Returns the processes that hold the folder's lock. The lock is only inspected: taking it to see
    /// whether it is free could cause a sweep that starts at the same moment to fail. The list is empty if
    /// the system does not list its locks; Linux does.
    fn holders(&self) -> Vec<Holder> {
        let Ok(lock) = fs::metadata(self.layout.lock()) else { return Vec::new() };
        let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
        let since = lock.modified().ok().and_then(moment);
        // Writers of parts do not write to the folder's lock file, so the file's time does not show
        // when they took the lock.
        let holder = |(pid, is_whole): (u32, bool)| Holder { pid, since: since.filter(|_| is_whole) };
        holders_in(&locks, lock.ino()).map(holder).collect()
    }
}

/// Returns the outcome of the attempt `number` at the run `id`; `None` if its folder is being moved into or
/// out of `runs/`.
pub(super) fn try_at(store: &Store, id: &str, number: u32) -> Option<LastTry> {
    let dir = store.layout.attempt(id, number);
    let read = brief(&dir);
    let is_moving = matches!(&read, Ok(None)) && disk::is_taken(&dir.join(RUN_JSON));
    (!is_moving).then(|| last(number, &dir, read, &store.holders()))
}

/// Reads an `attempt.json`. Returns `None` if the file does not exist: either the process was killed before
/// writing it, or the attempt is being moved into `runs/`.
fn brief(dir: &Path) -> Result<Option<Brief>, StoreError> {
    match read(&dir.join(ATTEMPT_JSON)) {
        Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// Returns the outcome of an attempt, given the content of its `attempt.json`.
fn last(number: u32, dir: &Path, read: Result<Option<Brief>, StoreError>, holders: &[Holder]) -> LastTry {
    let told = |started, ended, how, given_up| LastTry { number, started, ended, how, given_up };
    let brief = match read {
        Ok(Some(brief)) => brief,
        Ok(None) => return told(None, last_written(dir), How::Interrupted, None),
        Err(error) => return told(None, last_written(dir), How::Failed(error.to_string()), None),
    };
    let Brief { started, pid, ended, failure, spoiled, given_up, afresh: _ } = brief;
    // Process ids are reused. A process with this id that took the lock after the attempt began cannot be
    // the one that began it.
    let is_made = |holder: &Holder| holder.pid == pid && holder.since.is_none_or(|since| since <= started);
    let is_interrupted = failure.as_deref() == Some(INTERRUPTED);
    let how = match (spoiled, failure) {
        (Some(spoiled), _) => How::Spoiled(spoiled),
        (None, Some(_)) if is_interrupted => How::Interrupted,
        (None, Some(reason)) => How::Failed(reason),
        (None, None) if holders.iter().any(is_made) => return told(Some(started), None, How::UnderWay(pid), None),
        (None, None) => How::Interrupted,
    };
    told(Some(started), ended.or_else(|| last_written(dir)), how, given_up)
}

/// Returns when the newest file in a folder was last written; for an empty folder, when the folder itself was
/// last changed. `None` if the time cannot be read.
fn last_written(dir: &Path) -> Option<Moment> {
    let files = fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path());
    let written = |path: &PathBuf| path.symlink_metadata().ok()?.modified().ok();
    let newest = files.filter_map(|path| written(&path)).max();
    newest.or_else(|| written(&dir.to_owned())).and_then(moment)
}

fn moment(time: SystemTime) -> Option<Moment> {
    Timestamp::try_from(time).ok().map(Moment)
}

/// Finds the locks of the file with this inode in the text of `/proc/locks`, with lines like `2: FLOCK
/// ADVISORY  WRITE 4242 fd:01:1310739 0 EOF`. Returns the id of each process that holds a lock, and whether
/// it is an exclusive lock.
fn holders_in(locks: &str, inode: u64) -> impl Iterator<Item = (u32, bool)> {
    locks.lines().filter_map(move |line| {
        let mut words = line.split_whitespace().skip(1);
        let is_held = words.next()? == "FLOCK";
        let is_write = words.nth(1)? == "WRITE";
        let pid = words.next()?.parse().ok()?;
        let file: u64 = words.next()?.rsplit(':').next()?.parse().ok()?;
        (is_held && file == inode).then_some((pid, is_write))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holders_of_a_lock_are_read_from_the_systems_list() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 fd:01:12 0 EOF\n2: FLOCK  ADVISORY  READ 8 fd:01:12 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 4242 fd:01:12 0 EOF\n3: -> FLOCK  ADVISORY  WRITE 9 fd:01:13 0 EOF\n";
        assert_eq!(holders_in(locks, 12).collect::<Vec<_>>(), [(8, false), (4242, true)]);
        assert_eq!(holders_in(locks, 13).count(), 0, "a process that waits for a lock does not hold it");
        assert_eq!(holders_in("", 12).count(), 0);
    }
}
