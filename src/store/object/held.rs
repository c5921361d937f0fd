//! The claims that a worker holds, and their content.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use object_store::ObjectMeta;
use object_store::path::Path as Key;
use serde::{Deserialize, Serialize};

use crate::store::record::FORMAT;

/// Default time for which a claim is valid without a heartbeat.
pub(super) const LEASE: Duration = Duration::from_secs(60);

/// Returns how long a claim is valid without a heartbeat. In builds with debug assertions, tests can
/// shorten this time with an environment variable.
pub(super) fn lease() -> Duration {
    let chosen = || std::env::var("SWEEPLINE_LEASE_MS").ok()?.parse().ok();
    chosen().filter(|_| cfg!(debug_assertions)).map_or(LEASE, Duration::from_millis)
}

/// The content of a claim.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Claim {
    pub(super) format: u32,
    /// The worker that made the claim: its host and process id, for display, and digits that are unique to
    /// the worker.
    pub(super) worker: String,
    /// How long the claim is valid without a heartbeat, in milliseconds.
    pub(super) lease_ms: u64,
    /// Whether the claim was released.
    #[serde(default)]
    pub(super) released: bool,
}

/// The keys of the claims that this process holds, by the run's short id or the server's name.
pub(super) type Held = Arc<Mutex<BTreeMap<String, Key>>>;

/// The claims of this process on shared results.
#[derive(Debug)]
pub(super) struct Claims {
    pub(super) worker: String,
    pub(super) held: Held,
    /// How far the store's clock is ahead of this machine's, in milliseconds.
    ahead_ms: AtomicI64,
}

impl Claims {
    /// Creates an empty set of claims. `digits` are unique to this worker.
    pub(super) fn of(digits: &str) -> Claims {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let worker = format!("{host}, process {}, {digits}", std::process::id());
        Claims { worker, held: Held::default(), ahead_ms: AtomicI64::new(0) }
    }

    /// Determines how far the store's clock is ahead of ours. The object `written` was written between the
    /// local times `before` and `after`, and its timestamp comes from the store's clock.
    pub(super) fn set_clock(&self, before: Timestamp, after: Timestamp, written: &ObjectMeta) {
        let ahead = written.last_modified.timestamp_millis() - before.as_millisecond().midpoint(after.as_millisecond());
        self.ahead_ms.store(ahead, Ordering::Relaxed);
    }

    /// Returns the content of a claim of this worker.
    pub(super) fn claim(&self, released: bool) -> Vec<u8> {
        let lease_ms = u64::try_from(lease().as_millis()).unwrap_or(u64::MAX);
        let claim = Claim { format: FORMAT, worker: self.worker.clone(), lease_ms, released };
        serde_json::to_vec(&claim).unwrap_or_default()
    }

    /// Returns how long ago an object was written, in milliseconds, according to the store's clock.
    pub(super) fn age_ms(&self, found: &ObjectMeta) -> i64 {
        Timestamp::now().as_millisecond() + self.ahead_ms.load(Ordering::Relaxed)
            - found.last_modified.timestamp_millis()
    }
}

/// Locks the map of held claims. The lock must be held only briefly.
pub(super) fn locked(held: &Held) -> MutexGuard<'_, BTreeMap<String, Key>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}
