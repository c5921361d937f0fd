//! The file systems from which the files of a plan are read.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A source of files: the disk, or a revision of a repository.
pub trait Files {
    /// The canonical path, without links and `..`, so that different paths to the same file become
    /// equal.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;

    /// The bytes of a file, or its first `most` bytes if it is larger.
    fn read(&self, path: &Path, most: usize) -> io::Result<Vec<u8>>;

    /// The local file at a canonical path, if this source is the local disk. It allows reading large
    /// files in parts.
    fn local(&self, _canonical: &Path) -> Option<PathBuf> {
        None
    }

    /// The names in a folder, for suggestions; empty if the folder cannot be read.
    fn names(&self, folder: &Path) -> Vec<String>;
}

/// The files of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

/// Maximum number of names to read from a folder.
const MOST_NAMES: usize = 1_000;

impl Files for Disk {
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        std::fs::canonicalize(if path.as_os_str().is_empty() { Path::new(".") } else { path })
    }

    fn read(&self, path: &Path, most: usize) -> io::Result<Vec<u8>> {
        if !std::fs::metadata(path)?.is_file() {
            // Reading from a pipe could block forever.
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut bytes = Vec::new();
        File::open(path)?.take(most as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn local(&self, canonical: &Path) -> Option<PathBuf> {
        Some(canonical.to_owned())
    }

    fn names(&self, folder: &Path) -> Vec<String> {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
        entries.flatten().take(MOST_NAMES).filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }
}
