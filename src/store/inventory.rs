//! The inventory: one small entry for each commit, outside of `runs/`, so that a run that is gone is missed and a record that
//! has lost its digest is found.
//!
//! `run.json` alone is the commit. An entry is written after the rename that commits; a kill between the two leaves a run
//! without an entry, or with that of an earlier attempt, and both are healthy: the next writer brings the entry up to date. So
//! an entry may lag behind its run and never runs ahead of it.

use std::collections::BTreeSet;
use std::io;

use serde::{Deserialize, Serialize};

use super::disk::{self, Sync};
use super::error::StoreError;
use super::folder::Folder;
use super::layout::{Layout, is_short_id, short};
use super::list::Listed;
use super::lock::Writer;
use super::record::{FORMAT, Moment, RunRecord, parse};
use super::{Store, seal};
use crate::rows::RunLabels;

/// What the inventory knows of a committed run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Format of the file.
    pub format: u32,
    /// The full RunId, 64 hex digits.
    pub id: String,
    /// The attempt that was committed.
    pub attempt: u32,
    /// When it was over.
    pub ended: Moment,
    /// Its endpoint.
    pub endpoint: String,
    /// Its model, as plans name it.
    pub model: String,
    /// Its scenario, as plans name it.
    pub scenario: String,
    /// Requests kept in flight; none in an open loop without a cap.
    pub batch_size: Option<u32>,
    /// Requests per second; none in a closed loop.
    pub qps: Option<f64>,
    /// Which repeat of its cell it is, from 0.
    pub repeat: u32,
    /// The digest of its `run.json`; none where that has none.
    pub run_sha256: Option<String>,
}

impl Entry {
    fn of(record: &RunRecord) -> Entry {
        let RunLabels { endpoint, model, scenario, batch_size, qps, repeat, .. } = record.labels();
        Entry {
            format: FORMAT,
            id: record.id.clone(),
            attempt: record.attempt,
            ended: record.ended,
            endpoint,
            model,
            scenario,
            batch_size,
            qps,
            repeat,
            run_sha256: record.sha256.clone(),
        }
    }

    /// What it is called among people.
    pub fn name(&self) -> String {
        let Entry { endpoint, model, scenario, batch_size, qps, repeat, .. } = self;
        let load = match (qps, batch_size) {
            (Some(qps), _) => format!("{qps} qps"),
            (None, Some(size)) => format!("batch {size}"),
            (None, None) => "its own load".to_owned(),
        };
        format!("{endpoint} · {model} · {scenario} · {load} · repeat {repeat}")
    }
}

/// How a run and its entry stand to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entered {
    /// There is no entry, or one of an earlier attempt: the next writer brings it up to date.
    Behind,
    /// They are of one commit.
    Same,
    /// The entry is of a later attempt, or of another commit under the same number.
    Other(String),
    /// The entry is damaged. The next writer makes it anew from a whole run.
    Damaged(String),
    /// The entry cannot be read by this user or this program, and is left alone.
    Unreadable(String),
}

impl Entered {
    /// What is wrong with the entry; none where nothing is.
    pub fn problem(&self) -> Option<&str> {
        match self {
            Entered::Behind | Entered::Same => None,
            Entered::Other(why) | Entered::Damaged(why) | Entered::Unreadable(why) => Some(why),
        }
    }
}

/// A run that was committed and whose folder is gone.
#[derive(Debug, Clone, PartialEq)]
pub struct Deleted {
    /// The run's short id.
    pub id: String,
    /// Its entry; if that cannot be read, why.
    pub entry: Result<Entry, String>,
}

impl Deleted {
    /// What is true of it, in words.
    pub fn said(&self) -> String {
        match &self.entry {
            Ok(entry) => format!("measured {:.19}Z, deleted since", entry.ended.to_string()),
            Err(why) => {
                format!("measured, deleted since; when cannot be said, as its entry in the inventory is bad: {why}")
            }
        }
    }

    fn measured(&self) -> String {
        let known = self.entry.as_ref().map(|entry| format!("{:.19}Z", entry.ended.to_string()));
        known.unwrap_or_else(|_| "at a time that its damaged entry does not say".to_owned())
    }

    pub(super) fn error(&self, layout: &Layout) -> StoreError {
        StoreError::Deleted { dir: layout.root().to_owned(), id: self.id.clone(), measured: self.measured() }
    }
}

/// What lies in the place of the inventory and is no folder; none where nothing does.
pub(super) fn obstacle(layout: &Layout) -> Option<StoreError> {
    match Folder::open(&layout.inventory()) {
        Err(StoreError::Damaged { path, reason }) => Some(StoreError::NoInventory { path, reason }),
        _ => None,
    }
}

