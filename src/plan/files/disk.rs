//! Where the files of a plan are read from.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A place that has files: the disk, or a revision of a repository.
pub trait Files {
    /// The path without links and detours, so that two ways to one file are one path.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;

    /// The bytes of a file, or its first `most` bytes where it is larger.
    fn read(&self, path: &Path, most: usize) -> io::Result<Vec<u8>>;

    /// The file of this machine at a canonical path, where these are its files: large ones are not read at once.
    fn local(&self, _canonical: &Path) -> Option<PathBuf> {
        None
    }

    /// The names in a folder, to find out what was meant; empty where it cannot be read.
    fn names(&self, folder: &Path) -> Vec<String>;
}

/// The files of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

/// More names of a folder than this are not looked at.
const MOST_NAMES: usize = 1_000;

impl Files for Disk {
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        std::fs::canonicalize(if path.as_os_str().is_empty() { Path::new(".") } else { path })
    }

    fn read(&self, path: &Path, most: usize) -> io::Result<Vec<u8>> {
        if !std::fs::metadata(path)?.is_file() {
            // A pipe could keep the reader waiting for ever.
            return Err(io::Error::other("it is no regular file"));
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
