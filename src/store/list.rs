//! Lists the contents of a results folder: committed runs, with a quick check of each, attempts, and
//! replaced runs.
//!
//! The quick check covers only `run.json`, the run's entry in the inventory, and the sizes of the files. It
//! must be quick because even a sweep with nothing to do checks every run. All readers rely on this check;
//! `verify` also reads the files.

use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::error::{Doing, StoreError};
use super::folder::Folder;
use super::inventory::{self, Entered};
use super::layout::{RUN_JSON, is_short_id, short, split_numbered};
use super::record::{AttemptRecord, FileRecord, RunRecord};
use super::remote::SHARED;
use super::{Store, disk, parallel};
use crate::rows::Table;

/// Minimum number of runs per thread when runs are listed.
pub(super) const RUNS_A_THREAD: usize = 64;
/// Number of runs that [`Store::stream`] reads at a time, and the minimum number of these runs per thread.
const PART: (usize, usize) = (32, 8);

/// Maximum number of times to look for the missing folder of a run that is being replaced. On a
/// file system that cannot exchange folders, such a folder is absent for an instant.
const LOOKS: u32 = 5;
/// How long to wait before looking again for the missing folder of a run.
const INSTANT: Duration = Duration::from_millis(10);

/// The result of the quick check of a committed run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// The run can be used: `run.json` is undamaged and every file has the recorded size.
    Whole,
    /// The run is damaged; the string gives the reason. The next `sweepline run` that needs it measures it
    /// again.
    Corrupt(String),
    /// This user or this program cannot read the record; the string gives the reason. This is not
    /// considered damage, so the run is left unchanged.
    Unreadable(String),
}

impl State {
    /// Returns the problem; `None` if the run has none.
    pub fn problem(&self) -> Option<&str> {
        match self {
            State::Whole => None,
            State::Corrupt(reason) | State::Unreadable(reason) => Some(reason),
        }
    }
}

/// A committed run: a folder in `runs/`.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// The short id of the run, which is the folder's name.
    pub id: String,
    /// The folder.
    pub dir: PathBuf,
    /// Whether the run can be used.
    pub state: State,
    /// The content of the run's `run.json`; `None` if it cannot be read.
    pub record: Option<RunRecord>,
    /// The relation between the run and its entry in the inventory.
    pub entered: Entered,
}

impl Listed {
    /// Returns the error that states why the run's result cannot be used; `None` if it can be used.
    pub fn unusable(&self) -> Option<StoreError> {
        let reason = self.state.problem()?.to_owned();
        Some(StoreError::Unusable { dir: self.dir.clone(), reason })
    }

    /// Whether the next writer has to write the run's entry in the inventory: the run is undamaged, and its
    /// entry is missing, damaged, or belongs to an earlier attempt.
    pub fn wants_entry(&self) -> bool {
        self.state == State::Whole && matches!(self.entered, Entered::Behind | Entered::Damaged(_))
    }

    /// Whether the run was found without problems, so it need not be checked again. A run with a problem is
    /// checked twice, because files that are read while the run is being replaced may not match.
    fn is_settled(&self) -> bool {
        self.state == State::Whole && self.entered.problem().is_none()
    }
}

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptState {
    /// The attempt is in progress, or its process was killed.
    Unfinished,
    /// The attempt failed; the string gives the reason.
    Failed(String),
}

/// An attempt: a folder in `attempts/`.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedAttempt {
    /// The run's short id.
    pub id: String,
    /// The number of the attempt at the run, from 1.
    pub number: u32,
    /// The folder.
    pub dir: PathBuf,
    /// The outcome of the attempt.
    pub state: AttemptState,
    /// The content of the attempt's `attempt.json`; `None` if it cannot be read.
    pub record: Option<AttemptRecord>,
}

impl Store {
    /// Returns all committed runs with a quick check of each, sorted by id. All records are held in memory;
    /// `overview`, `stream` and `survey` need less memory.
    ///
    /// Fails only if the folder itself cannot be read; problems of a run are part of the run's
    /// state.
    pub fn list(&self) -> Result<Vec<Listed>, StoreError> {
        self.survey(&Some)
    }

    /// Applies `of` to each committed run, and returns the results sorted by the run's id. The records are
    /// not kept in memory.
    pub fn survey<R: Send>(&self, of: &(impl Fn(Listed) -> Option<R> + Sync)) -> Result<Vec<R>, StoreError> {
        let inventory = inventory::folder(&self.layout)?;
        let one = |name: &String| self.look(inventory.as_ref(), name).and_then(of);
        Ok(parallel::filter_map(&self.names()?, RUNS_A_THREAD, &one))
    }

