//! What is in the results folder: committed runs with a quick check, attempts, what was replaced.
//!
//! Quick means `run.json` and the sizes of the files, nothing more: a sweep that has nothing to do looks at every run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::error::{Doing, StoreError};
use super::layout::{RUN_JSON, short, split_numbered};
use super::record::{AttemptRecord, RunRecord};
use super::{Store, disk};
use crate::rows::Table;

/// What the quick check says of a committed run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// `run.json` is whole and every file has its size.
    Whole,
    /// It cannot be used, for this reason.
    Corrupt(String),
}

/// One folder in `runs/`.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// The short id: the folder's name.
    pub id: String,
    /// The folder.
    pub dir: PathBuf,
    /// Whether it can be used.
    pub state: State,
    /// Its `run.json`, where that can be read.
    pub record: Option<RunRecord>,
}

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptState {
    /// It is under way, or its process was killed.
    Unfinished,
    /// It failed, for this reason.
    Failed(String),
}

/// One folder in `attempts/`.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedAttempt {
    /// The run's short id.
    pub id: String,
    /// Which attempt at the run it was, from 1.
    pub number: u32,
    /// The folder.
    pub dir: PathBuf,
    /// What became of it.
    pub state: AttemptState,
    /// Its `attempt.json`, where that can be read.
    pub record: Option<AttemptRecord>,
}

impl Store {
    /// All committed runs with a quick check of each, sorted by id.
    ///
    /// Fails where the folder cannot be read, or a later program wrote into it.
    pub fn list(&self) -> Result<Vec<Listed>, StoreError> {
        self.run_names()?.iter().map(|name| inspect(&self.layout.run(name), name)).collect()
    }

    /// The committed run `id` (full or short) with a quick check; none where there is no such folder.
    pub fn run(&self, id: &str) -> Result<Option<Listed>, StoreError> {
        let dir = self.layout.run(id);
        let found = dir.try_exists().map_err(StoreError::on(Doing::Read, &dir))?;
        found.then(|| inspect(&dir, short(id))).transpose()
    }

    /// All attempts that are no runs, sorted by id.
    pub fn attempts(&self) -> Result<Vec<ListedAttempt>, StoreError> {
        let names = disk::names(&self.layout.attempts())?;
        Ok(names.iter().filter_map(|name| split_numbered(name)).map(|(id, number)| self.attempt(id, number)).collect())
    }

    /// Short id and attempt of every run that was replaced, sorted by id.
    pub fn superseded(&self) -> Result<Vec<(String, u32)>, StoreError> {
        let names = disk::names(&self.layout.superseded())?;
        Ok(names.iter().filter_map(|name| split_numbered(name)).map(|(id, number)| (id.to_owned(), number)).collect())
    }

    /// The names of the runs' folders in `runs/`, sorted; what is not called like a run is not ours.
    pub(super) fn run_names(&self) -> Result<Vec<String>, StoreError> {
        let mut names = disk::names(&self.layout.runs())?;
        names.retain(|name| name.len() == 16 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')));
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

/// Checks the run in `dir`, which should be that of `id` (short).
///
/// What this user may not read, and what a later program wrote, is an error: it is not corrupt.
pub(super) fn inspect(dir: &Path, id: &str) -> Result<Listed, StoreError> {
    let listed = |state, record| Listed { id: id.to_owned(), dir: dir.to_owned(), state, record };
    let corrupt = |reason| Ok(listed(State::Corrupt(reason), None));
    let record = match RunRecord::read(dir) {
        Ok(record) => record,
        Err(StoreError::Damaged { reason, .. }) => return corrupt(format!("{RUN_JSON} is damaged: {reason}")),
        Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return corrupt(format!("{RUN_JSON} is missing"));
        }
        Err(error) => return Err(error),
    };
    if short(&record.id) != id {
        return corrupt(format!("{RUN_JSON} is that of run {}", short(&record.id)));
    }
    let problems = record.tables().filter_map(|table| size_problem(dir, &record, table).transpose());
    let first = { problems }.next().transpose()?;
    let state = match first {
        None => State::Whole,
        Some(problem) => State::Corrupt(problem),
    };
    Ok(listed(state, Some(record)))
}

/// What is wrong with a file, seen from outside.
pub(super) fn size_problem(dir: &Path, record: &RunRecord, table: Table) -> Result<Option<String>, StoreError> {
    let name = table.file();
    let path = dir.join(name);
    let Some(wanted) = record.files.get(name) else { return Ok(Some(format!("{RUN_JSON} does not know {name}"))) };
    match fs::metadata(&path) {
        Ok(metadata) if metadata.len() == wanted.bytes => Ok(None),
        Ok(metadata) => Ok(Some(format!("{name} has {} bytes, {RUN_JSON} says {}", metadata.len(), wanted.bytes))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some(format!("{name} is missing"))),
        Err(error) => Err(StoreError::io(Doing::Read, &path, error)),
    }
}
