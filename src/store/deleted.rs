//! Finds and forgets deleted runs: committed runs whose folders are gone. The inventory lists them until
//! they are forgotten.

use std::collections::BTreeSet;
use std::path::Path;

use super::Store;
use super::disk::{self, Sync};
use super::error::StoreError;
use super::folder::Folder;
use super::inventory::{self, Entered, Entry};
use super::layout::short;
use super::list::Listed;
use super::lock::Writer;

/// A committed run whose folder is gone.
#[derive(Debug, Clone, PartialEq)]
pub struct Deleted {
    /// The run's short id.
    pub id: String,
    /// The run's entry in the inventory, or the reason why it cannot be read.
    pub entry: Result<Entry, String>,
}

impl Deleted {
    /// Describes the state of the run as text.
    pub fn said(&self) -> String {
        match &self.entry {
            Ok(entry) => format!("measured at {:.19}Z, but has since been deleted", entry.ended.to_string()),
            Err(why) => {
                format!(
                    "measured at an unknown time, but has since been deleted; its entry in the inventory is damaged: \
                     {why}"
                )
            }
        }
    }

    fn measured(&self) -> String {
        let known = self.entry.as_ref().map(|entry| format!("at {:.19}Z", entry.ended.to_string()));
        known.unwrap_or_else(|_| "at an unknown time (its entry is damaged)".to_owned())
    }

    pub(super) fn error(&self, place: &Path) -> StoreError {
        StoreError::Deleted { dir: place.to_owned(), id: self.id.clone(), measured: self.measured() }
    }
}

impl Store {
    /// Returns the committed runs whose folders are gone, sorted by id.
    pub fn deleted(&self) -> Result<Vec<Deleted>, StoreError> {
        // Entries are listed before runs: a run is committed before its entry is written, so every listed
        // entry must have a run.
        let ids = inventory::ids(&self.layout)?;
        let there: BTreeSet<String> = self.run_names()?.into_iter().collect();
        let mut gone: Vec<String> = ids.into_iter().filter(|id| !there.contains(id)).collect();
        // A run with a sealed attempt is not deleted: it is being replaced, or its writer was
        // killed during the replacement. In the second case, the next writer repairs the run.
        let sealed = self.sealed()?;
        gone.retain(|id| !sealed.contains(id) && !disk::is_taken(&self.layout.run(id)));
        let folder = inventory::folder(&self.layout)?;
        Ok(gone.into_iter().filter_map(|id| self.deleted_run(folder.as_ref(), id)).collect())
    }

    /// Describes the run `id` (full or short), whose folder is gone; `None` if the inventory does not list
    /// it.
    pub(super) fn deleted_run(&self, folder: Option<&Folder>, id: String) -> Option<Deleted> {
        match inventory::entry(folder, &id) {
            Ok(None) => None,
            Ok(Some(entry)) => Some(Deleted { id, entry: Ok(entry) }),
            Err(error) => Some(Deleted { id, entry: Err(error.to_string()) }),
        }
    }
}

impl Writer {
    /// Removes the inventory entry of a run whose folder is gone, or an entry that belongs to a
    /// different commit than the existing run. `prefix` is the beginning of the run's id.
    pub fn forget(&self, prefix: &str) -> Result<Deleted, StoreError> {
        let (store, layout) = (self.store(), self.store().layout());
        let wanted = prefix.to_ascii_lowercase();
        let mut ids: BTreeSet<String> = inventory::ids(layout)?.into_iter().collect();
        ids.extend(store.run_names()?);
        let mut candidates: Vec<String> = ids.into_iter().filter(|id| id.starts_with(short(&wanted))).collect();
        if candidates.len() > 1 {
            return Err(StoreError::Ambiguous { prefix: prefix.to_owned(), candidates });
        }
        let not_found = || StoreError::NotFound { dir: layout.root().to_owned(), prefix: prefix.to_owned() };
        let id = candidates.pop().filter(|_| !wanted.is_empty()).ok_or_else(not_found)?;
        let listed: Option<Listed> = store.run(&id)?;
        if listed.as_ref().is_some_and(|listed| !matches!(listed.entered, Entered::Other(_))) {
            return Err(StoreError::StillThere { dir: layout.root().to_owned(), id });
        }
        let forgotten = store.deleted_run(inventory::folder(layout)?.as_ref(), id.clone()).ok_or_else(not_found)?;
        if forgotten.entry.as_ref().is_ok_and(|entry| !entry.id.starts_with(&wanted)) {
            return Err(not_found());
        }
        disk::remove(&layout.entry(&id))?;
        disk::sync_dir(&layout.inventory())?;
        if let Some(record) = listed.and_then(|listed| listed.record) {
            inventory::write(layout, &record, Sync::Now)?;
        }
        Ok(forgotten)
    }
}
