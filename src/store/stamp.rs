//! Detects whether the files of a run have changed. As in git, the files are not read: an unchanged file has
//! the same inode, size and times.
//!
//! A program cannot set the time of the last change (ctime), so a rewritten file gets a different stamp,
//! unless it is rewritten within the resolution of the clock. Therefore a run is added to the index only if
//! its files have been unchanged for a while (`overview`).

use rustix::fs::{FileType, Stat};
use sha2::{Digest, Sha256};

use super::folder::Folder;
use super::layout::RUN_JSON;
use super::remote::SHARED;
use crate::rows::Table;

/// A hash that changes if the `run.json` of a run, its entry in the inventory, or the sizes of its row
/// files change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp(pub(super) [u8; 16]);

/// The open folders of a store that are needed to compute stamps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Folders<'a> {
    /// The folder `runs/`.
    pub(super) runs: &'a Folder,
    /// The folder `inventory/`.
    pub(super) inventory: &'a Folder,
}

impl Folders<'_> {
    /// Returns the stamp of the run `id` (short) and the time of the last change to its files, in seconds;
    /// `None` if any file is missing or its metadata cannot be read.
    pub(super) fn stamp(self, id: &str) -> Option<(Stamp, i64)> {
        let mut hasher = Sha256::new();
        let record = self.runs.look(&format!("{id}/{RUN_JSON}")).ok()??;
        let entry = self.inventory.look(&format!("{id}.json")).ok()??;
        for file in [&record, &entry] {
            identity(file)?.iter().for_each(|number| hasher.update(number.to_le_bytes()));
        }
        let mut is_partial = false;
        for table in Table::ALL {
            let size = match self.runs.look(&format!("{id}/{}", table.file())).ok()? {
                Some(file) => i128::from(regular(&file)?.st_size),
                None => -1,
            };
            is_partial |= size < 0;
            hasher.update(size.to_le_bytes());
        }
        // Row files may be absent in a copy of shared results.
        let is_copy = is_partial && self.runs.look(&format!("{id}/{SHARED}")).ok()?.is_some();
        hasher.update([u8::from(is_copy)]);
        let digest = hasher.finalize();
        let newest = record.st_ctime.max(entry.st_ctime);
        Some((Stamp(digest[..16].try_into().ok()?), newest as i64))
    }
}

fn regular(file: &Stat) -> Option<&Stat> {
    (FileType::from_raw_mode(file.st_mode) == FileType::RegularFile).then_some(file)
}

/// Returns the metadata that identifies a regular file and its current content; `None` if the file is not
/// regular.
fn identity(file: &Stat) -> Option<[i128; 7]> {
    let file = regular(file)?;
    Some([
        file.st_dev.into(),
        file.st_ino.into(),
        file.st_size.into(),
        file.st_mtime.into(),
        file.st_mtime_nsec.into(),
        file.st_ctime.into(),
        file.st_ctime_nsec.into(),
    ])
}
