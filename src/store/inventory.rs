//! The inventory: one small entry for each commit, outside of `runs/`, so that a run that is gone is missed and a record that
//! has lost its digest is found.
//!
//! `run.json` alone is the commit. An entry is written after the rename that commits; a kill between the two leaves a run
//! without an entry, or with that of an earlier attempt, and both are healthy: the next writer brings the entry up to date. So
//! an entry may lag behind its run and never runs ahead of it.

use std::io;

use serde::{Deserialize, Serialize};

use super::disk::{self, Sync};
use super::error::StoreError;
use super::folder::Folder;
use super::layout::{Layout, is_short_id, short};
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
}
