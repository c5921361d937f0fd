//! File operations of the store. Their errors contain the path of the file.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::{Errno, retry_on_intr};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::error::{Doing, StoreError};
use super::failpoint::injected;
use super::hex::hex;
use super::seal;

/// Syncs a folder to disk, so that created, renamed and removed entries are permanent. Does nothing on a file system
/// that cannot sync folders.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    let folder = File::open(dir).map_err(StoreError::on(Doing::Write, dir))?;
    match again(|| injected("fsync_dir").map_or_else(|| folder.sync_all(), Err)) {
        Err(error) if !is_unsupported(&error) => Err(StoreError::io(Doing::Write, dir, error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Whether an error of `fsync` states that the file system cannot sync folders. Some network file systems return
/// EINVAL or ENOTSUP. Any other error, like EIO, means that data may be lost.
fn is_unsupported(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::INVAL | Errno::NOTSUP))
}

/// Repeats a file operation as long as signals interrupt it (EINTR), which network file systems and FUSE allow for
/// operations that cannot be interrupted elsewhere.
pub(crate) fn again<T>(mut operation: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match operation() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Writes `value` as the JSON file `dir/name`, atomically, and syncs it to disk.
pub(crate) fn write_json(dir: &Path, name: &str, value: &impl Serialize) -> Result<(), StoreError> {
    let path = dir.join(name);
    let mut text =
        serde_json::to_vec_pretty(value).map_err(|error| StoreError::io(Doing::Write, &path, error.into()))?;
    text.push(b'\n');
    place(&path, &text, Sync::Now)?;
    sync_dir(dir)
}

/// Writes `value` like [`write_json`], with a digest at the end of the file, and returns the digest.
pub(crate) fn write_sealed(dir: &Path, name: &str, value: &impl Serialize) -> Result<String, StoreError> {
    let digest = write_sealed_soon(&dir.join(name), value, Sync::Now)?;
    sync_dir(dir)?;
    Ok(digest)
}

/// Whether to wait until a file is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    /// Waits until the file is on disk.
    Now,
    /// Does not wait, because the file can be recreated.
    Later,
}

/// Writes `value` as the JSON file `path`, atomically, with a digest at the end, and returns the digest.
pub(crate) fn write_sealed_soon(path: &Path, value: &impl Serialize, sync: Sync) -> Result<String, StoreError> {
    let (text, digest) = seal::sealed(value).map_err(|error| StoreError::io(Doing::Write, path, error.into()))?;
    place(path, &text, sync)?;
    Ok(digest)
}

/// Writes a file atomically: first under a temporary name, which is then changed to the final name.
fn place(path: &Path, text: &[u8], sync: Sync) -> Result<(), StoreError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let write = || {
        let mut file = File::create(&beside)?;
        file.write_all(text)?;
        if sync == Sync::Now {
            file.sync_all()?;
        }
        again(|| fs::rename(&beside, path))
    };
    write().map_err(StoreError::on(Doing::Write, path))
}

/// Removes a file that may be absent.
pub(crate) fn remove(path: &Path) -> Result<(), StoreError> {
    match again(|| fs::remove_file(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io(Doing::Remove, path, error)),
        _ => Ok(()),
    }
}

/// Creates a folder and its parents, unless they exist.
pub(crate) fn create_dir(dir: &Path) -> Result<(), StoreError> {
    again(|| fs::create_dir_all(dir)).map_err(StoreError::on(Doing::Write, dir))
}

/// Returns the names in a folder, sorted; empty if the folder does not exist. Names that are not
/// UTF-8 are skipped, because sweepline does not create any.
pub(crate) fn names(dir: &Path) -> Result<Vec<String>, StoreError> {
    let entries = match again(|| fs::read_dir(dir)) {
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
            match again(|| file.read(&mut buffer))? {
                0 => break,
                length => hasher.update(&buffer[..length]),
            }
        }
        Ok(hex(&hasher.finalize()))
    };
    read().map_err(StoreError::on(Doing::Read, path))
}

/// Exchanges two folders in one step. Returns false if the file system does not support this.
pub(crate) fn exchange(a: &Path, b: &Path) -> Result<bool, StoreError> {
    match retry_on_intr(|| renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(false),
        Err(errno) => Err(StoreError::io(Doing::Move, a, errno.into())),
    }
}

/// Whether anything exists at this path, even a dangling symbolic link.
pub(crate) fn is_taken(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_cannot_be_synced_is_no_loss_and_everything_else_is() {
        let survived: Vec<i32> =
            (1..200).filter(|errno| is_unsupported(&io::Error::from_raw_os_error(*errno))).collect();
        assert_eq!(survived, [Errno::INVAL.raw_os_error(), Errno::NOTSUP.raw_os_error()]);
        assert!(!is_unsupported(&io::Error::other("no number")));
    }

    #[test]
    fn an_interrupted_operation_is_repeated_and_a_failed_one_is_not() {
        for (errno, calls) in [(Errno::INTR, 3), (Errno::IO, 1), (Errno::NOSPC, 1)] {
            let mut called = 0;
            let done = again(|| {
                called += 1;
                if called < 3 { Err(io::Error::from(errno)) } else { Ok(()) }
            });
            assert_eq!((called, done.is_ok()), (calls, errno == Errno::INTR), "{errno:?}");
        }
    }
}
