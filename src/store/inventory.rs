//! The inventory, which contains a small entry for each committed run. It is stored outside of `runs/`, so
//! that deleted runs and records that have lost their digest can be detected.
//!
//! Only the `run.json` in `runs/` commits a run. An entry is written after the rename that commits the run.
//! A kill between the two steps leaves a run without an entry, or with the entry of an earlier attempt.
//! Both states are valid, and the next writer updates the entry. So an entry may be older than its run, but
//! never newer.

use std::io;

use serde::{Deserialize, Serialize};

use super::disk::{self, Sync};
use super::error::StoreError;
use super::folder::Folder;
use super::layout::{Layout, is_short_id, short};
use super::record::{FORMAT, Moment, RunRecord, parse};
use super::{Store, seal};
use crate::rows::RunLabels;

/// The inventory's entry for a committed run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Format version of the file.
    pub format: u32,
    /// The full RunId, 64 hex digits.
    pub id: String,
    /// The attempt that was committed.
    pub attempt: u32,
    /// When the run ended.
    pub ended: Moment,
    /// The name of the endpoint in the plan.
    pub endpoint: String,
    /// The name of the model in the plan.
    pub model: String,
    /// The name of the scenario in the plan.
    pub scenario: String,
    /// Number of requests in flight in a closed loop, or the in-flight cap of an open loop; `None` in an
    /// open loop without a cap.
    pub batch_size: Option<u32>,
    /// Rate of an open loop, in requests per second; `None` for a closed loop.
    pub qps: Option<f64>,
    /// Number of the repeat within its cell, from 0.
    pub repeat: u32,
    /// The digest of the run's `run.json`; `None` if the file has none.
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

    /// Returns the name of the run for display.
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

/// The relation between a run and its entry in the inventory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entered {
    /// The run has no entry, or only the entry of an earlier attempt. The next writer updates the entry.
    Behind,
    /// The run and the entry belong to the same commit.
    Same,
    /// The entry belongs to a later attempt, or to another commit with the same attempt number; the string
    /// describes the difference.
    Other(String),
    /// The entry is damaged; the string gives the reason. The next writer recreates it if the run is
    /// undamaged.
    Damaged(String),
    /// This user or this program cannot read the entry; the string gives the reason. The entry is left
    /// unchanged.
    Unreadable(String),
}

impl Entered {
    /// Returns the problem of the entry; `None` if it has none.
    pub fn problem(&self) -> Option<&str> {
        match self {
            Entered::Behind | Entered::Same => None,
            Entered::Other(why) | Entered::Damaged(why) | Entered::Unreadable(why) => Some(why),
        }
    }
}

/// Returns an error if something other than a folder exists at the path of the inventory; `None` otherwise.
pub(super) fn obstacle(layout: &Layout) -> Option<StoreError> {
    match Folder::open(&layout.inventory()) {
        Err(StoreError::Damaged { path, reason }) => Some(StoreError::NoInventory { path, reason }),
        _ => None,
    }
}

/// Opens the inventory's folder; `None` if it does not exist yet, or is not a folder.
pub(super) fn folder(layout: &Layout) -> Result<Option<Folder>, StoreError> {
    match Folder::open(&layout.inventory()) {
        Err(StoreError::Damaged { .. }) => Ok(None),
        Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

/// Reads the entry of the run `id`; `None` if it does not exist.
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
        return Err(damaged(&format!("it belongs to run {}", short(&entry.id))));
    }
    Ok(Some(entry))
}

/// Compares an undamaged record with its entry. Returns an error if the record has a problem after all.
pub(super) fn compare(record: &RunRecord, entry: Result<Option<Entry>, StoreError>) -> Result<Entered, String> {
    let entry = match entry {
        Ok(None) => return Ok(Entered::Behind),
        Ok(Some(entry)) => entry,
        Err(StoreError::Damaged { reason, .. }) => return Ok(Entered::Damaged(reason)),
        Err(error) => return Ok(Entered::Unreadable(error.to_string())),
    };
    // The run is a later attempt than the entry: a kill prevented the update of the entry, or an earlier
    // version of sweepline, which wrote no entries, committed the run.
    if record.attempt > entry.attempt {
        return Ok(Entered::Behind);
    }
    if record.sha256.is_none() && entry.run_sha256.is_some() {
        return Err("run.json is damaged: it has no digest, but the inventory lists one".to_owned());
    }
    let is_of = entry.attempt == record.attempt && entry.ended == record.ended && entry.run_sha256 == record.sha256;
    if is_of && entry.id == record.id {
        return Ok(Entered::Same);
    }
    Ok(Entered::Other(format!(
        "attempt {} of {:.19}Z was committed, but attempt {} of {:.19}Z was found",
        entry.attempt,
        entry.ended.to_string(),
        record.attempt,
        record.ended.to_string()
    )))
}

/// Writes the entry of a committed run.
pub(super) fn write(layout: &Layout, record: &RunRecord, sync: Sync) -> Result<(), StoreError> {
    let path = layout.entry(&record.id);
    // A folder with this name is not an inventory entry. It is renamed, because a file cannot replace a
    // folder.
    if path.is_dir() && !path.is_symlink() {
        let name = |end: String| layout.inventory().join(format!("{}.json.not-a-file{end}", short(&record.id)));
        let others = (2..=u32::MAX).map(|number| name(format!("-{number}")));
        let mut free = std::iter::once(name(String::new())).chain(others).filter(|name| !disk::is_taken(name));
        let aside = free.next().unwrap_or_else(|| name(String::new()));
        disk::again(|| std::fs::rename(&path, &aside)).map_err(StoreError::on(super::error::Doing::Move, &path))?;
    }
    disk::write_sealed_soon(&path, &Entry::of(record), sync)?;
    if sync == Sync::Now { disk::sync_dir(&layout.inventory()) } else { Ok(()) }
}

/// Returns the short ids that have entries, sorted.
pub(super) fn ids(layout: &Layout) -> Result<Vec<String>, StoreError> {
    // If the inventory is not a folder, it has no entries. This problem is reported separately.
    let names = if obstacle(layout).is_some() { Vec::new() } else { disk::names(&layout.inventory())? };
    let ids = names.iter().filter_map(|name| name.strip_suffix(".json")).filter(|id| is_short_id(id));
    Ok(ids.map(str::to_owned).collect())
}

impl Store {
    /// Returns an error if something other than a folder exists at the path of the inventory, because then
    /// it is unknown which runs were committed. `None` otherwise.
    pub fn no_inventory(&self) -> Option<StoreError> {
        obstacle(&self.layout)
    }
}
