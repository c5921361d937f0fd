//! Repairs commits that were interrupted because the writer was killed. The next writer does this before
//! anything else.
//!
//! An attempt with an undamaged `run.json` was sealed and checked, so its move into `runs/` is completed.
//! Finished work is thus not repeated, and the runs are the same as after an uninterrupted sweep. If such
//! an attempt is found to be damaged, and the run that it should replace is already in `superseded/`, that
//! run is moved back. If a replaced run has already been exchanged with the attempt, it is moved from
//! `attempts/` to `superseded/`. Other attempts are left unchanged.

use std::fs;

use super::Store;
use super::commit::{promote, set_aside};
use super::disk::{self, Sync};
use super::error::{Doing, StoreError};
use super::inventory;
use super::layout::{Layout, RUN_JSON, split_numbered};
use super::list::{Listed, State, inspect};
use super::record::RunRecord;

/// How an interrupted commit was repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// The sealed attempt was moved into `runs/`.
    Finished,
    /// The sealed attempt is damaged, so the run that it should have replaced was moved back into `runs/`.
    Restored,
}

/// An interrupted commit that was repaired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The run's short id.
    pub id: String,
    /// The attempt that is now the committed run.
    pub attempt: u32,
    /// How the commit was repaired.
    pub remedy: Remedy,
}

/// Completes or reverts every interrupted commit of the runs for which `is_own` returns true. The caller
/// holds the lock.
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
            // The folder in `attempts/` contains the replaced run: the exchange was completed, but the
            // record of the new run cannot be read.
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

/// Moves the newest superseded run `id` back into `runs/` if the run is missing there. Returns `None` if it is
/// not missing, or if no superseded run exists.
///
/// Only called for a run with a sealed attempt. A missing run without a sealed attempt was removed on purpose.
fn restore(layout: &Layout, id: &str) -> Result<Option<Recovered>, StoreError> {
    let run = layout.run(id);
    let names = disk::names(&layout.superseded())?;
    let numbers = names.iter().filter_map(|name| split_numbered(name)).filter(|(of, _)| *of == id);
    let Some(attempt) = numbers.map(|(_, number)| number).max().filter(|_| !disk::is_taken(&run)) else {
        return Ok(None);
    };
    let from = layout.superseded_run(id, attempt);
    disk::again(|| fs::rename(&from, &run)).map_err(StoreError::on(Doing::Move, &from))?;
    disk::sync_dir(&layout.runs())?;
    disk::sync_dir(&layout.superseded())?;
    Ok(Some(Recovered { id: id.to_owned(), attempt, remedy: Remedy::Restored }))
}

/// Updates the inventory entries of all undamaged runs for which `is_own` returns true. Entries may be
/// outdated or missing after a kill, missing for runs of earlier versions, or damaged. The caller holds the
/// lock. This function does not wait for the disk, because entries can be recreated.
pub(super) fn catch_up(store: &Store, is_own: &dyn Fn(&str) -> bool) -> Result<(), StoreError> {
    let mut names = store.names()?;
    names.retain(|name| is_own(name));
    let enter = |listed: Listed| {
        let record = listed.record.as_ref().filter(|_| listed.wants_entry())?;
        inventory::write(store.layout(), record, Sync::Later).err()
    };
    store.unsettled(&names, &enter)?.into_iter().next().map_or(Ok(()), Err)
}
