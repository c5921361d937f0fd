//! Stores calibrations, which are measurements of the load generator itself. Each calibration has its own
//! file, which is named after its start time and host.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{Doing, StoreError};
use super::{Moment, Store, Writer, disk, record};

/// The folder inside `calibrations/` for the rows and logs of a calibration in progress.
const SCRATCH: &str = ".scratch";
/// Maximum number of characters of the host's name in a file name.
const LONGEST_HOST: usize = 40;

impl Store {
    /// Returns the paths of all calibrations, latest first.
    pub fn calibrations(&self) -> Result<Vec<PathBuf>, StoreError> {
        let folder = self.layout().calibrations();
        let names = disk::names(&folder)?;
        Ok(names.iter().rev().filter(|name| name.ends_with(".json")).map(|name| folder.join(name)).collect())
    }

    /// Reads the calibration at `path`.
    pub fn calibration<T: DeserializeOwned>(&self, path: &Path) -> Result<T, StoreError> {
        record::read(path)
    }
}

impl Writer {
    /// Atomically stores a calibration that began at `started` on `host`, and returns the path of its file.
    pub fn keep_calibration(
        &self,
        started: Moment,
        host: &str,
        calibration: &impl Serialize,
    ) -> Result<PathBuf, StoreError> {
        let folder = self.calibrations()?;
        let name = file_name(started, host);
        disk::write_json(&folder, &name, calibration)?;
        Ok(folder.join(name))
    }

    /// Creates an empty folder on the same disk as the results. The folder is removed when the returned
    /// value is dropped. If a killed program left such a folder, its files are removed first.
    pub fn scratch(&self) -> Result<Scratch, StoreError> {
        let folder = self.calibrations()?.join(SCRATCH);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(StoreError::on(Doing::Remove, &folder))?;
        }
        disk::create_dir(&folder)?;
        Ok(Scratch { folder })
    }

    fn calibrations(&self) -> Result<PathBuf, StoreError> {
        let layout = self.store().layout();
        let folder = layout.calibrations();
        if !folder.exists() {
            disk::create_dir(&folder)?;
            disk::sync_dir(layout.root())?;
        }
        Ok(folder)
    }
}

/// A temporary folder, which is removed when this value is dropped.
#[derive(Debug)]
pub struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    /// Returns the path of the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // An error is ignored, because the next calibration removes any remaining files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Returns a file name like `20261121T145738.123Z-host.json`. These names sort by time and contain no
/// characters that some file systems reject.
fn file_name(started: Moment, host: &str) -> String {
    let time: String = format!("{:.3}", started.0).chars().filter(|c| !"-:".contains(*c)).collect();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let host: String = host.chars().take(LONGEST_HOST).map(plain).collect();
    format!("{time}-{host}.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_of_time_and_safe() {
        let at = |text: &str| Moment(text.parse().unwrap());
        let name = file_name(at("2026-11-21T14:57:38.1239Z"), "node/../a:1");
        assert_eq!(name, "20261121T145738.123Z-node_.._a_1.json");
        assert!(file_name(at("2026-11-21T14:57:38Z"), "z") < name, "a whole second has its zeros");
    }

    #[test]
    fn they_are_kept_whole_and_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let writer = Store::lock(dir.path()).unwrap();
        let store = writer.store();
        assert_eq!(store.calibrations().unwrap(), Vec::<PathBuf>::new());
        let keep = |time: &str, value: u32| {
            let value = serde_json::json!({ "format": 1, "value": value });
            writer.keep_calibration(Moment(time.parse().unwrap()), "host", &value).unwrap()
        };
        let (late, early) = (keep("2026-11-21T15:00:00Z", 2), keep("2026-11-21T14:00:00Z", 1));
        std::fs::write(store.layout().calibrations().join("20261122.json.new"), "half").unwrap();
        assert_eq!(store.calibrations().unwrap(), [late.clone(), early]);
        let read: serde_json::Value = store.calibration(&late).unwrap();
        assert_eq!(read["value"], 2);
    }

    #[test]
    fn scratch_is_empty_and_goes() {
        let dir = tempfile::tempdir().unwrap();
        let writer = Store::lock(dir.path()).unwrap();
        let left = writer.store().layout().calibrations().join(SCRATCH);
        std::fs::create_dir_all(&left).unwrap();
        std::fs::write(left.join("log"), "of a killed program").unwrap();
        let scratch = writer.scratch().unwrap();
        assert_eq!(std::fs::read_dir(scratch.folder()).unwrap().count(), 0);
        drop(scratch);
        assert!(!left.exists());
    }
}
