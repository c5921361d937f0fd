//! Which worker measures a run: an object for each time that somebody took it.
//!
//! ```text
//! claims/<id>/<epoch>.json      created once by the worker that took the run; written again by that worker alone, as a sign of life
//! ```
//!
//! A run is open where its last epoch was given back, or shows no sign of life for longer than its lease; whoever creates the next epoch has it.
//! Times are those of the store: when an object was last written, against the store's clock as the probe met it. So no two workers need clocks
//! that agree. A claim saves work and decides nothing: a worker that was cut off for longer than its lease may measure a run that another one
//! has taken over, and then the commit, which is created once, decides whose result stands.

use std::sync::Arc;

use object_store::path::Path as Key;
use object_store::{Error, ObjectMeta, ObjectStore as _, ObjectStoreExt as _, PutMode, PutOptions};

use super::ObjectResults;
use super::error::{Doing, ObjectError};
use super::held::{Claim, LEASE, lease, locked};
use crate::store::record::FORMAT;

/// How much later a claim is believed to be dead: stores tell times in whole seconds.
const ALLOWANCE_MS: i64 = 2_000;
/// How often a run is looked at again that somebody takes or gives back meanwhile.
const LOOKS: u32 = 4;

/// How a run is claimed.
enum Claimed {
    /// Nobody has it; so many times somebody had.
    Open(u32),
    /// A worker has it, perhaps this one.
    By(Box<Claim>),
}

impl ObjectResults {
    /// Takes a run for this process; no where another one has it.
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
            // What was created is read back: a store that lets two create it now and then shows one of them the other one's.
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
        // It was removed since, with the run's commit: whoever takes the run looks for that.
        let Some(text) = self.get(&found.location)? else { return Ok(Claimed::Open(0)) };
        // What cannot be read holds as long as one of ours does.
        let claim: Claim = serde_json::from_slice(&text).unwrap_or(Claim {
            format: FORMAT,
            worker: String::new(),
            lease_ms: u64::try_from(LEASE.as_millis()).unwrap_or(u64::MAX),
            released: false,
        });
        let is_dead = self.claims.age_ms(&found) > i64::try_from(claim.lease_ms).unwrap_or(i64::MAX) + ALLOWANCE_MS;
        Ok(if claim.released || is_dead { Claimed::Open(epoch) } else { Claimed::By(Box::new(claim)) })
    }

    /// A run was committed: nobody needs its claims any more. Best effort; what stays does no harm.
    pub(super) fn forget_claims(&self, id: &str) {
        locked(&self.claims.held).remove(id);
        let mut keys = Vec::new();
        if self.each(&self.key(&["claims", id]), |found| keys.push(found.location)).is_ok() {
            keys.iter().for_each(|key| drop(self.wait(self.objects.delete(key))));
        }
    }

    /// Gives back every run that was taken. Best effort: what cannot be given back is open when its lease is over.
    pub(super) fn give_back(&self) {
        let held = std::mem::take(&mut *locked(&self.claims.held));
        for key in held.values() {
            drop(self.wait(self.objects.put(key, self.claims.claim(true).into())));
        }
    }

    /// Has the runs that are taken show a sign of life, three times in a lease; begun with the first one that is taken.
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
                        // One that was given back or committed meanwhile is left as it is.
                        if locked(&held).contains_key(&id) {
                            let _ = objects.put(&key, text.clone().into()).await;
                        }
                    }
                }
            });
        });
    }

    /// Creates an object; no where there is one.
    pub(super) fn create(&self, key: &Key, text: &[u8]) -> Result<bool, ObjectError> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match self.wait(self.objects.put_opts(key, text.to_vec().into(), options)) {
            Ok(_) => Ok(true),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(false),
            Err(error) => Err(self.failed(Doing::Write, key, error)),
        }
    }
}
