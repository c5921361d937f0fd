//! Finds a run by the beginning of its id.

use std::collections::BTreeSet;

use super::error::StoreError;
use super::layout::{short, split_numbered};
use super::list::Listed;
use super::{Store, disk, inventory};

impl Store {
    /// Returns the only committed run whose id begins with `prefix`, which may have up to 64 hex digits in
    /// upper or lower case.
    ///
    /// Fails with `NotFound` if there is no such run, with `OnlyTried` if it has only attempts, with
    /// `Deleted` if only the inventory lists it, and with `Ambiguous` if there are several.
    pub fn find(&self, prefix: &str) -> Result<Listed, StoreError> {
        let wanted = prefix.to_ascii_lowercase();
        let not_found = || StoreError::NotFound { dir: self.place().to_owned(), prefix: prefix.to_owned() };
        let mut candidates = self.run_names()?;
        candidates.retain(|name| name.starts_with(short(&wanted)));
        if candidates.is_empty() && !wanted.is_empty() {
            // The folder of a run that is being replaced may be absent for an instant, so the inventory is
            // searched too. A run that remains absent is reported as deleted.
            candidates = inventory::ids(&self.layout)?;
            candidates.retain(|name| name.starts_with(short(&wanted)));
        }
        if candidates.len() > 1 {
            return Err(StoreError::Ambiguous { prefix: prefix.to_owned(), candidates });
        }
        let Some(listed) = candidates.pop().map(|name| self.run(&name)).transpose()?.flatten() else {
            let tried = || self.find_tried(&wanted).unwrap_or_else(not_found);
            return Err(self.find_deleted(&wanted)?.unwrap_or_else(tried));
        };
        // The folder's name contains only 16 digits of the id, so more digits are compared with the id in
        // `run.json`.
        match &listed.record {
            Some(record) if !record.id.starts_with(&wanted) => Err(not_found()),
            _ => Ok(listed),
        }
    }

    /// If exactly one run whose id begins with `wanted` has attempts, returns the error that this run has
    /// no result; otherwise `None`.
    fn find_tried(&self, wanted: &str) -> Option<StoreError> {
        let names = disk::names(&self.layout.attempts()).ok()?;
        let ids = names.iter().filter_map(|name| split_numbered(name)).map(|(id, _)| id.to_owned());
        let ids: BTreeSet<String> = ids.filter(|id| !wanted.is_empty() && id.starts_with(short(wanted))).collect();
        let dir = self.place().to_owned();
        match &Vec::from_iter(ids)[..] {
            [id] => Some(StoreError::OnlyTried { dir, id: id.clone() }),
            _ => None,
        }
    }

    /// Returns the error that the run whose id begins with `wanted` was deleted, or that `wanted` is
    /// ambiguous if there are several such runs; `None` if there is no such run.
    fn find_deleted(&self, wanted: &str) -> Result<Option<StoreError>, StoreError> {
        let mut ids = inventory::ids(&self.layout)?;
        let sealed = self.sealed()?;
        ids.retain(|id| !wanted.is_empty() && id.starts_with(short(wanted)) && !sealed.contains(id));
        if ids.len() > 1 {
            return Ok(Some(StoreError::Ambiguous { prefix: wanted.to_owned(), candidates: ids }));
        }
        let folder = inventory::folder(&self.layout)?;
        let deleted = ids.pop().and_then(|id| self.deleted_run(folder.as_ref(), id));
        let is_other = |entry: &inventory::Entry| !entry.id.starts_with(wanted);
        Ok(deleted
            .filter(|deleted| !deleted.entry.as_ref().is_ok_and(is_other))
            .map(|deleted| deleted.error(self.place())))
    }
}
