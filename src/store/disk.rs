//! File operations of the store, each with an error that names the file.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::error::{Doing, StoreError};
use super::hex::hex;
use super::seal;

/// Syncs the entries of a folder to disk.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(StoreError::on(Doing::Write, dir))
}

/// Writes `value` as `dir/name`, atomically and synced to disk.
pub(crate) fn write_json(dir: &Path, name: &str, value: &impl Serialize) -> Result<(), StoreError> {
    let path = dir.join(name);
    let mut text =
        serde_json::to_vec_pretty(value).map_err(|error| StoreError::io(Doing::Write, &path, error.into()))?;
    text.push(b'\n');
    place(&path, &text, Sync::Now)?;
    sync_dir(dir)
}

/// Writes `value` as above, with a digest at the end of the file, and returns the digest.
pub(crate) fn write_sealed(dir: &Path, name: &str, value: &impl Serialize) -> Result<String, StoreError> {
    let digest = write_sealed_soon(&dir.join(name), value, Sync::Now)?;
    sync_dir(dir)?;
    Ok(digest)
}

/// Whether to wait until a file is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    /// Wait.
    Now,
    /// Does not wait, because the file can be recreated.
    Later,
}

/// Writes `value` with a digest at its end as the file `path`, atomically, and returns the digest.
pub(crate) fn write_sealed_soon(path: &Path, value: &impl Serialize, sync: Sync) -> Result<String, StoreError> {
    let (text, digest) = seal::sealed(value).map_err(|error| StoreError::io(Doing::Write, path, error.into()))?;
    place(path, &text, sync)?;
    Ok(digest)
}

/// Writes a file atomically: under a temporary name first, then renamed.
fn place(path: &Path, text: &[u8], sync: Sync) -> Result<(), StoreError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let write = || {
        let mut file = File::create(&beside)?;
        file.write_all(text)?;
        if sync == Sync::Now {
            file.sync_all()?;
        }
        fs::rename(&beside, path)
    };
    write().map_err(StoreError::on(Doing::Write, path))
}

/// Removes a file that may be absent.
pub(crate) fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io(Doing::Remove, path, error)),
        _ => Ok(()),
    }
}

/// Creates a folder with its parents, if it is missing.
pub(crate) fn create_dir(dir: &Path) -> Result<(), StoreError> {
    fs::create_dir_all(dir).map_err(StoreError::on(Doing::Write, dir))
}

/// Returns the names in a folder, sorted; empty if the folder does not exist. Names that are not
/// UTF-8 are skipped, because sweepline does not create any.
pub(crate) fn names(dir: &Path) -> Result<Vec<String>, StoreError> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(StoreError::on(Doing::Read, dir))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(StoreError::on(Doing::Read, dir))?;
        names.extend(entry.file_name().into_string());
    }
    names.sort_unstable();
    Ok(names)
}

/// Returns the SHA-256 of the open file at `path`, from beginning to end, as 64 hex digits.
pub(crate) fn sha256(path: &Path, mut file: &File) -> Result<String, StoreError> {
    let mut read = || {
        file.seek(SeekFrom::Start(0))?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                length => hasher.update(&buffer[..length]),
            }
        }
        Ok(hex(&hasher.finalize()))
    };
    read().map_err(StoreError::on(Doing::Read, path))
}

/// Exchanges two folders in one step. Returns false if the file system does not support it.
pub(crate) fn exchange(a: &Path, b: &Path) -> Result<bool, StoreError> {
    match renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(false),
        Err(errno) => Err(StoreError::io(Doing::Move, a, errno.into())),
    }
}

/// Whether any entry has this name, including a dangling link.
pub(crate) fn is_taken(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
