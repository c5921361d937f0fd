//! Turns an attempt into a committed run: the attempt is sealed and checked, its `run.json` is written, its
//! folder is moved into `runs/`, and its entry is written into the inventory. Because of this order, a kill
//! at any instant does no damage.
//!
//! If the attempt replaces a run, the two folders are exchanged in one step, so that a committed run exists
//! at every instant. The replaced run is then moved from `attempts/` to `superseded/`. If the file system
//! cannot exchange folders, the replaced run is moved to `superseded/` first.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::attempt::Attempt;
use super::disk::{self, Sync};
use super::error::{Doing, StoreError};
use super::failpoint::{failpoint, is_chosen};
use super::folder::Folder;
use super::inventory;
use super::layout::{ATTEMPT_JSON, JOURNAL, Layout, MOST_ATTEMPTS, RUN_JSON, short};
use super::record::{FORMAT, FileRecord, Moment, Replaced, RunRecord};
use crate::rows::{self, Environment, Facts, Table};

/// The data that a commit needs in addition to the attempt's journal and its time series.
#[derive(Debug, Clone, PartialEq)]
pub struct Commit {
    /// The observed circumstances of the run.
    pub environment: Environment,
    /// The facts that, together with the rows, determine the verdict.
    pub facts: Facts,
    /// Digest of the generated requests, without nonces.
    pub generator_digest: String,
    /// Number of samples in the finished time series.
    pub samples: u64,
    /// Number of rows in the finished file of texts; `None` if texts were not recorded.
    pub texts: Option<u64>,
    /// Why the run is repeated. The reason is stored only if the commit replaces a run.
    pub reason: Option<String>,
}

impl Attempt {
    /// Makes this attempt the committed run of its id. The previously committed run is moved to
    /// `superseded/`.
    ///
    /// Fails if the journal or the time series were not finished, if the disk is full or read-only, or if
    /// the written data cannot be read back. The attempt then remains in `attempts/` and records the
    /// reason, and the previously committed run remains committed.
    pub fn commit(mut self, commit: Commit) -> Result<RunRecord, StoreError> {
        let sealed = self.seal(commit);
        if let Err(error) = &sealed {
            // An error is ignored here: on a full disk, even the reason may not fit, and the first error is
            // the one to report.
            let _ = self.note_failure(&error.to_string());
        }
        let record = sealed?;
        failpoint("before_rename");
        promote(&self.layout, &record)?;
        failpoint("before_entry");
        inventory::write(&self.layout, &record, Sync::Now)?;
        failpoint("after_entry");
        if let Some(remote) = &self.remote {
            remote.commit(&self.layout, short(&record.id))?;
        }
        Ok(record)
    }

    /// Writes the row files and `run.json`. After that, the attempt is complete and only has to be moved.
    fn seal(&self, commit: Commit) -> Result<RunRecord, StoreError> {
        let ended = Moment::now();
        failpoint("before_seal");
        let requests = rows::seal(&self.journal_path(), &self.dir)?;
        let files = self.check(requests, &commit)?;
        failpoint("before_run_json");
        let mut record = RunRecord {
            format: FORMAT,
            id: self.record.id.clone(),
            attempt: self.record.attempt,
            started: self.record.started,
            ended,
            spec: self.record.spec.clone(),
            nonce_seed: self.record.nonce_seed,
            environment: commit.environment,
            facts: commit.facts,
            generator_digest: commit.generator_digest,
            replaced: self.replaced(commit.reason),
            files,
            sha256: None,
        };
        record.sha256 = Some(disk::write_sealed(&self.dir, RUN_JSON, &record)?);
        Ok(record)
    }

    /// Opens every written file again, reads it completely, and computes its size and digest.
    fn check(&self, requests: u64, commit: &Commit) -> Result<BTreeMap<String, FileRecord>, StoreError> {
        let mut files = BTreeMap::new();
        let folder = Folder::open(&self.dir)?;
        let always = [(Table::Requests, requests), (Table::Events, requests), (Table::Samples, commit.samples)];
        for (table, wanted) in always.into_iter().chain(commit.texts.map(|texts| (Table::Texts, texts))) {
            let path = self.dir.join(table.file());
            let rows = rows::check(&path, table)?;
            if rows != wanted {
                let reason = format!("{rows} rows, but {wanted} were written");
                return Err(StoreError::Damaged { path, reason });
            }
            let (file, bytes) = folder.file(table.file())?;
            files.insert(table.file().to_owned(), FileRecord { bytes, sha256: disk::sha256(&path, &file)?, rows });
        }
        Ok(files)
    }

    /// Describes the committed run that this attempt will replace; `None` if there is none.
    fn replaced(&self, reason: Option<String>) -> Option<Replaced> {
        let committed = self.layout.run(&self.record.id);
        let attempt = RunRecord::read(&committed).ok().map(|record| record.attempt);
        committed.exists().then_some(Replaced { attempt, reason })
    }
}

/// The failpoint between the two renames that are needed on a file system that cannot exchange folders. If
/// a test selects this failpoint, the two renames are always used.
const TWO_RENAMES: &str = "between_supersede_and_rename";

/// Moves a sealed attempt into `runs/`, and the run that it replaces to `superseded/`. `recover` also calls
/// this for an attempt whose process was killed before or during the move.
pub(super) fn promote(layout: &Layout, record: &RunRecord) -> Result<(), StoreError> {
    let attempt = layout.attempt(&record.id, record.attempt);
    disk::remove(&attempt.join(JOURNAL))?;
    disk::remove(&attempt.join(ATTEMPT_JSON))?;
    disk::sync_dir(&attempt)?;
    take_place(layout, &attempt, &record.id)
}

/// Moves a complete folder to the place of the run `id` in `runs/`, and the run that was there to
/// `superseded/`.
pub(super) fn take_place(layout: &Layout, whole: &Path, id: &str) -> Result<(), StoreError> {
    let run = layout.run(id);
    if disk::is_taken(&run) {
        let aside = place_aside(layout, &run, id)?;
        if !is_chosen(TWO_RENAMES) && disk::exchange(whole, &run)? {
            failpoint("between_exchange_and_supersede");
            rename(whole, &aside)?;
        } else {
            rename(&run, &aside)?;
            failpoint(TWO_RENAMES);
            rename(whole, &run)?;
        }
        disk::sync_dir(&layout.superseded())?;
    } else {
        rename(whole, &run)?;
    }
    failpoint("after_rename");
    disk::sync_dir(&layout.runs())?;
    disk::sync_dir(&layout.attempts())
}

/// Moves a replaced run to `superseded/`. This is needed if a kill left the run in the attempt's folder
/// after the exchange.
pub(super) fn set_aside(layout: &Layout, replaced: &Path, id: &str) -> Result<(), StoreError> {
    rename(replaced, &place_aside(layout, replaced, id)?)?;
    disk::sync_dir(&layout.superseded())?;
    disk::sync_dir(&layout.attempts())
}

fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    disk::again(|| fs::rename(from, to)).map_err(StoreError::on(Doing::Move, from))
}

/// Returns the path in `superseded/` for the run in `dir`. Its name contains the number of the run's
/// attempt, or the next free number if that number is unknown or taken.
fn place_aside(layout: &Layout, dir: &Path, id: &str) -> Result<PathBuf, StoreError> {
    let number = RunRecord::read(dir).map_or(0, |old| old.attempt);
    let free = (number..=MOST_ATTEMPTS).map(|number| layout.superseded_run(id, number));
    let last = layout.superseded_run(id, MOST_ATTEMPTS);
    { free }.find(|path| !disk::is_taken(path)).ok_or(StoreError::LastNumber { path: last })
}
