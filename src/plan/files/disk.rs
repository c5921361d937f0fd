//! The file systems from which the files of a plan are read.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::units::regular_file;

/// A source of files: the disk, or a revision of a repository.
pub trait Files {
    /// The canonical path, without links and `..`. It is the same for all paths to one file.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;

    /// The bytes of a file, or its first `most` bytes if it is larger.
    fn read(&self, path: &Path, most: usize) -> io::Result<Vec<u8>>;

    /// The path of the local file at a canonical path, which can be read in parts; `None` if this source is
    /// not the local disk.
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
        let mut bytes = Vec::new();
        regular_file::open(path)?.take(most as u64).read_to_end(&mut bytes)?;
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
