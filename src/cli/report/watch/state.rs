//! The live state of a results folder: `live.json`, which is trusted only while the process that
//! wrote it has the folder locked.

use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::report::progress::{FORMAT, LiveFile};
use crate::store::{Moment, Store};

/// If the system does not list its locks, a state older than this many seconds is not trusted.
const OLD: i64 = 10;

/// Maximum size of a `live.json` that is read, in bytes. The file takes a few kilobytes for each active run.
const LARGEST: u64 = 1 << 20;

/// The live state of a results folder.
pub(super) enum Now {
    /// No sweep publishes a state.
    Nothing,
    /// A sweep is running.
    Running(Box<LiveFile>),
    /// The process of the sweep was killed; its last state remains.
    Stale(Box<LiveFile>),
    /// The state was written by a newer version, or is damaged.
    Unreadable(String),
}

impl Now {
    /// Reads the state.
    pub(super) fn of(store: &Store) -> Now {
        let path = store.layout().live();
        let state: LiveFile = match read(&path) {
            Ok(Some(state)) => state,
            Ok(None) => return Now::Nothing,
            Err(why) => return Now::Unreadable(why),
        };
        if state.format > FORMAT {
            return Now::Unreadable(format!(
                "{} was written by a newer sweepline (format {})",
                path.display(),
                state.format
            ));
        }
        let is_running = match (store.writing_process(), fs::exists("/proc/locks").unwrap_or(false)) {
            (Some(pid), _) => pid == state.pid,
            (None, true) => false,
            (None, false) => Moment::now().0.as_second() - state.written.0.as_second() <= OLD,
        };
        let state = Box::new(state);
        if is_running { Now::Running(state) } else { Now::Stale(state) }
    }
}

/// Returns the contents of the file; `None` if it does not exist.
fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, String> {
    let told = |error: &dyn std::fmt::Display| format!("{} cannot be read: {error}", path.display());
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        metadata => metadata.map_err(|error| told(&error))?,
    };
    if !metadata.is_file() || metadata.len() > LARGEST {
        return Err(told(&"not a small regular file"));
    }
    match fs::read(path) {
        // The file has been removed since its metadata was read.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        text => {
            let text = text.map_err(|error| told(&error))?;
            serde_json::from_slice(&text).map(Some).map_err(|error| told(&error))
        }
    }
}
