//! One writer per results folder. The kernel holds the lock and drops it with the process, however that ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::adopt::clear_up;
use super::attempt::Attempt;
use super::error::{Doing, StoreError};
use super::inventory;
use super::layout::{GITIGNORE, Layout, MOST_ATTEMPTS, split_numbered};
use super::record::RunRecord;
use super::recover::{Recovered, catch_up, recover};
use super::remote::Standing;
use super::{Store, disk};
use crate::expand::RunSpec;

/// The results folder in the hands of its one writer. Attempts keep the lock too, so it outlives none of them.
#[derive(Debug)]
pub struct Writer {
    store: Store,
    lock: Arc<File>,
    recovered: Vec<Recovered>,
}

impl Store {
    /// Takes the results folder for writing, creating it where it is missing, and puts right what a killed writer left.
    ///
    /// Fails with `Locked` while another process has it.
    pub fn lock(dir: impl Into<PathBuf>) -> Result<Writer, StoreError> {
        Store::open(dir).writer()
    }

    /// The same of this folder. Where it is a copy of shared results, they are looked at first, and get what they lack.
    pub fn writer(self) -> Result<Writer, StoreError> {
        let store = self;
        let layout = store.layout();
        let root = layout.root();
        let new = !root.exists();
        disk::create_dir(root)?;
        if new {
            let path = root.join(".gitignore");
            std::fs::write(&path, GITIGNORE).map_err(StoreError::on(Doing::Write, &path))?;
        }
        let lock = Arc::new(take(root, &layout.lock())?);
        if let Some(error) = store.no_inventory() {
            return Err(error);
        }
        let folders = [layout.runs(), layout.attempts(), layout.superseded(), layout.inventory()];
        for dir in folders.into_iter().filter(|dir| !dir.exists()) {
            disk::create_dir(&dir)?;
            disk::sync_dir(root)?;
        }
        clear_up(layout)?;
        let recovered = recover(layout)?;
        catch_up(&store)?;
        if let Some(remote) = store.remote() {
            remote.begin(layout)?;
        }
        Ok(Writer { store, lock, recovered })
    }
}

/// Takes the lock and writes our process id into its file, for whoever finds it taken.
fn take(root: &Path, path: &Path) -> Result<File, StoreError> {
    let failed = StoreError::on(Doing::Write, path);
    let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    let mut file = open.map_err(&failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::Error(error)) => return Err(failed(error)),
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let pid = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
            return Err(StoreError::Locked { dir: root.to_owned(), pid });
        }
    }
    let write = |file: &mut File| {
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())
    };
    write(&mut file).map_err(failed)?;
    Ok(file)
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

    /// Takes the run `id` (full or short) for this process, where results are shared; in a folder of one's own every run is open.
    pub fn claim(&self, id: &str) -> Result<Standing, StoreError> {
        let remote = self.store.remote();
        remote.map_or(Ok(Standing::Open), |remote| remote.claim(self.store.layout(), super::short(id)))
    }

    /// How the run `id` stands, without taking it.
    pub fn look(&self, id: &str) -> Result<Standing, StoreError> {
        let remote = self.store.remote();
        remote.map_or(Ok(Standing::Open), |remote| remote.look(self.store.layout(), super::short(id)))
    }

    /// Gives back the runs that were taken and not committed.
    pub fn release(&self) {
        if let Some(remote) = self.store.remote() {
            remote.release();
        }
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
        Attempt::create(&self.store, Arc::clone(&self.lock), (id, number), spec, afresh)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.release();
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
