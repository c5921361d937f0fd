//! One writer per results folder, or one for each of its parts. The kernel holds the locks and drops them with the process, however
//! that ends.
//!
//! Writers of parts share the folder's lock, and each has that of its part for itself, so that no run has two writers. They
//! finish interrupted commits of their own runs alone. Whoever takes the whole folder waits for none of them and is refused.

use std::path::PathBuf;
use std::sync::Arc;

use super::attempt::Attempt;
use super::error::{Doing, StoreError};
use super::held::Held;
use super::inventory;
use super::layout::{GITIGNORE, Layout, MOST_ATTEMPTS, split_numbered};
use super::record::RunRecord;
use super::recover::{Recovered, catch_up, recover};
use super::{Store, disk};
use crate::expand::RunSpec;

/// The results folder in the hands of its one writer. Attempts keep the lock too, so it outlives none of them.
#[derive(Debug)]
pub struct Writer {
    store: Store,
    lock: Arc<Held>,
    recovered: Vec<Recovered>,
}

/// A part of a plan whose runs one process makes while others make those of other parts.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// Its name: one writer at a time has it.
    pub name: &'a str,
    /// Whether the run with this short id is one of its own.
    pub has: &'a dyn Fn(&str) -> bool,
}

impl Store {
    /// Takes the results folder for writing, creating it where it is missing, and puts right what a killed writer left.
    ///
    /// Fails with `Locked` while another process has it.
    pub fn lock(dir: impl Into<PathBuf>) -> Result<Writer, StoreError> {
        Store::lock_for(dir.into(), None)
    }

    /// The same for the runs of one part, beside writers of other parts. Interrupted commits of other runs are left alone.
    ///
    /// Fails with `Locked` while another process has the whole folder, and with `PartLocked` while one has the part.
    pub fn lock_part(dir: impl Into<PathBuf>, part: Part) -> Result<Writer, StoreError> {
        Store::lock_for(dir.into(), Some(part))
    }

    fn lock_for(dir: PathBuf, part: Option<Part>) -> Result<Writer, StoreError> {
        let store = Store::open(dir);
        let layout = store.layout();
        let root = layout.root();
        let new = !root.exists();
        disk::create_dir(root)?;
        if new {
            let path = root.join(".gitignore");
            std::fs::write(&path, GITIGNORE).map_err(StoreError::on(Doing::Write, &path))?;
        }
        let held = part.map_or_else(|| Held::whole(layout), |part| Held::part(layout, part.name));
        let lock = Arc::new(held?);
        if let Some(error) = store.no_inventory() {
            return Err(error);
        }
        let folders = [layout.runs(), layout.attempts(), layout.superseded(), layout.inventory()];
        for dir in folders.into_iter().filter(|dir| !dir.exists()) {
            disk::create_dir(&dir)?;
            disk::sync_dir(root)?;
        }
        let is_own = |id: &str| part.is_none_or(|part| (part.has)(id));
        let recovered = recover(layout, &is_own)?;
        catch_up(&store, &is_own)?;
        Ok(Writer { store, lock, recovered })
    }
}

impl Writer {
    /// The folder as readers see it.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What a killed writer had left between two steps, and what became of it.
    pub fn recovered(&self) -> &[Recovered] {
        &self.recovered
    }

    /// Starts the next attempt at the run `id` (64 hex digits).
    pub fn begin(&self, id: &str, spec: &RunSpec) -> Result<Attempt, StoreError> {
        self.create(id, spec, false)
    }

    /// Starts the next attempt at the run `id`, with which a new count of spoiled ones begins: the user asked for the run
    /// although it was given up.
    pub fn begin_afresh(&self, id: &str, spec: &RunSpec) -> Result<Attempt, StoreError> {
        self.create(id, spec, true)
    }

    fn create(&self, id: &str, spec: &RunSpec, afresh: bool) -> Result<Attempt, StoreError> {
        let number = next_number(self.store.layout(), id)?;
        Attempt::create(self.store.layout().clone(), Arc::clone(&self.lock), (id, number), spec, afresh)
    }
}

/// The number after all that the run's attempts have had, wherever they lie now. The inventory knows also those that somebody
/// has removed.
fn next_number(layout: &Layout, id: &str) -> Result<u32, StoreError> {
    let mut last = (0, layout.run(id));
    let mut seen = |number: u32, path: PathBuf| {
        if number > last.0 {
            last = (number, path);
        }
    };
    for folder in [layout.attempts(), layout.superseded()] {
        for name in disk::names(&folder)? {
            if let Some((_, number)) = split_numbered(&name).filter(|(of, _)| *of == super::short(id)) {
                seen(number, folder.join(&name));
            }
        }
    }
    if let Ok(record) = RunRecord::read(&layout.run(id)) {
        seen(record.attempt, layout.run(id));
    }
    if let Ok(Some(entry)) = inventory::entry(inventory::folder(layout)?.as_ref(), id) {
        seen(entry.attempt, layout.entry(id));
    }
    let (number, path) = last;
    if number < MOST_ATTEMPTS { Ok(number + 1) } else { Err(StoreError::LastNumber { path }) }
}
