//! Implements shared results on object storage.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::Path;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use object_store::ObjectStoreExt as _;

use super::ObjectResults;
use super::error::{Doing, ObjectError};
use super::keys::commit_of;
use super::push::Pushed;
use crate::store::adopt::{adopt, adopt_copy, fetched};
use crate::store::disk;
use crate::store::error::StoreError;
use crate::store::layout::{Layout, RUN_JSON};
use crate::store::record::RunRecord;
use crate::store::remote::{Remote, SHARED, Standing, shared, unsent};

/// Maximum number of runs that are requested one by one. For more runs, the objects in the store are
/// listed.
const ONE_BY_ONE: usize = 128;
/// How long to wait before checking again whether a run has been committed.
const MOMENT: Duration = Duration::from_secs(3);

impl Remote for ObjectResults {
    fn url(&self) -> &str {
        self.url()
    }

    fn refresh(&self, layout: &Layout, wanted: Option<&BTreeSet<String>>) -> Result<(), StoreError> {
        for folder in [layout.runs(), layout.attempts(), layout.superseded(), layout.inventory()] {
            fs::create_dir_all(&folder).map_err(StoreError::on(crate::store::error::Doing::Write, &folder))?;
        }
        Ok(self.refresh_copies(layout, wanted)?)
    }

    fn vanished(&self, layout: &Layout, wanted: Option<&BTreeSet<String>>) -> Result<Vec<String>, StoreError> {
        let mut here = shared(layout)?;
        here.retain(|id| wanted.is_none_or(|wanted| wanted.contains(id)));
        Ok(self.not_committed(here)?)
    }

    fn fetch(&self, layout: &Layout, record: &RunRecord, name: &str) -> Result<(), StoreError> {
        Ok(self.fetch_file(&layout.run(&record.id), record, name)?)
    }

    fn begin(&self, layout: &Layout) -> Result<(), StoreError> {
        self.probe()?;
        let unsent = unsent(layout)?;
        self.side_by_side(&unsent, &|id| self.commit_one(layout, id))?;
        Ok(())
    }

    fn commit(&self, layout: &Layout, id: &str) -> Result<(), StoreError> {
        Ok(self.commit_one(layout, id)?)
    }

    fn claim(&self, layout: &Layout, id: &str, server: Option<&str>) -> Result<Standing, StoreError> {
        // The commit is checked first, so that a worker needs only one request to skip a run that another
        // worker has committed.
        if let Some(text) = self.committed(id)? {
            self.copy(layout, id, &text)?;
            return Ok(Standing::Committed);
        }
        // The server is claimed before the run, because a worker that cannot use the server must not claim
        // the run.
        if let Some(server) = server
            && !self.take_server(server)?
        {
            return Ok(Standing::Taken);
        }
        if !self.take(id)? {
            return Ok(Standing::Taken);
        }
        // The commit is checked again, because the worker that previously claimed the run may have
        // committed it in the meantime.
        let Some(text) = self.committed(id)? else { return Ok(Standing::Open) };
        self.copy(layout, id, &text)?;
        self.forget_claims(id);
        Ok(Standing::Committed)
    }

    fn look(&self, layout: &Layout, id: &str, server: Option<&str>) -> Result<Standing, StoreError> {
        if let Some(text) = self.committed(id)? {
            self.copy(layout, id, &text)?;
            return Ok(Standing::Committed);
        }
        let is_taken = match server {
            Some(server) if self.is_server_taken(server)? => true,
            _ => self.is_taken(id)?,
        };
        Ok(if is_taken { Standing::Taken } else { Standing::Open })
    }

    fn damaged(&self) -> Result<Vec<String>, StoreError> {
        Ok(self.bad_packs()?)
    }

    fn release(&self) {
        self.give_back();
        let committed = std::mem::take(&mut *self.committed.lock().unwrap_or_else(PoisonError::into_inner));
        // Errors are ignored, because runs that are not in a pack can be fetched separately.
        let _ = self.pack(&committed);
    }
}

impl ObjectResults {
    fn refresh_copies(&self, layout: &Layout, wanted: Option<&BTreeSet<String>>) -> Result<(), ObjectError> {
        let is_absent = |id: &str| !disk::is_taken(&layout.run(id).join(RUN_JSON));
        let missing: Option<BTreeSet<String>> = wanted
            .map(|wanted| wanted.iter().filter(|id| is_absent(id) && !self.was_just_absent(id)).cloned().collect());
        let copy_one = |id: &String| {
            let text = self.committed(id)?;
            match &text {
                Some(text) => self.copy(layout, id, text)?,
                None => self.note_absent(id),
            }
            Ok(())
        };
        let fetch_all = |ids: BTreeSet<String>| self.side_by_side(&Vec::from_iter(ids), &copy_one).map(drop);
        let Some(mut missing) = missing else {
            let mut listed = BTreeSet::new();
            self.each_run(|id| listed.extend(is_absent(id).then(|| id.to_owned())))?;
            self.unpack_many(layout, &mut listed)?;
            return fetch_all(listed);
        };
        // The packs are checked first, because runs in a pack are committed. The whole store is listed only
        // if more than a few runs are not in any pack.
        self.unpack_many(layout, &mut missing)?;
        if missing.len() > ONE_BY_ONE {
            let mut listed = BTreeSet::new();
            self.each_run(|id| listed.extend(missing.take(id)))?;
            missing.iter().for_each(|id| self.note_absent(id));
            missing = listed;
        }
        fetch_all(missing)
    }

