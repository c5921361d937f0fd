//! From an attempt to a committed run, in an order that a kill at any instant cannot spoil:
//! seal, check, `run.json`, move the run it replaces aside, move it in.

use std::collections::BTreeMap;
use std::fs;

use super::attempt::Attempt;
use super::disk;
use super::error::{Doing, StoreError};
use super::failpoint::failpoint;
use super::layout::{ATTEMPT_JSON, JOURNAL, Layout, RUN_JSON};
use super::record::{FORMAT, FileRecord, Moment, Replaced, RunRecord};
use crate::rows::{self, Environment, Facts, Table};

/// What a run leaves besides its journal and its time series.
#[derive(Debug, Clone, PartialEq)]
pub struct Commit {
    /// The circumstances as they were found.
    pub environment: Environment,
    /// What the verdict is computed from, besides the rows.
    pub facts: Facts,
    /// Digest of what the generator sent, without nonces.
    pub generator_digest: String,
    /// How many samples its finished time series have.
    pub samples: u64,
    /// How many rows its finished texts have, where they were kept.
    pub texts: Option<u64>,
    /// Why a committed run is replaced; kept only where there is one.
    pub reason: Option<String>,
}

impl Attempt {
    /// Makes this attempt the committed run of its id. What was committed before is moved to `superseded/`.
    ///
    /// Fails where the journal or the time series were not finished, the disk is full or read-only, or what was written cannot be read
    /// back; the attempt then stays in `attempts/` with the reason, and what was committed before stays committed.
    pub fn commit(mut self, commit: Commit) -> Result<RunRecord, StoreError> {
        let sealed = self.seal(commit);
        if let Err(error) = &sealed {
            // Best effort: on a full disk the reason may not fit either, and the first error is the one to tell.
            let _ = self.note_failure(&error.to_string());
        }
        let record = sealed?;
        failpoint("before_rename");
        promote(&self.layout, &record)?;
        Ok(record)
    }

    /// Writes the row files and `run.json`: from here on the attempt is whole, only in the wrong place.
    fn seal(&self, commit: Commit) -> Result<RunRecord, StoreError> {
        let ended = Moment::now();
        failpoint("before_seal");
        let requests = rows::seal(&self.journal_path(), &self.dir)?;
        let files = self.check(requests, &commit)?;
        failpoint("before_run_json");
        let record = RunRecord {
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
        };
        disk::write_json(&self.dir, RUN_JSON, &record)?;
        Ok(record)
    }

    /// Opens every written file again, reads all of it, and takes its size and digest.
    fn check(&self, requests: u64, commit: &Commit) -> Result<BTreeMap<String, FileRecord>, StoreError> {
        let mut files = BTreeMap::new();
        let always = [(Table::Requests, requests), (Table::Events, requests), (Table::Samples, commit.samples)];
        for (table, wanted) in always.into_iter().chain(commit.texts.map(|texts| (Table::Texts, texts))) {
            let path = self.dir.join(table.file());
            let rows = rows::check(&path, table)?;
            if rows != wanted {
                let reason = format!("{rows} rows instead of the {wanted} that were written");
                return Err(StoreError::Damaged { path, reason });
            }
            let bytes = fs::metadata(&path).map_err(StoreError::on(Doing::Read, &path))?.len();
            files.insert(table.file().to_owned(), FileRecord { bytes, sha256: disk::sha256(&path)?, rows });
        }
        Ok(files)
    }

    /// What this run will take the place of.
    fn replaced(&self, reason: Option<String>) -> Option<Replaced> {
        let committed = self.layout.run(&self.record.id);
        let attempt = RunRecord::read(&committed).ok().map(|record| record.attempt);
        committed.exists().then_some(Replaced { attempt, reason })
    }
}

/// Moves a sealed attempt into `runs/`, after moving away what is there. Also what `recover` does with an attempt whose
/// process was killed on the way.
pub(super) fn promote(layout: &Layout, record: &RunRecord) -> Result<(), StoreError> {
    let attempt = layout.attempt(&record.id, record.attempt);
    disk::remove(&attempt.join(JOURNAL))?;
    disk::remove(&attempt.join(ATTEMPT_JSON))?;
    disk::sync_dir(&attempt)?;
    let run = layout.run(&record.id);
    if run.exists() {
        supersede(layout, record)?;
        failpoint("between_supersede_and_rename");
    }
    fs::rename(&attempt, &run).map_err(StoreError::on(Doing::Move, &attempt))?;
    failpoint("after_rename");
    disk::sync_dir(&layout.runs())?;
    disk::sync_dir(&layout.attempts())
}

/// Moves the committed run aside under its attempt's number, or the next free one where that is unknown or taken.
fn supersede(layout: &Layout, by: &RunRecord) -> Result<(), StoreError> {
    let run = layout.run(&by.id);
    let number = RunRecord::read(&run).map_or(0, |old| old.attempt);
    let free = (number..).map(|number| layout.superseded_run(&by.id, number)).find(|path| !path.exists());
    disk::move_dir(&run, &free.expect("attempts do not fill 32 bits"))
}
