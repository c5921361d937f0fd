//! Results on object storage: the same commit, shared by many.
//!
//! A run is committed by creating `runs/<id>.json`, the bytes of its `run.json`, which a store allows once: of two that commit the same run one
//! wins, and the other one's result is kept as an attempt. Its row files lie under `rows/<id>/<digest>/`, named by the digest of that very
//! `run.json`, so two writers never write one object, and what is uploaded twice is the same. They are there before the commit is.
//!
//! ```text
//! runs/<id>.json                    the commit; created once, never changed
//! rows/<id>/<digest>/<file>         the row files of the run.json with that digest
//! attempts/<id>.<digest>.json       a run.json that came second; its rows are kept too
//! claims/<id>/<epoch>.json          who is measuring a run (`claims`)
//! packs/<digest>.json               many commits in one object (`packs`)
//! ```
//!
//! A results folder may be a copy of them (`remote`): it has the `run.json`s, and row files when somebody reads them.
//!
//! A kill between two steps leaves row files that no commit names; pushed again, the run goes on where it stopped. Reads check every byte
//! against the digests that `run.json` carries, as those of a folder do.
//!
//! **What this rests on:** that the store answers "create, if absent" truthfully (`If-None-Match: *` on S3). One that ignores it lets every
//! writer win. `probe` asks it so before anything is pushed, with writers side by side, and refuses a store in which more than one wins. That
//! finds stores that never look and most that look too late; it proves nothing of one that fails once a month.

mod address;
mod claims;
mod error;
mod held;
mod keys;
mod packs;
mod probe;
mod pull;
mod push;
mod remote;

use std::collections::HashMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use object_store::path::Path as Key;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _};
use tokio::runtime::Runtime;

pub use error::ObjectError;
pub use pull::Pulled;
pub use push::Pushed;

use error::Doing;
use held::Claims;

use crate::units::NonceSeed;

/// How many runs are sent or fetched side by side.
const SIDE_BY_SIDE: usize = 8;

/// Results on object storage.
#[derive(Debug)]
pub struct ObjectResults {
    objects: Arc<dyn ObjectStore>,
    /// What stands before every key.
    prefix: Key,
    /// The address as it was given.
    url: String,
    /// The runs that this process has taken.
    claims: Claims,
    /// Set when something shows signs of life for them.
    alive: OnceLock<()>,
    /// Runs that were not committed there, each with when that was asked.
    absent: Mutex<HashMap<String, Instant>>,
    /// Runs that this process has committed there and that are in no pack yet, each with its folder.
    committed: Mutex<Vec<(String, PathBuf)>>,
    runtime: Runtime,
}

impl ObjectResults {
    /// The results at `url`: `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix` or `file:///folder`. Credentials come from the
    /// environment (`AWS_…`, `GOOGLE_…`, `AZURE_…`); an address that holds one is refused. Nothing is sent yet.
    pub fn open(url: &str) -> Result<ObjectResults, ObjectError> {
        let (objects, prefix) = address::connect(url)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(ObjectError::NoThread)?;
        let digits = NonceSeed::random().map_err(ObjectError::NoThread)?.to_string();
        Ok(ObjectResults {
            objects,
            prefix,
            url: url.to_owned(),
            claims: Claims::of(&digits),
            alive: OnceLock::new(),
            absent: Mutex::default(),
            committed: Mutex::default(),
            runtime,
        })
    }

    /// The address as it was given.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The short ids of the runs that are committed there, sorted.
    pub fn runs(&self) -> Result<Vec<String>, ObjectError> {
        let mut ids = Vec::new();
        self.each_run(|id| ids.push(id.to_owned()))?;
        ids.sort_unstable();
        Ok(ids)
    }

    /// Tells the short id of every run that is committed there.
    fn each_run(&self, mut tell: impl FnMut(&str)) -> Result<(), ObjectError> {
        self.each(&self.key(&["runs"]), |found| {
            if let Some(id) = found.location.filename().and_then(keys::run_of) {
                tell(id);
            }
        })
    }

    /// Tells every object of a folder, page by page: the next page is asked for when the one before it was told.
    fn each(&self, folder: &Key, mut tell: impl FnMut(ObjectMeta)) -> Result<(), ObjectError> {
        let mut listed = self.objects.list(Some(folder));
        while let Some(found) = self.wait(futures_util::StreamExt::next(&mut listed)) {
            tell(found.map_err(|error| self.failed(Doing::List, folder, error))?);
        }
        Ok(())
    }

    /// All bytes of an object; none where there is none.
    fn get(&self, key: &Key) -> Result<Option<Vec<u8>>, ObjectError> {
        let got = self.wait(async { self.objects.get(key).await?.bytes().await });
        match got {
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(Doing::Read, key, error)),
        }
    }

    fn key(&self, parts: &[&str]) -> Key {
        parts.iter().fold(self.prefix.clone(), |key, part| key.join(*part))
    }

    fn failed(&self, doing: Doing, key: &Key, source: object_store::Error) -> ObjectError {
        ObjectError::of(&self.url, doing, key, source)
    }

    /// Waits for what is asked of the store. Threads may wait side by side.
    fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// What `work` makes of each item, several side by side, in their order; the first error ends it.
    fn side_by_side<T: Sync, R: Send>(
        &self,
        items: &[T],
        work: &(impl Fn(&T) -> Result<R, ObjectError> + Sync),
    ) -> Result<Vec<R>, ObjectError> {
        use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
        let (next, has_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let worker = || {
            let mut done = Vec::new();
            while !has_failed.load(Ordering::Relaxed) {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(at) else { break };
                let made = work(item);
                has_failed.fetch_or(made.is_err(), Ordering::Relaxed);
                done.push((at, made));
            }
            done
        };
        let mut done = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..SIDE_BY_SIDE.min(items.len())).map(|_| scope.spawn(worker)).collect();
            let joined = workers
                .into_iter()
                .flat_map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            joined.collect::<Vec<_>>()
        });
        done.sort_by_key(|(at, _)| *at);
        done.into_iter().map(|(_, made)| made).collect()
    }
}
