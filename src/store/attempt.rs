//! One attempt at a run: a folder in `attempts/` that becomes a run by `commit`, and stays there otherwise.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk;
use super::error::{Doing, StoreError};
use super::held::Held;
use super::layout::{ATTEMPT_JSON, JOURNAL, Layout};
use super::record::{AttemptRecord, FORMAT, Moment, run_labels};
use crate::expand::RunSpec;
use crate::rows::{Journal, RunLabels, SampleWriter, Spoiled, TextWriter};
use crate::units::NonceSeed;

/// An attempt that is under way. Dropped without `commit`, it stays in `attempts/` and is never a result.
#[derive(Debug)]
pub struct Attempt {
    pub(super) layout: Layout,
    pub(super) dir: PathBuf,
    pub(super) record: AttemptRecord,
    nonce_seed: NonceSeed,
    /// Held for as long as anything may be written.
    _lock: Arc<Held>,
}

impl Attempt {
    pub(super) fn create(
        layout: Layout,
        lock: Arc<Held>,
        (id, number): (&str, u32),
        spec: &RunSpec,
        afresh: bool,
    ) -> Result<Attempt, StoreError> {
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
        Ok(Attempt { layout, dir, record, nonce_seed, _lock: lock })
    }

    /// The full RunId, 64 hex digits.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// Which attempt at the run this is, from 1.
    pub fn number(&self) -> u32 {
        self.record.attempt
    }

    /// What its nonces derive from.
    pub fn nonce_seed(&self) -> NonceSeed {
        self.nonce_seed
    }

    /// Its folder, where logs may be put; they move with it.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where its journal is.
    pub(crate) fn journal_path(&self) -> PathBuf {
        self.dir.join(JOURNAL)
    }

    /// What all rows of this attempt share.
    pub fn labels(&self) -> RunLabels {
        run_labels(&self.record.id, self.record.attempt, &self.record.spec)
    }

    /// Starts its journal; `Journal::finish` it before `commit`.
    pub fn journal(&self) -> Result<Journal, StoreError> {
        Ok(Journal::create(&self.journal_path(), &self.labels())?)
    }

    /// Starts its time series; `SampleWriter::finish` it before `commit`.
    pub fn samples(&self) -> Result<SampleWriter, StoreError> {
        Ok(SampleWriter::create(&self.dir, self.labels())?)
    }

    /// Starts its texts; `TextWriter::finish` it before `commit`.
    pub fn texts(&self) -> Result<TextWriter, StoreError> {
        Ok(TextWriter::create(&self.dir, self.labels())?)
    }

    /// Leaves the attempt as failed, with the reason in its `attempt.json`.
    pub fn fail(mut self, reason: &str) -> Result<(), StoreError> {
        self.note_failure(reason)
    }

    /// Leaves the attempt as spoiled by its environment. `given_up` says that the run is given up with it: how often it was tried
    /// again.
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
