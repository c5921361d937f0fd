//! Ensures that a results folder has only one writer at a time. The kernel releases the writer's lock when
//! the process ends, however it ends.

use std::path::PathBuf;
use std::sync::Arc;

use super::adopt::clear_up;
use super::attempt::Attempt;
use super::error::{Doing, StoreError};
use super::held::Held;
use super::inventory;
use super::layout::{GITIGNORE, Layout, MOST_ATTEMPTS, split_numbered};
use super::record::RunRecord;
use super::recover::{Recovered, catch_up, recover};
use super::remote::Standing;
use super::{Store, disk};
use crate::expand::RunSpec;

/// The only writer of a results folder. Attempts share its lock, so the folder remains locked as long as
/// any attempt exists.
#[derive(Debug)]
pub struct Writer {
    store: Store,
    lock: Arc<Held>,
    recovered: Vec<Recovered>,
}

/// A part of a plan. One process measures the runs of this part while other processes measure the runs of
/// other parts.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// The name of the part. A part can have only one writer at a time.
    pub name: &'a str,
    /// Whether the run with this short id belongs to the part.
    pub has: &'a dyn Fn(&str) -> bool,
}

impl Store {
    /// Opens the results folder for writing, creates it if it is missing, and repairs the commits that a
    /// killed writer left incomplete.
    ///
    /// Fails with `Locked` while another process holds the folder's lock.
    pub fn lock(dir: impl Into<PathBuf>) -> Result<Writer, StoreError> {
        Store::open(dir).writer()
    }

    /// Opens this folder for writing. If the folder is a copy of shared results, runs that are missing
    /// from the shared results are sent there first.
    pub fn writer(self) -> Result<Writer, StoreError> {
        self.lock_for(None)
    }

    /// Opens this folder for writing the runs of one part, while other processes may write other parts.
    /// Interrupted commits of runs of other parts are not repaired.
    ///
    /// Fails with `Locked` while another process holds the whole folder, and with `PartLocked` while
    /// another process holds the part.
    pub fn part_writer(self, part: Part) -> Result<Writer, StoreError> {
        self.lock_for(Some(part))
    }

    fn lock_for(self, part: Option<Part>) -> Result<Writer, StoreError> {
        let store = self;
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
        if part.is_none() {
            clear_up(layout)?;
        }
        let is_own = |id: &str| part.is_none_or(|part| (part.has)(id));
        let recovered = recover(layout, &is_own)?;
        catch_up(&store, &is_own)?;
        if let Some(remote) = store.remote() {
            remote.begin(layout)?;
        }
        Ok(Writer { store, lock, recovered })
    }
}

impl Writer {
    /// Returns the store for reading.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the incomplete steps that a killed writer left, and how they were repaired.
    pub fn recovered(&self) -> &[Recovered] {
        &self.recovered
    }

    /// Claims the run `id` (full or short) for this process if results are shared. If workers share the
    /// server `server`, it is claimed first. In an ordinary folder, every run is open.
    pub fn claim(&self, id: &str, server: Option<&str>) -> Result<Standing, StoreError> {
        let remote = self.store.remote();
        remote.map_or(Ok(Standing::Open), |remote| remote.claim(self.store.layout(), super::short(id), server))
    }

    /// Returns the state of the run `id`, without claiming it.
    pub fn look(&self, id: &str, server: Option<&str>) -> Result<Standing, StoreError> {
        let remote = self.store.remote();
        remote.map_or(Ok(Standing::Open), |remote| remote.look(self.store.layout(), super::short(id), server))
    }

    /// Releases the claims on runs that were not committed.
    pub fn release(&self) {
        if let Some(remote) = self.store.remote() {
            remote.release();
        }
    }

    /// Starts the next attempt at the run `id` (64 hex digits).
    pub fn begin(&self, id: &str, spec: &RunSpec) -> Result<Attempt, StoreError> {
        self.create(id, spec, false)
    }

    /// Starts the next attempt at the run `id`. The count of spoiled attempts starts again at 0, because
    /// the user requested the run although it was given up.
    pub fn begin_afresh(&self, id: &str, spec: &RunSpec) -> Result<Attempt, StoreError> {
        self.create(id, spec, true)
    }

    fn create(&self, id: &str, spec: &RunSpec, afresh: bool) -> Result<Attempt, StoreError> {
        let number = next_number(self.store.layout(), id)?;
        Attempt::create(&self.store, Arc::clone(&self.lock), (id, number), spec, afresh)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.release();
    }
}

/// Returns the next attempt number of a run: one more than the highest number among its attempts, its
/// commit and its replaced commits. The inventory is also checked, because the run's folder may have been
/// removed.
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
