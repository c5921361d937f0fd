//! Runs that were measured elsewhere, on their way into this folder.

use std::fs;
use std::path::{Path, PathBuf};

use super::commit::take_place;
use super::disk::{self, Sync};
use super::error::{Doing, StoreError};
use super::inventory;
use super::layout::short;
use super::lock::Writer;
use super::record::RunRecord;

/// What the folder of a run that is being fetched is called, in `attempts/`. No attempt has such a name, so nobody takes it for one.
const FETCHED: &str = ".fetched-";

impl Writer {
    /// An empty folder for the files of the run `id` (short) that are being fetched. What an earlier one left there is removed.
    pub(super) fn fetched(&self, id: &str) -> Result<PathBuf, StoreError> {
        let dir = self.store().layout().attempts().join(format!("{FETCHED}{id}"));
        if disk::is_taken(&dir) {
            fs::remove_dir_all(&dir).map_err(StoreError::on(Doing::Remove, &dir))?;
        }
        disk::create_dir(&dir)?;
        Ok(dir)
    }

    /// Makes the checked files in `dir` the committed run of their `run.json`. What cannot be used in its place goes to `superseded/`.
    pub(super) fn adopt(&self, dir: &Path, record: &RunRecord) -> Result<(), StoreError> {
        let layout = self.store().layout();
        take_place(layout, dir, short(&record.id))?;
        inventory::write(layout, record, Sync::Now)
    }
}
