//! What a killed writer left between two steps of a commit, put right by the next one before it does anything else.
//!
//! An attempt with a whole `run.json` was sealed and checked: its move into `runs/` is finished, so work that was done
//! is not done again, and the final set is that of an uninterrupted sweep. If such an attempt turns out damaged and the
//! run it was to replace already lies in `superseded/`, that run is moved back. A run that changed places with the attempt
//! that replaced it goes to `superseded/`. Other attempts stay where they are.

use std::fs;

use super::Store;
use super::commit::{promote, set_aside};
use super::disk::{self, Sync};
use super::error::{Doing, StoreError};
use super::inventory;
use super::layout::{Layout, RUN_JSON, short, split_numbered};
use super::list::{State, inspect};
use super::record::RunRecord;

/// What was done about one interrupted commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// The sealed attempt was moved into `runs/`.
    Finished,
    /// The sealed attempt is damaged; the run it was to replace was moved back into `runs/`.
    Restored,
}

/// One interrupted commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The run's short id.
    pub id: String,
    /// The attempt that is the committed run now.
    pub attempt: u32,
    /// What was done.
    pub remedy: Remedy,
}

/// Finishes or takes back every interrupted commit of the runs that `is_own` says yes to by their short ids. The caller holds their lock.
pub(super) fn recover(layout: &Layout, is_own: &dyn Fn(&str) -> bool) -> Result<Vec<Recovered>, StoreError> {
    let mut recovered = Vec::new();
    for name in disk::names(&layout.attempts())? {
        let Some((id, number)) = split_numbered(&name).filter(|(id, _)| is_own(id)) else { continue };
        let dir = layout.attempt(id, number);
        let finished = Recovered { id: id.to_owned(), attempt: number, remedy: Remedy::Finished };
        if RunRecord::read(&layout.run(id)).is_ok_and(|committed| committed.attempt == number) {
            set_aside(layout, &dir, id)?;
            recovered.push(finished);
            continue;
        }
        if !disk::is_taken(&dir.join(RUN_JSON)) {
            continue;
        }
        let listed = inspect(&dir, id, None);
        match (listed.state, listed.record) {
            (State::Whole, Some(record)) if record.attempt == number => {
                if is_newer_than_committed(layout, &record) {
                    promote(layout, &record)?;
                    recovered.push(finished);
                }
            }
            // The run that was replaced, though what replaced it is no longer whole.
            (_, Some(record)) if record.attempt < number && disk::is_taken(&layout.run(id)) => {
                set_aside(layout, &dir, id)?;
                recovered.push(finished);
            }
            _ => recovered.extend(restore(layout, id)?),
        }
    }
    Ok(recovered)
}

fn is_newer_than_committed(layout: &Layout, record: &RunRecord) -> bool {
    RunRecord::read(&layout.run(&record.id)).map_or(true, |committed| committed.attempt < record.attempt)
}

/// Moves the newest superseded run of `id` back where `runs/` has none.
///
/// Only called for an id with a sealed attempt: without one, a run that is missing was removed on purpose.
fn restore(layout: &Layout, id: &str) -> Result<Option<Recovered>, StoreError> {
    let run = layout.run(id);
    let names = disk::names(&layout.superseded())?;
    let numbers = names.iter().filter_map(|name| split_numbered(name)).filter(|(of, _)| *of == id);
    let Some(attempt) = numbers.map(|(_, number)| number).max().filter(|_| !disk::is_taken(&run)) else {
        return Ok(None);
    };
    let from = layout.superseded_run(id, attempt);
    fs::rename(&from, &run).map_err(StoreError::on(Doing::Move, &from))?;
    disk::sync_dir(&layout.runs())?;
    disk::sync_dir(&layout.superseded())?;
    Ok(Some(Recovered { id: id.to_owned(), attempt, remedy: Remedy::Restored }))
}

/// Brings the entries of all whole runs up to date: what a kill left behind, what earlier sweeplines measured, what was damaged.
/// The caller holds their lock. Entries can be made again, so nobody waits for the disk.
pub(super) fn catch_up(store: &Store, is_own: &dyn Fn(&str) -> bool) -> Result<(), StoreError> {
    for listed in store.list()?.into_iter().filter(|listed| is_own(short(&listed.id))) {
        if let Some(record) = listed.record.as_ref().filter(|_| listed.wants_entry()) {
            inventory::write(store.layout(), record, Sync::Later)?;
        }
    }
    Ok(())
}
