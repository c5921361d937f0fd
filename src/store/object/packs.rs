//! Packs contain many commits in one object, so that a reader that lacks many commits does not have to
//! fetch each of them separately.
//!
//! ```text
//! packs/<digest>.json      the run.json files of up to 1000 commits, named after its SHA-256; never changed
//! ```
//!
//! A process that has committed many runs writes packs of these commits at the end. A pack is never
//! rewritten, and no result depends on it: a run is committed if the object `runs/<id>.json` exists, and a
//! run that is not in any pack is fetched from that object.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use object_store::path::Path as Key;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::ObjectResults;
use super::error::ObjectError;
use super::unpack;
use crate::store::error::{Doing, StoreError};
use crate::store::hex::hex;
use crate::store::layout::{Layout, RUN_JSON};
use crate::store::record::FORMAT;

/// Maximum number of commits in a pack.
const MOST: usize = 1000;
/// Minimum number of new commits for which packs are written.
const WORTH: usize = 100;

/// The content of a pack.
#[derive(Serialize)]
struct Pack {
    format: u32,
    /// The text of each `run.json`, by the run's short id.
    runs: BTreeMap<String, String>,
}

impl ObjectResults {
    /// Writes packs of these commits, if there are enough of them. Each commit is given by the run's short
    /// id and the folder of its `run.json`.
    pub(super) fn pack(&self, commits: &[(String, PathBuf)]) -> Result<(), ObjectError> {
        if commits.len() < WORTH {
            return Ok(());
        }
        for commits in commits.chunks(MOST) {
            let mut runs = BTreeMap::new();
            for (id, dir) in commits {
                let path = dir.join(RUN_JSON);
                let text = fs::read_to_string(&path).map_err(|error| StoreError::io(Doing::Read, &path, error))?;
                runs.insert(id.clone(), text);
            }
            let text = serde_json::to_vec(&Pack { format: FORMAT, runs }).unwrap_or_default();
            self.create(&self.key(&["packs", &format!("{}.json", hex(&Sha256::digest(&text)))]), &text)?;
        }
        Ok(())
    }

    /// Calls `take` for each commit in a pack whose id is in `missing`, and removes the id from `missing`.
    /// Packs that cannot be read are skipped.
    pub(super) fn unpack(
        &self,
        layout: &Layout,
        missing: &mut BTreeSet<String>,
        take: &(impl Fn(&str, &[u8]) -> Result<(), ObjectError> + Sync),
    ) -> Result<(), ObjectError> {
        let mut packs = Vec::new();
        self.each(&self.key(&["packs"]), |found| packs.push(found.location))?;
        let still = Mutex::new(std::mem::take(missing));
        let strike_out = |id: &str| still.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        let one = |key: &Key| {
            let Some(name) = name(key) else { return Ok(()) };
            let index = layout.root().join("packs").join(name);
            if let Ok(known) = fs::read_to_string(&index) {
                let still = still.lock().unwrap_or_else(PoisonError::into_inner);
                if !known.lines().any(|id| still.contains(id)) {
                    return Ok(());
                }
            }
            let Some(text) = self.get(key)? else { return Ok(()) };
            if hex(&Sha256::digest(&text)) != name {
                return Ok(());
            }
            let mut ids = Vec::new();
            let is_read = unpack::each(&text, |id, text| {
                let taken = if strike_out(&id) { take(&id, text.as_bytes()) } else { Ok(()) };
                ids.push(id);
                taken
            })?;
            if is_read {
                keep_index(&index, &ids);
            }
            Ok(())
        };
        let done = self.side_by_side(&packs, &one);
        *missing = still.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.map(drop)
    }

    /// Returns the keys of the packs that readers skip because their content does not match their name.
    pub(super) fn bad_packs(&self) -> Result<Vec<String>, ObjectError> {
        let mut packs = Vec::new();
        self.each(&self.key(&["packs"]), |found| packs.push(found.location))?;
        let one = |key: &Key| {
            let is_whole = |text: &Vec<u8>| name(key) == Some(hex(&Sha256::digest(text)).as_str());
            Ok(self.get(key)?.filter(|text| !is_whole(text)).map(|_| key.to_string()))
        };
        Ok(self.side_by_side(&packs, &one)?.into_iter().flatten().collect())
    }
}

/// Returns the digest in a pack's key; `None` if this is not the key of a pack.
fn name(key: &Key) -> Option<&str> {
    key.filename().and_then(|name| name.strip_suffix(".json"))
}

/// Records in a local file which runs a pack contains. Errors are ignored, because the pack can be fetched
/// again later.
fn keep_index(path: &Path, ids: &[String]) {
    let text: String = ids.iter().flat_map(|id| [id.as_str(), "\n"]).collect();
    let beside = path.with_extension(std::process::id().to_string());
    let made = path.parent().is_some_and(|folder| fs::create_dir_all(folder).is_ok());
    if !made || fs::write(&beside, text).and_then(|()| fs::rename(&beside, path)).is_err() {
        let _ = fs::remove_file(&beside);
    }
}
