//! The small part of a committed run that is needed for decisions. Commands keep it in memory for every run
//! and read a whole record only when they need it.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::error::StoreError;
use super::layout::{Layout, is_short_id};
use super::list::{Listed, State};
use super::record::{Moment, RunRecord};
use super::stamp::Stamp;
use crate::expand::{RunId, RunSpec};
use crate::rows::{Fingerprint, Table};

/// The name of a run's folder, the first 16 hex digits of its id, as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShortId(pub(super) u64);

impl ShortId {
    /// Returns the short id of a run.
    pub fn of(id: &RunId) -> ShortId {
        let [a, b, c, d, e, f, g, h, ..] = id.0;
        ShortId(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }

    /// Parses the name of a run's folder; `None` for any other name.
    pub fn named(name: &str) -> Option<ShortId> {
        is_short_id(name).then(|| u64::from_str_radix(name, 16).ok().map(ShortId)).flatten()
    }
}

impl fmt::Display for ShortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A committed run with the result of its quick check.
#[derive(Debug, Clone, PartialEq)]
pub struct Brief {
    /// Whether the result can be used.
    pub state: State,
    /// The content of the run's `run.json`, if readable.
    pub said: Option<Said>,
    /// Whether the next writer updates the run's entry in the inventory.
    pub(super) wants_entry: bool,
    /// Identifies the run's files; `None` unless they have been unchanged for a while.
    pub(super) stamp: Option<Stamp>,
}

/// The part of a `run.json` that is needed for decisions.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// The run's id; `None` if the field does not contain an id.
    pub id: Option<RunId>,
    /// Whether the id matches the spec.
    pub is_sound: bool,
    /// The number of the attempt.
    pub attempt: u32,
    /// When the attempt ended.
    pub ended: Moment,
    /// Whether the run recorded texts.
    pub has_texts: bool,
    /// The endpoint's name in the plan.
    pub endpoint: Arc<str>,
    /// The server's fingerprint; `None` if there is none.
    pub server: Option<Arc<Fingerprint>>,
}

impl Brief {
    /// Extracts this part from a listed run; `planned` is the plan's spec for this short id.
    pub fn of(listed: &Listed, common: &Common, planned: Option<&RunSpec>) -> Brief {
        Brief {
            state: listed.state.clone(),
            said: listed.record.as_ref().map(|record| Said::of(record, common, planned)),
            wants_entry: listed.wants_entry(),
            stamp: None,
        }
    }

    /// Whether the run's result can be used.
    pub fn is_whole(&self) -> bool {
        self.state == State::Whole
    }

    /// Whether the next writer updates the run's entry in the inventory.
    pub fn wants_entry(&self) -> bool {
        self.wants_entry
    }

    /// Returns why the result of the run `id` cannot be used; `None` if it can.
    pub fn unusable(&self, layout: &Layout, id: ShortId) -> Option<StoreError> {
        let reason = self.state.problem()?.to_owned();
        Some(StoreError::Unusable { dir: layout.run(&id.to_string()), reason })
    }
}

impl Said {
    fn of(record: &RunRecord, common: &Common, planned: Option<&RunSpec>) -> Said {
        let id: Option<RunId> = record.id.parse().ok();
        let server = &record.environment.fingerprint;
        Said {
            id,
            // Equal specs have equal ids, and comparing is cheaper than hashing.
            is_sound: id.is_some_and(|id| {
                planned.is_some_and(|planned| record.spec == *planned) || RunId::of(&record.spec) == id
            }),
            attempt: record.attempt,
            ended: record.ended,
            has_texts: record.has(Table::Texts),
            endpoint: common.name(&record.spec.endpoint.name),
            server: (!server.is_empty()).then(|| common.server(server)),
        }
    }
}

/// Values shared by many runs, each stored once.
#[derive(Debug, Default)]
pub struct Common {
    names: Mutex<HashSet<Arc<str>>>,
    servers: Mutex<HashSet<Arc<Fingerprint>>>,
}

impl Common {
    pub(super) fn name(&self, name: &str) -> Arc<str> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(there) = names.get(name) {
            return Arc::clone(there);
        }
        let new: Arc<str> = name.into();
        names.insert(Arc::clone(&new));
        new
    }

    pub(super) fn server(&self, server: &Fingerprint) -> Arc<Fingerprint> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(there) = servers.get(server) {
            return Arc::clone(there);
        }
        let new = Arc::new(server.clone());
        servers.insert(Arc::clone(&new));
        new
    }
}
