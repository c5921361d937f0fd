//! Claims record which worker is measuring a run, and which worker is using a server. A worker that claims
//! a run or a server creates an object for the claim.
//!
//! ```text
//! claims/<id>/<epoch>.json                created once by the worker that takes the run, which rewrites it as a heartbeat
//! claims/server-<digest>/<epoch>.json     the same for a server, named after the SHA-256 of its name
//! ```
//!
//! A worker keeps its claim on a server until it has no runs left, so that no other worker uses the server
//! between its runs.
//!
//! Claims are numbered; the number is called epoch. A run is open if its last claim was released, or has
//! had no heartbeat for longer than its lease. The worker that creates the claim with the next epoch then
//! owns the run. The age of a claim is measured by the store's clock only: the time of the object's last
//! write is compared with the store's current time, which the probe has determined. The clocks of workers
//! therefore need not agree. A claim only avoids duplicate work. A worker that was disconnected for longer
//! than its lease may measure a run that another worker has taken over. The commit, which can be created
//! only once, then decides which result is kept.

use std::sync::Arc;

use object_store::path::Path as Key;
use object_store::{Error, ObjectMeta, ObjectStore as _, ObjectStoreExt as _, PutMode, PutOptions};
use sha2::{Digest as _, Sha256};

use super::ObjectResults;
use super::error::{Doing, ObjectError};
use super::held::{Claim, LEASE, lease, locked};
use crate::store::hex::hex;
use crate::store::record::FORMAT;

/// Time in milliseconds that is added to a lease before the claim is considered expired, because stores
/// report times in whole seconds.
const ALLOWANCE_MS: i64 = 2_000;
/// Maximum number of attempts to claim a run while other workers claim or release it.
const LOOKS: u32 = 4;

/// Whether a run or a server is claimed, and by which worker.
enum Claimed {
    /// No worker has a valid claim; the number is the epoch of the last claim, or 0 if there is none.
    Open(u32),
    /// A worker has a valid claim. The worker may be this process.
    By(Box<Claim>),
}

/// Returns the name that a server's claims have in place of a run's id.
fn server_name(server: &str) -> String {
    format!("server-{}", &hex(&Sha256::digest(server))[..16])
}

