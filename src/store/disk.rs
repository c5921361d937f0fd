//! The few things the store does with files, each with an error that names the file.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::error::{Doing, StoreError};

/// Waits until the disk has the entries of a folder.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(StoreError::on(Doing::Write, dir))
}

/// Writes `value` as `dir/name`, whole or not at all: beside it first, down to the disk, then renamed.
pub(crate) fn write_json(dir: &Path, name: &str, value: &impl Serialize) -> Result<(), StoreError> {
    let path = dir.join(name);
    let beside = dir.join(format!("{name}.new"));
    let mut text =
        serde_json::to_vec_pretty(value).map_err(|error| StoreError::io(Doing::Write, &path, error.into()))?;
    text.push(b'\n');
    let write = || {
        let mut file = File::create(&beside)?;
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&beside, &path)
    };
    write().map_err(StoreError::on(Doing::Write, &path))?;
    sync_dir(dir)
}

/// Removes a file that may be absent.
pub(crate) fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io(Doing::Remove, path, error)),
        _ => Ok(()),
    }
}

/// Moves a folder and waits until the disk has both parents' entries.
pub(crate) fn move_dir(from: &Path, to: &Path) -> Result<(), StoreError> {
    fs::rename(from, to).map_err(StoreError::on(Doing::Move, from))?;
    for parent in [to.parent(), from.parent()].into_iter().flatten() {
        sync_dir(parent)?;
    }
    Ok(())
}

/// Creates a folder with its parents, where it is missing.
pub(crate) fn create_dir(dir: &Path) -> Result<(), StoreError> {
    fs::create_dir_all(dir).map_err(StoreError::on(Doing::Write, dir))
}

/// The names in a folder, sorted; none where the folder does not exist. Names that are not UTF-8 are not ours.
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

/// SHA-256 of a file as 64 hex digits.
pub(crate) fn sha256(path: &Path) -> Result<String, StoreError> {
    let read = || {
        let mut file = File::open(path)?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                length => hasher.update(&buffer[..length]),
            }
        }
        Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    };
    read().map_err(StoreError::on(Doing::Read, path))
}
