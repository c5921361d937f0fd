//! Claims record which worker measures a run and which worker holds a server. One object is created each
//! time a worker takes a run or a server.
//!
//! ```text
//! claims/<id>/<epoch>.json                created once by the worker that takes the run, which rewrites it as a heartbeat
//! claims/server-<digest>/<epoch>.json     the same for a server, named by the SHA-256 of its name
//! ```
//!
//! A worker keeps a server until it has no runs left, so that no other worker sends requests to it in
//! between.
//!
//! A run is open if its last claim (epoch) was given back, or has had no heartbeat for longer than its
//! lease. The worker that creates the next epoch owns the run. All times are the store's: the time of an
//! object's last write is compared with the store's clock, as measured by the probe, so the clocks of
//! workers need not agree. A claim only saves work and decides nothing: a worker that was disconnected
//! for longer than its lease may measure a run that another worker has taken over. The commit, which can
//! be created only once, then decides which result stands.

use std::sync::Arc;

use object_store::path::Path as Key;
use object_store::{Error, ObjectMeta, ObjectStore as _, ObjectStoreExt as _, PutMode, PutOptions};
use sha2::{Digest as _, Sha256};

use super::ObjectResults;
use super::error::{Doing, ObjectError};
use super::held::{Claim, LEASE, lease, locked};
use crate::store::hex::hex;
use crate::store::record::FORMAT;

/// Additional time before a claim is considered dead, because stores report times in whole seconds.
const ALLOWANCE_MS: i64 = 2_000;
/// Number of times a run is checked again if other workers take it or give it back in the meantime.
const LOOKS: u32 = 4;

/// The claim state of a run.
enum Claimed {
    /// No worker has the run; contains the number of earlier claims.
    Open(u32),
    /// A worker has the run, possibly this one.
    By(Box<Claim>),
}

/// Returns the name under which a server is claimed.
fn server_name(server: &str) -> String {
    format!("server-{}", &hex(&Sha256::digest(server))[..16])
}

impl ObjectResults {
    /// Takes a run for this process; returns false if another worker has it.
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
            // The created object is read back. If a store occasionally lets two writers create the same
            // object, one of them then sees the other's content.
            if self.create(&key, &text)? && self.get(&key)?.is_none_or(|there| there == text) {
                locked(&self.claims.held).insert(id.to_owned(), key);
                self.keep_alive();
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether another worker has a run.
    pub(super) fn is_taken(&self, id: &str) -> Result<bool, ObjectError> {
        Ok(matches!(self.claimed(id)?, Claimed::By(claim) if claim.worker != self.claims.worker))
    }

    /// Takes a server for this process; returns false if another worker has it. Losing a server to another
    /// worker is detected, unlike losing a run, because a server may be needed for hours.
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

    /// Whether another worker has a server.
    pub(super) fn is_server_taken(&self, server: &str) -> Result<bool, ObjectError> {
        self.is_taken(&server_name(server))
    }

    fn is_own(&self, id: &str) -> Result<bool, ObjectError> {
        Ok(matches!(self.claimed(id)?, Claimed::By(claim) if claim.worker == self.claims.worker))
    }

    /// Removes earlier claims on a run or server that this process has taken. Best effort, because
    /// remaining claims are harmless. The last claim stays, so that epochs are never reused.
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
        // The claim was removed in the meantime because the run was committed; the caller checks
        // for the commit.
        let Some(text) = self.get(&found.location)? else { return Ok(Claimed::Open(0)) };
        // A claim that cannot be read is considered valid for as long as a claim of this worker.
        let claim: Claim = serde_json::from_slice(&text).unwrap_or(Claim {
            format: FORMAT,
            worker: String::new(),
            lease_ms: u64::try_from(LEASE.as_millis()).unwrap_or(u64::MAX),
            released: false,
        });
        let is_dead = self.claims.age_ms(&found) > i64::try_from(claim.lease_ms).unwrap_or(i64::MAX) + ALLOWANCE_MS;
        Ok(if claim.released || is_dead { Claimed::Open(epoch) } else { Claimed::By(Box::new(claim)) })
    }

    /// Removes the claims of a committed run. Best effort, because remaining claims are harmless.
    pub(super) fn forget_claims(&self, id: &str) {
        locked(&self.claims.held).remove(id);
        let mut keys = Vec::new();
        if self.each(&self.key(&["claims", id]), |found| keys.push(found.location)).is_ok() {
            keys.iter().for_each(|key| drop(self.wait(self.objects.delete(key))));
        }
    }

    /// Gives back every run and server that this process has taken. Best effort: claims that remain expire
    /// at the end of their lease.
    pub(super) fn give_back(&self) {
        let held = std::mem::take(&mut *locked(&self.claims.held));
        for key in held.values() {
            drop(self.wait(self.objects.put(key, self.claims.claim(true).into())));
        }
    }

    /// Sends heartbeats for the runs that this process has taken, three per lease; starts when the
    /// first run is taken.
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
                        // Skips claims that were given back or committed in the meantime.
                        if locked(&held).contains_key(&id) {
                            let _ = objects.put(&key, text.clone().into()).await;
                        }
                    }
                }
            });
        });
    }

    /// Creates an object; returns false if it exists.
    pub(super) fn create(&self, key: &Key, text: &[u8]) -> Result<bool, ObjectError> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match self.wait(self.objects.put_opts(key, text.to_vec().into(), options)) {
            Ok(_) => Ok(true),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(false),
            Err(error) => Err(self.failed(Doing::Write, key, error)),
        }
    }
}