impl ObjectResults {
    /// Claims a run for this process. Returns false if another worker has claimed it.
    pub(super) fn take(&self, id: &str) -> Result<bool, ObjectError> {
        if locked(&self.claims.held).contains_key(id) {
            return Ok(true);
        }
        for _ in 0..LOOKS {
            let epoch = match self.claimed(id)? {
                Claimed::Open(epochs) => epochs + 1,
                Claimed::By(claim) => return Ok(claim.worker == self.claims.worker),
            };
            let key = self.key(&["claims", id, &format!("{epoch:08}.json")]);
            let text = self.claims.claim(false);
            // The created object is read back. If a store has let two writers create the same object, one
            // of them sees the other's content. If the response was lost, the request was made again and
            // found the object of this process.
            let is_created = self.create(&key, &text)?;
            if self.get(&key)?.map_or(is_created, |there| there == text) {
                locked(&self.claims.held).insert(id.to_owned(), key);
                self.keep_alive();
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether another worker has claimed a run.
    pub(super) fn is_taken(&self, id: &str) -> Result<bool, ObjectError> {
        Ok(matches!(self.claimed(id)?, Claimed::By(claim) if claim.worker != self.claims.worker))
    }

    /// Claims a server for this process. Returns false if another worker has claimed it. For a server,
    /// unlike for a run, this function checks whether an earlier claim of this process is still valid,
    /// because a server may be needed for hours.
    pub(super) fn take_server(&self, server: &str) -> Result<bool, ObjectError> {
        let name = server_name(server);
        if locked(&self.claims.held).contains_key(&name) {
            if self.is_own(&name)? {
                return Ok(true);
            }
            locked(&self.claims.held).remove(&name);
        }
        let is_taken = self.take(&name)?;
        if is_taken {
            self.forget_earlier(&name);
        }
        Ok(is_taken)
    }

    /// Whether another worker has claimed a server.
    pub(super) fn is_server_taken(&self, server: &str) -> Result<bool, ObjectError> {
        self.is_taken(&server_name(server))
    }

    fn is_own(&self, id: &str) -> Result<bool, ObjectError> {
        Ok(matches!(self.claimed(id)?, Claimed::By(claim) if claim.worker == self.claims.worker))
    }

    /// Removes earlier claims on a run or server that this process has claimed. Errors are ignored, because
    /// remaining claims are harmless. The last claim is kept, so that epochs are never reused.
    fn forget_earlier(&self, id: &str) {
        let Some(own) = locked(&self.claims.held).get(id).cloned() else { return };
        let mut keys = Vec::new();
        let is_earlier = |found: &ObjectMeta| found.location.filename() < own.filename();
        let listed = self.each(&self.key(&["claims", id]), |found| {
            if is_earlier(&found) {
                keys.push(found.location);
            }
        });
        if listed.is_ok() {
            keys.iter().for_each(|key| drop(self.wait(self.objects.delete(key))));
        }
    }

    fn claimed(&self, id: &str) -> Result<Claimed, ObjectError> {
        let folder = self.key(&["claims", id]);
        let mut last: Option<(u32, ObjectMeta)> = None;
        self.each(&folder, |found| {
            let epoch = found.location.filename().and_then(|name| name.strip_suffix(".json")?.parse().ok());
            if let Some(epoch) = epoch.filter(|epoch| last.as_ref().is_none_or(|(last, _)| last < epoch)) {
                last = Some((epoch, found));
            }
        })?;
        let Some((epoch, found)) = last else { return Ok(Claimed::Open(0)) };
        // If the claim was removed in the meantime, the run was committed. The caller checks this.
        let Some(text) = self.get(&found.location)? else { return Ok(Claimed::Open(0)) };
        // A claim that cannot be read is considered valid for the default lease.
        let claim: Claim = serde_json::from_slice(&text).unwrap_or(Claim {
            format: FORMAT,
            worker: String::new(),
            lease_ms: u64::try_from(LEASE.as_millis()).unwrap_or(u64::MAX),
            released: false,
        });
        let is_dead = self.claims.age_ms(&found) > i64::try_from(claim.lease_ms).unwrap_or(i64::MAX) + ALLOWANCE_MS;
        Ok(if claim.released || is_dead { Claimed::Open(epoch) } else { Claimed::By(Box::new(claim)) })
    }

    /// Removes the claims on a committed run. Errors are ignored, because remaining claims are harmless.
    pub(super) fn forget_claims(&self, id: &str) {
        locked(&self.claims.held).remove(id);
        let mut keys = Vec::new();
        if self.each(&self.key(&["claims", id]), |found| keys.push(found.location)).is_ok() {
            keys.iter().for_each(|key| drop(self.wait(self.objects.delete(key))));
        }
    }

    /// Releases the claims of this process on runs and servers. Errors are ignored, because claims that are
    /// not released expire at the end of their lease.
    pub(super) fn give_back(&self) {
        let held = std::mem::take(&mut *locked(&self.claims.held));
        for key in held.values() {
            drop(self.wait(self.objects.put(key, self.claims.claim(true).into())));
        }
    }

    /// Starts a task that sends heartbeats for the claims of this process, three per lease, unless the task
    /// is already running.
    fn keep_alive(&self) {
        self.alive.get_or_init(|| {
            let (objects, held, text) =
                (Arc::clone(&self.objects), Arc::clone(&self.claims.held), self.claims.claim(false));
            self.runtime.spawn(async move {
                loop {
                    tokio::time::sleep(lease() / 3).await;
                    let keys: Vec<(String, Key)> =
                        locked(&held).iter().map(|(id, key)| (id.clone(), key.clone())).collect();
                    for (id, key) in keys {
                        // Skip claims that were released, or whose runs were committed, in the meantime.
                        if locked(&held).contains_key(&id) {
                            let _ = objects.put(&key, text.clone().into()).await;
                        }
                    }
                }
            });
        });
    }

    /// Creates an object. Returns false if the object already exists.
    pub(super) fn create(&self, key: &Key, text: &[u8]) -> Result<bool, ObjectError> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let put = || self.wait(self.objects.put_opts(key, text.to_vec().into(), options.clone()));
        match self.patiently(put) {
            Ok(_) => Ok(true),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(false),
            Err(error) => Err(self.failed(Doing::Write, key, error)),
        }
    }
}