    /// Returns an iterator over all committed runs, sorted by id. It reads a few runs at a time.
    pub fn stream(&self) -> Result<impl Iterator<Item = Listed> + use<'_>, StoreError> {
        let inventory = inventory::folder(&self.layout)?;
        let (names, mut at) = (self.names()?, 0);
        let part = move || {
            let part = names.get(at..names.len().min(at + PART.0)).filter(|part| !part.is_empty())?;
            at += part.len();
            Some(parallel::filter_map(part, PART.1, &|name: &String| self.look(inventory.as_ref(), name)))
        };
        Ok(std::iter::from_fn(part).flatten())
    }

    /// Whether there is any committed run.
    pub fn has_runs(&self) -> Result<bool, StoreError> {
        let inventory = inventory::folder(&self.layout)?;
        Ok(self.names()?.iter().any(|name| self.look(inventory.as_ref(), name).is_some()))
    }

    /// Returns the short ids of all runs that may be committed, sorted. The folder of a run may still be
    /// missing.
    pub(super) fn names(&self) -> Result<Vec<String>, StoreError> {
        // The folder of a run that is being replaced may be absent while the folder `runs/` is listed, so
        // sealed attempts and the inventory are listed too.
        let mut names = self.sealed()?;
        names.retain(|id| is_short_id(id));
        names.extend(inventory::ids(&self.layout)?);
        names.extend(self.run_names()?);
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// Returns the committed run `id` (full or short) with a quick check; `None` if the run has no folder.
    pub fn run(&self, id: &str) -> Result<Option<Listed>, StoreError> {
        let dir = self.layout.run(id);
        let inventory = inventory::folder(&self.layout)?;
        let found = dir.try_exists().map_err(StoreError::on(Doing::Read, &dir))?;
        // The folder of a committed run may be absent for an instant, so its inventory entry is checked
        // too.
        let is_known = found || disk::is_taken(&dir) || disk::is_taken(&self.layout.entry(id));
        Ok(if is_known { self.look(inventory.as_ref(), short(id)) } else { None })
    }

    /// Checks a run. If the check finds a problem, it is repeated once before the problem is reported.
    /// Returns `None` if the run's folder is gone.
    pub(super) fn look(&self, inventory: Option<&Folder>, id: &str) -> Option<Listed> {
        let first = self.is_there(id).then(|| inspect(&self.layout.run(id), id, inventory))?;
        if first.is_settled() {
            return Some(first);
        }
        self.is_there(id).then(|| inspect(&self.layout.run(id), id, inventory))
    }

    /// Whether a run has a folder. If the folder is missing and the run has a sealed attempt, the run is
    /// probably being replaced, so this function waits for the folder for a moment.
    fn is_there(&self, id: &str) -> bool {
        let dir = self.layout.run(id);
        for _ in 0..LOOKS {
            if disk::is_taken(&dir) {
                return true;
            }
            if !self.sealed().is_ok_and(|ids| ids.iter().any(|sealed| sealed == id)) {
                break;
            }
            thread::sleep(INSTANT);
        }
        disk::is_taken(&dir)
    }

    /// Returns the short ids of the runs with a sealed attempt. Such an attempt has a `run.json` and is
    /// about to be moved into `runs/`.
    pub(super) fn sealed(&self) -> Result<Vec<String>, StoreError> {
        let names = disk::names(&self.layout.attempts())?;
        let numbered = names.iter().filter_map(|name| split_numbered(name));
        let is_sealed = |(id, number): &(&str, u32)| disk::is_taken(&self.layout.attempt(id, *number).join(RUN_JSON));
        Ok(numbered.filter(is_sealed).map(|(id, _)| id.to_owned()).collect())
    }

    /// Returns all attempts in `attempts/`, sorted by the run's id.
    pub fn attempts(&self) -> Result<Vec<ListedAttempt>, StoreError> {
        let names = disk::names(&self.layout.attempts())?;
        Ok(names.iter().filter_map(|name| split_numbered(name)).map(|(id, number)| self.attempt(id, number)).collect())
    }

    /// Returns the short id and the attempt number of every replaced run, sorted by id.
    pub fn superseded(&self) -> Result<Vec<(String, u32)>, StoreError> {
        let names = disk::names(&self.layout.superseded())?;
        Ok(names.iter().filter_map(|name| split_numbered(name)).map(|(id, number)| (id.to_owned(), number)).collect())
    }

    /// Returns the names of the run folders in `runs/`, sorted. Other names are skipped.
    pub(super) fn run_names(&self) -> Result<Vec<String>, StoreError> {
        let mut names = disk::names(&self.layout.runs())?;
        names.retain(|name| is_short_id(name));
        Ok(names)
    }

    fn attempt(&self, id: &str, number: u32) -> ListedAttempt {
        let dir = self.layout.attempt(id, number);
        let record = AttemptRecord::read(&dir).ok();
        let failure = record.as_ref().and_then(|record| record.failure.clone());
        let state = failure.map_or(AttemptState::Unfinished, AttemptState::Failed);
        ListedAttempt { id: id.to_owned(), number, dir, state, record }
    }
}

