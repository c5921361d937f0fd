//! Copies runs from object storage to a results folder.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use object_store::ObjectStoreExt as _;
use sha2::{Digest as _, Sha256};

use super::error::{Doing, ObjectError};
use super::{ObjectResults, keys};
use crate::store::adopt::{adopt, fetched};
use crate::store::error::{Doing as FolderDoing, StoreError};
use crate::store::hex::hex;
use crate::store::layout::{RUN_JSON, short};
use crate::store::record::{FileRecord, RunRecord};
use crate::store::{State, Writer, disk, failpoint, folder};

/// Size of the parts in which a file is fetched, in bytes.
const PART: u64 = 16 * 1024 * 1024;

/// The result of pulling a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pulled {
    /// The run is now committed in the folder.
    Committed {
        /// The number of bytes fetched.
        bytes: u64,
    },
    /// The folder already has the same result.
    There,
    /// The folder has another result of the same run, which is kept.
    Other,
    /// The run is not committed on the store.
    Missing,
}

impl ObjectResults {
    /// Pulls these runs (short ids) into a results folder. The files of each run are checked against the
    /// digests in its `run.json` before the run is committed. Damaged local runs are replaced. Returns the
    /// result for each run, in order.
    ///
    /// Fails at the first run that cannot be fetched. Runs that were pulled before remain committed, and
    /// another pull continues with the remaining runs.
    pub fn pull(&self, writer: &Writer, ids: &[String]) -> Result<Vec<Pulled>, ObjectError> {
        self.side_by_side(ids, &|id| self.pull_one(writer, id))
    }

    fn pull_one(&self, writer: &Writer, id: &str) -> Result<Pulled, ObjectError> {
        let Some(text) = self.committed(id)? else { return Ok(Pulled::Missing) };
        let digest = hex(&Sha256::digest(&text));
        let here = writer.store().run(id)?.filter(|listed| !matches!(listed.state, State::Corrupt(_)));
        if let Some(here) = here {
            let is_same = fs::read(here.dir.join(RUN_JSON)).is_ok_and(|here| here == text);
            return Ok(if is_same { Pulled::There } else { Pulled::Other });
        }
        let record = self.checked(id, &text)?;
        let layout = writer.store().layout();
        let dir = fetched(layout, id)?;
        let mut bytes = text.len() as u64;
        for (name, file) in &record.files {
            self.fetch(&dir.join(name), file, &["rows", id, &digest, name])?;
            bytes += file.bytes;
        }
        // `run.json` is written last, as in every commit, because a folder with a `run.json` must be
        // complete.
        write(&dir.join(RUN_JSON), |file| Ok(file.write_all(&text)?))?;
        disk::sync_dir(&dir)?;
        failpoint("before_adoption");
        adopt(layout, &dir, &record)?;
        Ok(Pulled::Committed { bytes })
    }

    /// Parses the content of a commit. Fails if it is damaged or does not belong to the run `id`.
    pub(super) fn checked(&self, id: &str, text: &[u8]) -> Result<RunRecord, ObjectError> {
        let key = self.key(&["runs", &keys::commit_of(id)]).to_string();
        let damaged = |reason: String| ObjectError::Damaged { url: self.url.clone(), key: key.clone(), reason };
        let record = match RunRecord::of_text(Path::new(&key), text) {
            Err(StoreError::Damaged { reason, .. }) => return Err(damaged(reason)),
            record => record?,
        };
        if short(&record.id) != id {
            return Err(damaged(format!("it belongs to run {}", short(&record.id))));
        }
        // The names in the record are used as file names here, so they must be safe.
        let is_name = |name: &String| !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0']);
        match record.files.keys().find(|name| !is_name(name) || *name == RUN_JSON) {
            Some(name) => Err(damaged(format!("it lists {name:?}, which is not a file of a run"))),
            None => Ok(record),
        }
    }

    /// Fetches a row file of the commit in `dir`. The file appears only once it is complete.
    pub(super) fn fetch_file(&self, dir: &Path, record: &RunRecord, name: &str) -> Result<(), ObjectError> {
        let id = short(&record.id);
        let text = folder::json(&dir.join(RUN_JSON))?;
        // The file must belong to the `run.json` in the folder, which may have changed since `record` was
        // read.
        let found = self.checked(id, &text)?;
        let Some(file) = found.files.get(name) else {
            let dir = dir.to_owned();
            return Err(StoreError::Gone { dir }.into());
        };
        let beside = dir.join(format!(".{name}.{}", std::process::id()));
        let fetched = self.fetch(&beside, file, &["rows", id, &hex(&Sha256::digest(&text)), name]);
        let placed = fetched.and_then(|()| {
            let path = dir.join(name);
            Ok(fs::rename(&beside, &path).map_err(StoreError::on(FolderDoing::Move, &path))?)
        });
        if placed.is_err() {
            let _ = fs::remove_file(&beside);
        }
        placed
    }

    /// Fetches a file in parts, and checks it against its size and digest.
    fn fetch(&self, path: &Path, file: &FileRecord, key: &[&str]) -> Result<(), ObjectError> {
        let key = self.key(key);
        let damaged = |reason: String| ObjectError::Damaged { url: self.url.clone(), key: key.to_string(), reason };
        let mut hasher = Sha256::new();
        write(path, |out| {
            let mut at = 0;
            while at < file.bytes {
                let until = file.bytes.min(at + PART);
                let part = match self.patiently(|| self.wait(self.objects.get_range(&key, at..until))) {
                    Err(object_store::Error::NotFound { .. }) => return Err(damaged("it is missing".to_owned()).into()),
                    part => part.map_err(|error| self.failed(Doing::Read, &key, error))?,
                };
                if part.is_empty() {
                    return Err(damaged(format!("it has {at} bytes, run.json states {}", file.bytes)).into());
                }
                hasher.update(&part);
                out.write_all(&part)?;
                at += part.len() as u64;
            }
            Ok(())
        })?;
        match hex(&hasher.finalize()) == file.sha256 {
            true => Ok(()),
            false => Err(damaged("its SHA-256 does not match the one in run.json".to_owned())),
        }
    }
}

/// Why a file could not be written: an error of the local disk (`Here`) or of the store (`There`).
enum Stop {
    Here(std::io::Error),
    There(ObjectError),
}

/// Creates a file, lets `fill` write it, and syncs it to disk.
fn write(path: &Path, fill: impl FnOnce(&mut File) -> Result<(), Stop>) -> Result<(), ObjectError> {
    let written = File::create(path).map_err(Stop::Here).and_then(|mut file| {
        fill(&mut file)?;
        file.sync_all().map_err(Stop::Here)
    });
    written.map_err(|stop| match stop {
        Stop::Here(error) => StoreError::io(FolderDoing::Write, path, error).into(),
        Stop::There(error) => error,
    })
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Stop {
        Stop::Here(error)
    }
}

impl From<ObjectError> for Stop {
    fn from(error: ObjectError) -> Stop {
        Stop::There(error)
    }
}
