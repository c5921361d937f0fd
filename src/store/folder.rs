//! A folder that is held open, and the files in it that can be read safely.
//!
//! Everything that is read through an open folder belongs to one commit, even if the folder is moved in
//! the meantime. A file is checked before it is opened. A pipe, a device or a folder in place of a file is
//! rejected, so that it cannot block.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

use super::error::{Doing, StoreError};

/// The maximum size of a JSON file of the store, in bytes. Records take a few kilobytes.
const MOST_JSON: u64 = 64 * 1024 * 1024;

/// A folder that is held open.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    fd: OwnedFd,
}

impl Folder {
    /// Opens the folder at `path`.
    pub(super) fn open(path: &Path) -> Result<Folder, StoreError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = openat(CWD, path, flags, Mode::empty()).map_err(|errno| refused(path, errno))?;
        Ok(Folder { path: path.to_owned(), fd })
    }

    /// Returns the path that the folder had when it was opened.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the metadata of the file at `name`, a path below the folder; `None` if there is no such file.
    pub(super) fn look(&self, name: &str) -> rustix::io::Result<Option<Stat>> {
        match statat(&self.fd, name, AtFlags::empty()) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Returns the size of the regular file `name`.
    pub(super) fn size(&self, name: &str) -> Result<u64, StoreError> {
        let path = self.path.join(name);
        let found = statat(&self.fd, name, AtFlags::empty()).map_err(|errno| refused(&path, errno))?;
        regular(&path, &found)
    }

    /// Opens the regular file `name`, and returns it with its size.
    pub(super) fn file(&self, name: &str) -> Result<(File, u64), StoreError> {
        self.size(name)?;
        let path = self.path.join(name);
        // If another kind of entry has replaced the file since, it must not block and must not
        // become our controlling terminal.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let fd = openat(&self.fd, name, flags, Mode::empty()).map_err(|errno| refused(&path, errno))?;
        let found = fstat(&fd).map_err(|errno| refused(&path, errno))?;
        let size = regular(&path, &found)?;
        Ok((File::from(fd), size))
    }

    /// Returns the bytes of the JSON file `name`.
    pub(super) fn json(&self, name: &str) -> Result<Vec<u8>, StoreError> {
        let (file, size) = self.file(name)?;
        let path = self.path.join(name);
        let too_large = |size: u64| StoreError::Damaged {
            path: path.clone(),
            reason: format!("it has {size} bytes, more than the limit of {MOST_JSON}"),
        };
        if size > MOST_JSON {
            return Err(too_large(size));
        }
        let mut text = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
        file.take(MOST_JSON + 1).read_to_end(&mut text).map_err(StoreError::on(Doing::Read, &path))?;
        if text.len() as u64 > MOST_JSON { Err(too_large(text.len() as u64)) } else { Ok(text) }
    }
}

/// Returns the size of an entry, if it is a regular file.
fn regular(path: &Path, found: &Stat) -> Result<u64, StoreError> {
    let kind = match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => return Ok(u64::try_from(found.st_size).unwrap_or(0)),
        FileType::Directory => "a folder",
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Symlink | FileType::Unknown => "of another kind",
    };
    Err(StoreError::Damaged { path: path.to_owned(), reason: format!("it is {kind}, not a regular file") })
}

/// Converts the operating system's error. Circular links count as damage, because no permission
/// fixes them.
fn refused(path: &Path, errno: Errno) -> StoreError {
    match errno {
        Errno::LOOP => {
            StoreError::Damaged { path: path.to_owned(), reason: "it is a symbolic link to itself".to_owned() }
        }
        Errno::NOTDIR => StoreError::Damaged { path: path.to_owned(), reason: "it is not a folder".to_owned() },
        errno => StoreError::io(Doing::Read, path, io::Error::from(errno)),
    }
}

/// Reads the JSON file at `path` with the same limits.
pub(super) fn json(path: &Path) -> Result<Vec<u8>, StoreError> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Err(StoreError::io(Doing::Read, path, io::ErrorKind::InvalidInput.into()));
    };
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    Folder::open(dir)?.json(name)
}
