//! Results on object storage, which many workers can share. Runs are committed much as they are in a
//! folder.
//!
//! A run is committed by creating `runs/<id>.json`, with the bytes of its `run.json`. A store allows this
//! only once: if two writers commit the same run, one succeeds, and the other's result is kept as an
//! attempt. Row files are stored under `rows/<id>/<digest>/`, where `<digest>` is the digest of the
//! `run.json`. Two writers therefore never write different content to the same object. Row files are
//! uploaded before the commit.
//!
//! ```text
//! runs/<id>.json                    the commit; created once, never changed
//! rows/<id>/<digest>/<file>         the row files of the run.json with that digest
//! attempts/<id>.<digest>.json       a run.json that came second; its rows are kept too
//! claims/<id>/<epoch>.json          who is measuring a run (`claims`)
//! packs/<digest>.json               many commits in one object (`packs`)
//! ```
//!
//! A results folder may be a copy of these shared results (`remote`). The copy contains every
//! `run.json`; row files are fetched when they are read.
//!
//! A kill during an upload leaves row files that no commit refers to; the next push resumes the upload. All
//! data that is read is checked against the digests in `run.json`, as in a folder.
//!
//! **Assumption:** the store implements "create if absent" correctly (`If-None-Match: *` on S3). If a store
//! ignores the condition, every writer succeeds. Before the first push, `probe` tests the store with
//! concurrent writers, and rejects it if more than one of them succeeds. This detects stores that never
//! check the condition, and most stores that check it too late. It cannot detect a store that fails once a
//! month.

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
mod unpack;

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

/// Number of runs that are sent or fetched concurrently.
const SIDE_BY_SIDE: usize = 8;

/// Results on object storage.
#[derive(Debug)]
pub struct ObjectResults {
    objects: Arc<dyn ObjectStore>,
    /// The prefix of every key.
    prefix: Key,
    /// The address as the user wrote it.
    url: String,
    /// The claims of this process on runs and servers.
    claims: Claims,
    /// Set once heartbeats are being sent for the claims of this process.
    alive: OnceLock<()>,
    /// Short ids of runs that were not committed on the store when last checked, with the time of the
    /// check.
    absent: Mutex<HashMap<String, Instant>>,
    /// Short ids and folders of the runs that this process has committed on the store, and that are not in
    /// a pack yet.
    committed: Mutex<Vec<(String, PathBuf)>>,
    runtime: Runtime,
}

impl ObjectResults {
    /// Opens the results at `url`: `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix` or
    /// `file:///folder`. Credentials come from the environment (`AWS_…`, `GOOGLE_…`, `AZURE_…`); an address
    /// that contains credentials is rejected. Does not send a request yet.
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

    /// Returns the address as the user wrote it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the short ids of the runs that are committed on the store, sorted.
    pub fn runs(&self) -> Result<Vec<String>, ObjectError> {
        let mut ids = Vec::new();
        self.each_run(|id| ids.push(id.to_owned()))?;
        ids.sort_unstable();
        Ok(ids)
    }

    /// Calls `tell` with the short id of every run that is committed on the store.
    fn each_run(&self, mut tell: impl FnMut(&str)) -> Result<(), ObjectError> {
        self.each(&self.key(&["runs"]), |found| {
            if let Some(id) = found.location.filename().and_then(keys::run_of) {
                tell(id);
            }
        })
    }

    /// Calls `tell` for every object in a folder. Objects are listed page by page, and each page is
    /// requested after the previous page was processed.
    fn each(&self, folder: &Key, mut tell: impl FnMut(ObjectMeta)) -> Result<(), ObjectError> {
        let mut listed = self.objects.list(Some(folder));
        while let Some(found) = self.wait(futures_util::StreamExt::next(&mut listed)) {
            tell(found.map_err(|error| self.failed(Doing::List, folder, error))?);
        }
        Ok(())
    }

    /// Returns all bytes of an object; `None` if it does not exist.
    fn get(&self, key: &Key) -> Result<Option<Vec<u8>>, ObjectError> {
        let got = self.patiently(|| self.wait(async { self.objects.get(key).await?.bytes().await }));
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

    /// Makes a request, and makes it again as long as it is interrupted and the time for retries is not over. The
    /// library retries most requests itself, but no request that creates an object, and no interrupted response.
    fn patiently<T>(&self, mut request: impl FnMut() -> object_store::Result<T>) -> object_store::Result<T> {
        let until = Instant::now() + address::patience();
        let mut pauses = address::pauses();
        loop {
            let done = request();
            let is_over = Instant::now() >= until || !done.as_ref().is_err_and(error::is_interrupted);
            match pauses.next().filter(|_| !is_over) {
                Some(pause) => std::thread::sleep(pause),
                None => return done,
            }
        }
    }

    /// Waits for a request to the store to complete. Several threads may wait concurrently.
    fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Applies `work` to the items, several at a time, and returns the results in the order of the items.
    /// After an error, no more items are started, and the error is returned.
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
