//! Copies runs from a results folder to object storage.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use object_store::path::Path as Key;
use object_store::{Error, MultipartUpload as _, ObjectStoreExt as _};
use sha2::{Digest as _, Sha256};

use super::error::{Doing, ObjectError};
use super::{ObjectResults, keys};
use crate::store::error::{Doing as FolderDoing, StoreError};
use crate::store::folder::Folder;
use crate::store::hex::hex;
use crate::store::layout::{RUN_JSON, short};
use crate::store::record::{FileRecord, RunRecord};
use crate::store::{Listed, failpoint};

/// Size of the parts in which a file is sent, in bytes. S3 requires parts of at least 5 MiB, and allows at
/// most 10 000 parts.
const PART: usize = 16 * 1024 * 1024;
/// Maximum number of times that a commit is tried if the created object is missing when it is read back.
const LOOKS: u32 = 3;

/// The result of pushing a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// The run is now committed on the store.
    Committed {
        /// The number of bytes sent.
        bytes: u64,
    },
    /// The store already has the same result.
    There,
    /// The store already has another result of the same run, which remains committed. The pushed result is
    /// stored as an attempt.
    Second {
        /// The number of bytes sent.
        bytes: u64,
    },
}

impl ObjectResults {
    /// Pushes complete runs, and returns the result for each run, in order. The caller must have probed the
    /// store.
    ///
    /// Fails at the first run that cannot be sent. Runs that were pushed before remain committed, and
    /// another push continues with the remaining runs.
    pub fn push(&self, runs: &[&Listed]) -> Result<Vec<Pushed>, ObjectError> {
        let pushed = self.side_by_side(runs, &|run| self.push_one(&run.dir))?;
        let new = runs.iter().zip(&pushed).filter(|(_, pushed)| matches!(pushed, Pushed::Committed { .. }));
        let new: Vec<(String, PathBuf)> = new.map(|(run, _)| (run.id.clone(), run.dir.clone())).collect();
        self.pack(&new)?;
        Ok(pushed)
    }

    /// Pushes the run in the folder `dir`.
    pub(super) fn push_one(&self, dir: &Path) -> Result<Pushed, ObjectError> {
        let folder = Folder::open(dir)?;
        // All files are read through one open folder, so that they belong to one commit.
        let record = RunRecord::read_in(&folder)?;
        let text = folder.json(RUN_JSON)?;
        let id = short(&record.id);
        let digest = hex(&Sha256::digest(&text));
        if let Some(committed) = self.committed(id)?
            && committed == text
        {
            return Ok(Pushed::There);
        }
        let mut bytes = text.len() as u64;
        for (name, file) in &record.files {
            bytes += self.send(&folder, (name.as_str(), file), &self.key(&["rows", id, &digest, name]))?;
        }
        failpoint("before_shared_commit");
        for _ in 0..LOOKS {
            self.create(&self.key(&["runs", &keys::commit_of(id)]), &text)?;
            // The stored object decides whether the commit succeeded, not the response. The response to an
            // earlier attempt may have been lost, and if a store has let two writers create the same
            // object, it keeps the content from the second writer.
            match self.committed(id)? {
                Some(committed) if committed == text => return Ok(Pushed::Committed { bytes }),
                Some(_) => {
                    self.create(&self.key(&["attempts", &keys::attempt_of(id, &digest)]), &text)?;
                    return Ok(Pushed::Second { bytes });
                }
                None => {}
            }
        }
        let (key, why) =
            (self.key(&["runs", &keys::commit_of(id)]), "it exists for some requests and not for others".to_owned());
        Err(ObjectError::Failed { url: self.url.clone(), doing: Doing::Write, key: key.to_string(), why })
    }

    /// Returns the `run.json` that is committed on the store; `None` if there is no commit.
    pub(super) fn committed(&self, id: &str) -> Result<Option<Vec<u8>>, ObjectError> {
        self.get(&self.key(&["runs", &keys::commit_of(id)]))
    }

    /// Sends a file, and returns the number of bytes sent. If the store already has an object of the same
    /// size under this key, the file is not sent, because the key identifies the content. The copy of a shared run
    /// may lack such a file.
    fn send(&self, folder: &Folder, (name, listed): (&str, &FileRecord), key: &Key) -> Result<u64, ObjectError> {
        match self.wait(self.objects.head(key)) {
            Ok(found) if found.size == listed.bytes => return Ok(0),
            Ok(_) | Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(self.failed(Doing::Read, key, error)),
        }
        let (file, size) = folder.file(name)?;
        let path = folder.path().join(name);
        let part = || -> Result<Vec<u8>, ObjectError> {
            let mut bytes = Vec::with_capacity(PART.min(usize::try_from(size).unwrap_or(PART)));
            let read = (&file).take(PART as u64).read_to_end(&mut bytes);
            read.map_err(|error| StoreError::io(FolderDoing::Read, &path, error))?;
            Ok(bytes)
        };
        let first = part()?;
        let failed = |error| self.failed(Doing::Write, key, error);
        if first.len() < PART {
            self.wait(self.objects.put(key, first.into())).map_err(failed)?;
            return Ok(size);
        }
        let mut upload = self.wait(self.objects.put_multipart(key)).map_err(failed)?;
        let send_all = || {
            let mut bytes = first;
            while !bytes.is_empty() {
                self.wait(upload.put_part(bytes.into())).map_err(failed)?;
                bytes = part()?;
            }
            self.wait(upload.complete()).map_err(failed)
        };
        let sent = send_all();
        if sent.is_err() {
            // Errors are ignored, because the store eventually removes incomplete uploads.
            let _ = self.wait(upload.abort());
        }
        sent.map(|_| size)
    }
}