/// The open folder of entries; none where there is none yet, or something else in its place.
pub(super) fn folder(layout: &Layout) -> Result<Option<Folder>, StoreError> {
    match Folder::open(&layout.inventory()) {
        Err(StoreError::Damaged { .. }) => Ok(None),
        Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

/// The entry of the run `id`; none where there is none.
pub(super) fn entry(folder: Option<&Folder>, id: &str) -> Result<Option<Entry>, StoreError> {
    let name = format!("{}.json", short(id));
    let Some(folder) = folder else { return Ok(None) };
    let text = match folder.json(&name) {
        Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let path = folder.path().join(&name);
    let damaged = |reason: &str| StoreError::Damaged { path: path.clone(), reason: reason.to_owned() };
    let sealed = seal::digest(&text).map_err(|reason| damaged(&reason))?;
    let entry: Entry = parse(&path, &text)?;
    if sealed.is_none() {
        return Err(damaged("it does not end with its digest"));
    }
    if short(&entry.id) != short(id) {
        return Err(damaged(&format!("it is that of run {}", short(&entry.id))));
    }
    Ok(Some(entry))
}

/// How a whole record and what was read of its entry stand to each other; an error is what is wrong with the record.
pub(super) fn compare(record: &RunRecord, entry: Result<Option<Entry>, StoreError>) -> Result<Entered, String> {
    let entry = match entry {
        Ok(None) => return Ok(Entered::Behind),
        Ok(Some(entry)) => entry,
        Err(StoreError::Damaged { reason, .. }) => return Ok(Entered::Damaged(reason)),
        Err(error) => return Ok(Entered::Unreadable(error.to_string())),
    };
    // A later attempt whose entry was not written any more, or one that an earlier sweepline made.
    if record.attempt > entry.attempt {
        return Ok(Entered::Behind);
    }
    if record.sha256.is_none() && entry.run_sha256.is_some() {
        return Err("run.json is damaged: it has no digest, and the inventory says that it had one".to_owned());
    }
    let is_of = entry.attempt == record.attempt && entry.ended == record.ended && entry.run_sha256 == record.sha256;
    if is_of && entry.id == record.id {
        return Ok(Entered::Same);
    }
    Ok(Entered::Other(format!(
        "attempt {} of {:.19}Z was committed, and attempt {} of {:.19}Z is there",
        entry.attempt,
        entry.ended.to_string(),
        record.attempt,
        record.ended.to_string()
    )))
}

/// Writes the entry of a committed run.
pub(super) fn write(layout: &Layout, record: &RunRecord, sync: Sync) -> Result<(), StoreError> {
    let path = layout.entry(&record.id);
    // Whatever else has its name is no entry, and no folder can be replaced by a file.
    if path.is_dir() && !path.is_symlink() {
        let name = |end: String| layout.inventory().join(format!("{}.json.not-a-file{end}", short(&record.id)));
        let others = (2..=u32::MAX).map(|number| name(format!("-{number}")));
        let mut free = std::iter::once(name(String::new())).chain(others).filter(|name| !disk::is_taken(name));
        let aside = free.next().unwrap_or_else(|| name(String::new()));
        std::fs::rename(&path, &aside).map_err(StoreError::on(super::error::Doing::Move, &path))?;
    }
    disk::write_sealed_soon(&path, &Entry::of(record), sync)?;
    if sync == Sync::Now { disk::sync_dir(&layout.inventory()) } else { Ok(()) }
}

/// Brings the entries of all whole runs up to date: what a kill left behind, what earlier sweeplines measured, what was damaged.
/// The caller holds the lock. Entries can be made again, so nobody waits for the disk.
pub(super) fn catch_up(store: &Store) -> Result<(), StoreError> {
    for listed in store.list()? {
        if let Some(record) = listed.record.as_ref().filter(|_| listed.wants_entry()) {
            write(store.layout(), record, Sync::Later)?;
        }
    }
    Ok(())
}

/// The short ids that have entries, sorted.
pub(super) fn ids(layout: &Layout) -> Result<Vec<String>, StoreError> {
    // What is no folder has no entries, and is told on its own.
    let names = if obstacle(layout).is_some() { Vec::new() } else { disk::names(&layout.inventory())? };
    let ids = names.iter().filter_map(|name| name.strip_suffix(".json")).filter(|id| is_short_id(id));
    Ok(ids.map(str::to_owned).collect())
}

impl Store {
    /// What lies in the place of the inventory and is no folder: then nobody knows what was committed. None where nothing does.
    pub fn no_inventory(&self) -> Option<StoreError> {
        obstacle(&self.layout)
    }

    /// The runs that were committed and whose folders are gone, sorted by id.
    pub fn deleted(&self) -> Result<Vec<Deleted>, StoreError> {
        // First the entries: a run is there before its entry.
        let ids = ids(&self.layout)?;
        let there: BTreeSet<String> = self.run_names()?.into_iter().collect();
        let mut gone: Vec<String> = ids.into_iter().filter(|id| !there.contains(id)).collect();
        // One whose next attempt is sealed is being replaced, or was when a kill came: the next writer puts that right.
        let sealed = self.sealed()?;
        gone.retain(|id| !sealed.contains(id) && !disk::is_taken(&self.layout.run(id)));
        let folder = folder(&self.layout)?;
        Ok(gone.into_iter().filter_map(|id| self.deleted_run(folder.as_ref(), id)).collect())
    }

    /// The run `id` (full or short), if it was committed and its folder is gone.
    pub(super) fn deleted_run(&self, folder: Option<&Folder>, id: String) -> Option<Deleted> {
        match entry(folder, &id) {
            Ok(None) => None,
            Ok(Some(entry)) => Some(Deleted { id, entry: Ok(entry) }),
            Err(error) => Some(Deleted { id, entry: Err(error.to_string()) }),
        }
    }
}

impl Writer {
    /// Drops the entry of a run that is gone, or of a commit that another one took the place of; `prefix` begins its id.
    pub fn forget(&self, prefix: &str) -> Result<Deleted, StoreError> {
        let (store, layout) = (self.store(), self.store().layout());
        let wanted = prefix.to_ascii_lowercase();
        let mut ids: BTreeSet<String> = ids(layout)?.into_iter().collect();
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
        let forgotten = store.deleted_run(folder(layout)?.as_ref(), id.clone()).ok_or_else(not_found)?;
        if forgotten.entry.as_ref().is_ok_and(|entry| !entry.id.starts_with(&wanted)) {
            return Err(not_found());
        }
        disk::remove(&layout.entry(&id))?;
        disk::sync_dir(&layout.inventory())?;
        if let Some(record) = listed.and_then(|listed| listed.record) {
            write(layout, &record, Sync::Now)?;
        }
        Ok(forgotten)
    }
}