/// Checks the run in `dir`, which should be the run `id` (short), and its entry in the inventory.
///
/// The entry is read first. Because an entry is written after its run, it cannot be newer than a run that
/// is read later. Then everything else is read through one open folder, so that `run.json` and the files
/// belong to one commit.
pub(super) fn inspect(dir: &Path, id: &str, inventory: Option<&Folder>) -> Listed {
    let entry = inventory::entry(inventory, id);
    let opened = Folder::open(dir).and_then(|folder| Ok((RunRecord::read_in(&folder)?, folder)));
    let mut listed =
        Listed { id: id.to_owned(), dir: dir.to_owned(), state: State::Whole, record: None, entered: Entered::Behind };
    let (record, folder) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            listed.state = unread(&error);
            // The problem of the entry is reported even if the record cannot be read.
            listed.entered = match entry {
                Err(StoreError::Damaged { reason, .. }) => Entered::Damaged(reason),
                Err(error) => Entered::Unreadable(error.to_string()),
                Ok(_) => Entered::Behind,
            };
            return listed;
        }
    };
    let compared = inventory::compare(&record, entry);
    let problem = id_problem(&record, id).or_else(|| files_problem(&folder, &record));
    listed.state = match (problem, &compared) {
        (Some(state), _) => state,
        (None, Err(problem)) => State::Corrupt(problem.clone()),
        (None, Ok(_)) => State::Whole,
    };
    listed.entered = compared.unwrap_or(Entered::Behind);
    listed.record = Some(record);
    listed
}

/// Returns the state of a run whose `run.json` could not be read.
fn unread(error: &StoreError) -> State {
    match error {
        StoreError::Damaged { path, reason } if path.ends_with(RUN_JSON) => {
            State::Corrupt(format!("{RUN_JSON} is damaged: {reason}"))
        }
        StoreError::Damaged { reason, .. } => State::Corrupt(format!("the run's folder is damaged: {reason}")),
        StoreError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            State::Corrupt(format!("{RUN_JSON} is missing"))
        }
        error => State::Unreadable(error.to_string()),
    }
}

/// Returns the state of a run if the id in its record is invalid or belongs to another run; `None` if the
/// id is right.
fn id_problem(record: &RunRecord, id: &str) -> Option<State> {
    let is_id = record.id.len() == 64 && record.id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    match is_id {
        _ if short(&record.id) != id => {
            Some(State::Corrupt(format!("{RUN_JSON} belongs to run {}", short(&record.id))))
        }
        true => None,
        false => Some(State::Corrupt(format!("{RUN_JSON} is damaged: its id does not have 64 hex digits"))),
    }
}

/// Returns the state of a run if its files have a problem, without reading the files; `None` if there is no
/// problem.
fn files_problem(folder: &Folder, record: &RunRecord) -> Option<State> {
    wanted(record).map(|(name, _)| name).find_map(|name| match size_problem(folder, record, name) {
        Ok(Some(_)) if is_to_fetch(folder, record, name) => None,
        Ok(problem) => problem.map(State::Corrupt),
        Err(error) => Some(State::Unreadable(error.to_string())),
    })
}

/// Whether a file is absent because it is only in the shared results and has not been fetched yet.
fn is_to_fetch(folder: &Folder, record: &RunRecord, name: &str) -> bool {
    let is_absent =
        || matches!(folder.size(name), Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound);
    record.files.contains_key(name) && is_absent() && folder.size(SHARED).is_ok()
}

/// Returns the names of all files to check for a run: those in its record, and those of all tables.
/// The files of all tables are checked because a table's file must not exist if the record does not
/// list it.
pub(super) fn wanted(record: &RunRecord) -> impl Iterator<Item = (&str, Option<Table>)> {
    let tables = Table::ALL.into_iter().map(|table| (table.file(), Some(table)));
    let is_table = |name: &str| Table::ALL.iter().any(|table| table.file() == name);
    let others = record.files.keys().map(String::as_str).filter(move |name| !is_table(name)).map(|name| (name, None));
    tables.chain(others)
}

/// Returns the problem of a file, without reading the file; `None` if there is no problem.
pub(super) fn size_problem(folder: &Folder, record: &RunRecord, name: &str) -> Result<Option<String>, StoreError> {
    let listed = record.files.get(name);
    let is_optional = Table::ALL.iter().any(|table| table.file() == name && table.is_optional());
    if name.contains('/') || name.starts_with('.') || name.is_empty() {
        return Ok(Some(format!("{RUN_JSON} lists {name:?}, which is not a file of its folder")));
    }
    let size = match folder.size(name) {
        Ok(size) => Some(size),
        Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => None,
        Err(StoreError::Damaged { reason, .. }) => return Ok(Some(format!("{name} is damaged: {reason}"))),
        Err(error) => return Err(error),
    };
    Ok(match (listed, size) {
        (None, None) if is_optional => None,
        (None, None) => Some(format!("{name} is missing, and not listed in {RUN_JSON}")),
        (None, Some(_)) => Some(format!("{name} is not listed in {RUN_JSON}")),
        (Some(_), None) => Some(format!("{name} is missing")),
        (Some(FileRecord { bytes, .. }), Some(size)) if size != *bytes => {
            Some(format!("{name} has {size} bytes, but {RUN_JSON} lists {bytes}"))
        }
        (Some(_), Some(_)) => None,
    })
}
