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
//! ```
//!
//! A kill between two steps leaves row files that no commit names; pushed again, the run goes on where it stopped. Reads check every byte
//! against the digests that `run.json` carries, as those of a folder do.
//!
//! **What this rests on:** that the store answers "create, if absent" truthfully (`If-None-Match: *` on S3). One that ignores it lets every
//! writer win. `probe` asks it so before anything is pushed, with writers side by side, and refuses a store in which more than one wins. That
//! finds stores that never look and most that look too late; it proves nothing of one that fails once a month.

mod address;
mod error;
mod keys;
mod probe;
mod pull;
mod push;

use std::future::Future;
use std::sync::Arc;

use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt as _};
use tokio::runtime::Runtime;

pub use error::ObjectError;
pub use pull::Pulled;
pub use push::Pushed;

use error::Doing;

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
        Ok(ObjectResults { objects, prefix, url: url.to_owned(), runtime })
    }

    /// The address as it was given.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The short ids of the runs that are committed there, sorted.
    pub fn runs(&self) -> Result<Vec<String>, ObjectError> {
        let folder = self.key(&["runs"]);
        let failed = |error| self.failed(Doing::List, &folder, error);
        let mut listed = self.objects.list(Some(&folder));
        let mut ids = Vec::new();
        // A page of a listing is asked for when the one before it was read.
        while let Some(found) = self.wait(futures_util::StreamExt::next(&mut listed)) {
            let found = found.map_err(failed)?;
            ids.extend(found.location.filename().and_then(keys::run_of).map(str::to_owned));
        }
        ids.sort_unstable();
        Ok(ids)
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
