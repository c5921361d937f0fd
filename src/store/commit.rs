//! Turns an attempt into a committed run: seal it, check it, write `run.json`, move it into `runs/`,
//! write its entry into the inventory. In this order, a kill at any instant does no damage.
//!
//! If the attempt replaces a run, the two are exchanged in one step, so that there is no instant
//! without a run. The replaced run is then moved from `attempts/` to `superseded/`. If the file
//! system cannot exchange folders, the replaced run is moved aside first.

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

/// The data of a run in addition to its journal and its time series.
#[derive(Debug, Clone, PartialEq)]
pub struct Commit {
    /// The observed circumstances.
    pub environment: Environment,
    /// The inputs of the verdict other than the rows.
    pub facts: Facts,
    /// Digest of the generated requests, without nonces.
    pub generator_digest: String,
    /// Number of samples in the finished time series.
    pub samples: u64,
    /// Number of rows in the finished texts, if texts were recorded.
    pub texts: Option<u64>,
    /// Why a committed run is replaced; stored only if a run is replaced.
    pub reason: Option<String>,
}

impl Attempt {
    /// Makes this attempt the committed run of its id. The previously committed run is moved to
    /// `superseded/`.
    ///
    /// Fails if the journal or the time series were not finished, if the disk is full or read-only, or
    /// if the written data cannot be read back. The attempt then stays in `attempts/` with the reason,
    /// and the previously committed run stays committed.
    pub fn commit(mut self, commit: Commit) -> Result<RunRecord, StoreError> {
        let sealed = self.seal(commit);
        if let Err(error) = &sealed {
            // Best effort: on a full disk even the reason may not fit, and the first error is the
            // one to report.
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

    /// Writes the row files and `run.json`. From here on the attempt is complete; it only has to be moved.
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

    /// Opens every written file again, reads all of it, and computes its size and digest.
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

    /// Returns the run that this one will replace.
    fn replaced(&self, reason: Option<String>) -> Option<Replaced> {
        let committed = self.layout.run(&self.record.id);
        let attempt = RunRecord::read(&committed).ok().map(|record| record.attempt);
        committed.exists().then_some(Replaced { attempt, reason })
    }
}

/// The step between the two renames on a file system that cannot exchange folders. A test that selects
/// this point uses the two renames.
const TWO_RENAMES: &str = "between_supersede_and_rename";

/// Moves a sealed attempt into `runs/`, and the run that it replaces to `superseded/`. `recover` does the
/// same for an attempt whose process was killed during the move.
pub(super) fn promote(layout: &Layout, record: &RunRecord) -> Result<(), StoreError> {
    let attempt = layout.attempt(&record.id, record.attempt);
    disk::remove(&attempt.join(JOURNAL))?;
    disk::remove(&attempt.join(ATTEMPT_JSON))?;
    disk::sync_dir(&attempt)?;
    take_place(layout, &attempt, &record.id)
}

/// Moves a complete folder to the place of the run `id`, and its predecessor to `superseded/`.
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

/// Moves a replaced run to `superseded/` if a kill left it in the attempt's place.
pub(super) fn set_aside(layout: &Layout, replaced: &Path, id: &str) -> Result<(), StoreError> {
    rename(replaced, &place_aside(layout, replaced, id)?)?;
    disk::sync_dir(&layout.superseded())?;
    disk::sync_dir(&layout.attempts())
}

fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    fs::rename(from, to).map_err(StoreError::on(Doing::Move, from))
}

/// Returns the place in `superseded/` for the run in `dir`. It is named by its attempt's number, or by
/// the next free one if that number is unknown or taken.
fn place_aside(layout: &Layout, dir: &Path, id: &str) -> Result<PathBuf, StoreError> {
    let number = RunRecord::read(dir).map_or(0, |old| old.attempt);
    let free = (number..=MOST_ATTEMPTS).map(|number| layout.superseded_run(id, number));
    let last = layout.superseded_run(id, MOST_ATTEMPTS);
    { free }.find(|path| !disk::is_taken(path)).ok_or(StoreError::LastNumber { path: last })
}
