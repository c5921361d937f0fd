//! An attempt at a run: a folder in `attempts/`. `commit` turns the attempt into a run; without a commit,
//! the folder remains in `attempts/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::{Doing, StoreError};
use super::held::Held;
use super::layout::{ATTEMPT_JSON, JOURNAL, Layout};
use super::record::{AttemptRecord, FORMAT, Moment, run_labels};
use super::remote::Remote;
use super::{Store, disk};
use crate::expand::RunSpec;
use crate::rows::{Journal, RunLabels, SampleWriter, Spoiled, TextWriter};
use crate::units::NonceSeed;

/// An attempt in progress. If the attempt is dropped without `commit`, its folder remains in `attempts/`
/// and never becomes a result.
#[derive(Debug)]
pub struct Attempt {
    pub(super) layout: Layout,
    /// The shared results to which the attempt is also committed; `None` for an ordinary folder.
    pub(super) remote: Option<Arc<dyn Remote>>,
    pub(super) dir: PathBuf,
    pub(super) record: AttemptRecord,
    nonce_seed: NonceSeed,
    /// The lock of the results folder, which is held as long as this attempt exists.
    _lock: Arc<Held>,
}

impl Attempt {
    pub(super) fn create(
        store: &Store,
        lock: Arc<Held>,
        (id, number): (&str, u32),
        spec: &RunSpec,
        afresh: bool,
    ) -> Result<Attempt, StoreError> {
        let layout = store.layout().clone();
        let dir = layout.attempt(id, number);
        let nonce_seed = NonceSeed::random().map_err(StoreError::NoRandomBits)?;
        fs::create_dir(&dir).map_err(StoreError::on(Doing::Write, &dir))?;
        let record = AttemptRecord {
            format: FORMAT,
            id: id.to_owned(),
            attempt: number,
            started: Moment::now(),
            pid: std::process::id(),
            nonce_seed: Some(nonce_seed),
            ended: None,
            failure: None,
            spoiled: None,
            given_up: None,
            afresh,
            spec: spec.clone(),
        };
        disk::write_json(&dir, ATTEMPT_JSON, &record)?;
        Ok(Attempt { layout, remote: store.remote.clone(), dir, record, nonce_seed, _lock: lock })
    }

    /// Returns the full RunId, 64 hex digits.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// Returns the number of this attempt at the run, from 1.
    pub fn number(&self) -> u32 {
        self.record.attempt
    }

    /// Returns the seed from which the attempt's nonces are derived.
    pub fn nonce_seed(&self) -> NonceSeed {
        self.nonce_seed
    }

    /// Returns the attempt's folder. Logs that callers write to it stay with the run after the commit.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the path of the attempt's journal.
    pub(crate) fn journal_path(&self) -> PathBuf {
        self.dir.join(JOURNAL)
    }

    /// Returns the labels that all rows of this attempt share.
    pub fn labels(&self) -> RunLabels {
        run_labels(&self.record.id, self.record.attempt, &self.record.spec)
    }

    /// Starts the attempt's journal; call `Journal::finish` before `commit`.
    pub fn journal(&self) -> Result<Journal, StoreError> {
        Ok(Journal::create(&self.journal_path(), &self.labels())?)
    }

    /// Starts recording the attempt's time series; call `SampleWriter::finish` before `commit`.
    pub fn samples(&self) -> Result<SampleWriter, StoreError> {
        Ok(SampleWriter::create(&self.dir, self.labels())?)
    }

    /// Starts recording the attempt's texts; call `TextWriter::finish` before `commit`.
    pub fn texts(&self) -> Result<TextWriter, StoreError> {
        Ok(TextWriter::create(&self.dir, self.labels())?)
    }

    /// Marks the attempt as failed, and records the reason in its `attempt.json`.
    pub fn fail(mut self, reason: &str) -> Result<(), StoreError> {
        self.note_failure(reason)
    }

    /// Marks the attempt as spoiled by its environment. If the run is given up with this attempt,
    /// `given_up` is the number of retries; otherwise `None`.
    pub fn spoil(mut self, spoiled: Spoiled, given_up: Option<u32>) -> Result<(), StoreError> {
        let reason = spoiled.detail.clone();
        (self.record.spoiled, self.record.given_up) = (Some(spoiled), given_up);
        self.note_failure(&reason)
    }

    pub(super) fn note_failure(&mut self, reason: &str) -> Result<(), StoreError> {
        self.record.ended = Some(Moment::now());
        self.record.failure = Some(reason.to_owned());
        disk::write_json(&self.dir, ATTEMPT_JSON, &self.record)
    }
}
