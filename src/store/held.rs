//! The locks of a results folder, while they are held. The kernel releases them when the process
//! ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::disk;
use super::error::{Doing, StoreError};
use super::hex::hex;
use super::layout::Layout;

/// The open files whose locks a writer holds.
#[derive(Debug)]
pub(super) struct Held {
    _files: Vec<File>,
}

impl Held {
    /// The lock of the whole folder.
    pub(super) fn whole(layout: &Layout) -> Result<Held, StoreError> {
        Ok(Held { _files: vec![take(layout.root(), &layout.lock())?] })
    }

    /// The lock of a part, and a shared lock of the folder.
    pub(super) fn part(layout: &Layout, name: &str) -> Result<Held, StoreError> {
        Ok(Held { _files: take_part(layout, name)? })
    }
}

/// Takes the lock and writes our process id into its file, where other processes that find it
/// locked can read it.
fn take(root: &Path, path: &Path) -> Result<File, StoreError> {
    let failed = StoreError::on(Doing::Write, path);
    let mut file = open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::Error(error)) => return Err(failed(error)),
        Err(TryLockError::WouldBlock) => {
            // Writers of parts write no process id into the folder's lock file, so an id in it is
            // from an earlier process.
            let pid = if file.try_lock_shared().is_ok() { None } else { process_in(&mut file) };
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

/// Takes the lock of a part, and a shared lock of the folder.
fn take_part(layout: &Layout, part: &str) -> Result<Vec<File>, StoreError> {
    let root = layout.root();
    let path = layout.lock();
    let mut folder = open(&path)?;
    match folder.try_lock_shared() {
        Ok(()) => {}
        Err(TryLockError::Error(error)) => return Err(StoreError::on(Doing::Write, &path)(error)),
        Err(TryLockError::WouldBlock) => {
            return Err(StoreError::Locked { dir: root.to_owned(), pid: process_in(&mut folder) });
        }
    }
    disk::create_dir(&layout.part_locks())?;
    // Endpoint names are not valid file names.
    let name = hex(&Sha256::digest(part.as_bytes())[..8]);
    let own = take(root, &layout.part_locks().join(name)).map_err(|error| match error {
        StoreError::Locked { dir, pid } => StoreError::PartLocked { dir, part: part.to_owned(), pid },
        other => other,
    })?;
    Ok(vec![folder, own])
}

fn open(path: &Path) -> Result<File, StoreError> {
    let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    open.map_err(StoreError::on(Doing::Write, path))
}

/// Returns the process id in a lock file.
fn process_in(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok())
}