    /// Returns those of the runs (short ids) that are not committed on the store.
    fn not_committed(&self, ids: Vec<String>) -> Result<Vec<String>, ObjectError> {
        if ids.len() > ONE_BY_ONE {
            let mut listed = HashSet::new();
            self.each_run(|id| listed.extend([id.to_owned()]))?;
            return Ok(ids.into_iter().filter(|id| !listed.contains(id)).collect());
        }
        let is_missing = |id: &String| {
            let key = self.key(&["runs", &commit_of(id)]);
            match self.wait(self.objects.head(&key)) {
                Ok(_) => Ok(false),
                Err(object_store::Error::NotFound { .. }) => Ok(true),
                Err(error) => Err(self.failed(Doing::Read, &key, error)),
            }
        };
        let missing = self.side_by_side(&ids, &is_missing)?;
        Ok(ids.into_iter().zip(missing).filter_map(|(id, is_missing)| is_missing.then_some(id)).collect())
    }

    /// Copies missing commits from packs, if more than a few commits are missing.
    fn unpack_many(&self, layout: &Layout, missing: &mut BTreeSet<String>) -> Result<(), ObjectError> {
        match missing.len() > ONE_BY_ONE {
            true => self.unpack(layout, missing, &|id, text| self.copy(layout, id, text)),
            false => Ok(()),
        }
    }

    fn note_absent(&self, id: &str) {
        self.absent.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned(), Instant::now());
    }

    fn was_just_absent(&self, id: &str) -> bool {
        let absent = self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        absent.get(id).is_some_and(|asked| asked.elapsed() < MOMENT)
    }

    /// Sends a run of the folder to the store. If the store already has another result of the run, the
    /// folder is updated to that result.
    fn commit_one(&self, layout: &Layout, id: &str) -> Result<(), ObjectError> {
        let dir = layout.run(id);
        match self.push_one(&dir)? {
            Pushed::Committed { .. } | Pushed::There => mark(&dir)?,
            Pushed::Second { .. } => {
                let text = self.committed(id)?.ok_or_else(|| self.gone(id))?;
                self.replace(layout, id, &text)?;
            }
        }
        self.committed.lock().unwrap_or_else(PoisonError::into_inner).push((id.to_owned(), dir));
        self.forget_claims(id);
        Ok(())
    }

    fn gone(&self, id: &str) -> ObjectError {
        let (url, key) = (self.url.clone(), self.key(&["runs", id]).to_string());
        ObjectError::Failed { url, doing: Doing::Read, key, why: "it existed a moment ago".to_owned() }
    }

    /// Adds a commit to the folder: its `run.json` and the marker file.
    fn copy(&self, layout: &Layout, id: &str, text: &[u8]) -> Result<(), ObjectError> {
        let dir = layout.run(id);
        match fs::read(dir.join(RUN_JSON)) {
            Ok(here) if here == text => mark(&dir),
            Ok(_) => self.replace(layout, id, text),
            Err(_) if disk::is_taken(&dir) => self.replace(layout, id, text),
            Err(_) => {
                let record = self.checked(id, text)?;
                let copy = self.copied(layout, id, text)?;
                Ok(adopt_copy(layout, &copy, &record)?)
            }
        }
    }

    /// Replaces the folder's result of a run by the commit. The old result is moved to `superseded/`.
    fn replace(&self, layout: &Layout, id: &str, text: &[u8]) -> Result<(), ObjectError> {
        let record = self.checked(id, text)?;
        let copy = self.copied(layout, id, text)?;
        Ok(adopt(layout, &copy, &record)?)
    }

    /// Creates a new folder with a `run.json` and the marker file.
    fn copied(&self, layout: &Layout, id: &str, text: &[u8]) -> Result<std::path::PathBuf, ObjectError> {
        let dir = fetched(layout, id)?;
        let path = dir.join(RUN_JSON);
        fs::write(&path, text).map_err(|error| StoreError::cannot_write(&path, error))?;
        mark(&dir)?;
        Ok(dir)
    }
}

/// Creates the marker file in `dir`, which marks the run as shared.
fn mark(dir: &Path) -> Result<(), ObjectError> {
    let path = dir.join(SHARED);
    let made = fs::OpenOptions::new().create(true).append(true).open(&path);
    Ok(made.map(drop).map_err(|error| StoreError::cannot_write(&path, error))?)
}
