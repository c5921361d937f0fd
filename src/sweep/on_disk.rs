//! The contents of a results folder on which the decisions about a plan's runs are based: a summary of each
//! run, the attempts since its last commit, and the runs whose folders are gone.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

use crate::expand::{Expansion, RunId, RunSpec};
use crate::store::{Brief, Deleted, Listed, Overview, RunRecord, Said, ShortId, State, Store, StoreError, Tries};

use super::history::History;
use super::nearest::{Change, Nearest};

/// The results on disk, indexed for queries. A summary of each run is held in memory; whole records are
/// read on demand.
#[derive(Debug, Default)]
pub(crate) struct OnDisk {
    /// The results folder; `None` if there is none.
    store: Option<Store>,
    runs: Overview,
    /// The committed runs whose folders are gone, by short id.
    deleted: HashMap<String, Deleted>,
    /// Attempts since the last commit, by short id.
    tries: HashMap<String, Tries>,
    /// The specs of all possible runs of the plan, by short id.
    wanted: HashMap<ShortId, Arc<RunSpec>>,
    /// The results in the form in which they are compared with new runs; created on the first query.
    nearest: OnceCell<Nearest>,
    /// Evidence about the cost of runs; created on the first query.
    history: OnceCell<History>,
    /// Runs that a test supplies instead of a results folder.
    #[cfg(test)]
    given: Vec<Listed>,
}

impl OnDisk {
    /// Reads a results folder for a plan with these runs.
    pub(crate) fn read(store: &Store, expansion: &Expansion) -> Result<OnDisk, StoreError> {
        let mut disk = OnDisk { store: Some(store.clone()), ..OnDisk::without_results(expansion) };
        disk.runs = store.overview(&|id| disk.wanted.get(&id).map(|spec| &**spec))?;
        disk.deleted = store.deleted()?.into_iter().map(|run| (run.id.clone(), run)).collect();
        disk.tries = store.tries_of(&|id| disk.is_wanted(id))?;
        Ok(disk)
    }

    /// Creates the index for a plan with these runs, without any results.
    pub(crate) fn without_results(expansion: &Expansion) -> OnDisk {
        let wanted = expansion.possible().map(|run| (ShortId::of(&run.id), Arc::clone(&run.spec)));
        OnDisk { wanted: wanted.collect(), ..OnDisk::default() }
    }

    /// Creates the index of a results folder with the runs `listed`, for a plan with the runs of `expansion`.
    #[cfg(test)]
    pub(super) fn holding(listed: Vec<Listed>, expansion: &Expansion) -> OnDisk {
        let disk = OnDisk::without_results(expansion);
        let common = crate::store::Common::default();
        let brief = |listed: &Listed| {
            let id = ShortId::named(&listed.id).expect("a short id");
            (id, Brief::of(listed, &common, disk.wanted.get(&id).map(|spec| &**spec)))
        };
        OnDisk { runs: Overview::of(listed.iter().map(brief)), given: listed, ..disk }
    }

    /// Adds attempts since the last commit, by short id.
    #[cfg(test)]
    pub(super) fn with_tries(self, tries: HashMap<String, Tries>) -> OnDisk {
        OnDisk { tries, ..self }
    }

    /// Adds a committed run whose folder is gone.
    #[cfg(test)]
    pub(super) fn without_folder(mut self, id: &RunId, run: Deleted) -> OnDisk {
        self.deleted.insert(id.short(), run);
        self
    }

    /// Adds the runs that were read to the index of the results folder, so that later sweeps need not read
    /// them again. Errors are ignored.
    pub(crate) fn remember(&self) {
        if let Some(store) = &self.store {
            store.remember(&self.runs);
        }
    }

    /// Returns the attempts at run `id` since its last commit; `None` if there are none.
    pub(crate) fn tries(&self, id: &RunId) -> Option<&Tries> {
        if self.tries.is_empty() { None } else { self.tries.get(&id.short()) }
    }

    /// Returns the inventory entry of run `id` if its folder is gone; otherwise `None`.
    pub(crate) fn deleted(&self, id: &RunId) -> Option<&Deleted> {
        if self.deleted.is_empty() { None } else { self.deleted.get(&id.short()) }
    }

    /// Whether the plan contains the run with this short id.
    pub(crate) fn is_wanted(&self, id: &str) -> bool {
        ShortId::named(id).is_some_and(|id| self.wanted.contains_key(&id))
    }

    /// Returns the summary of the folder of run `id`, damaged or not; `None` if there is no folder.
    pub(super) fn brief(&self, id: &RunId) -> Option<&Brief> {
        self.runs.get(id)
    }

    /// Whether run `id` has a folder, damaged or not.
    pub(crate) fn has(&self, id: &RunId) -> bool {
        self.runs.get(id).is_some()
    }

    /// Whether run `id` is committed and undamaged.
    pub(crate) fn is_whole(&self, id: &RunId) -> bool {
        self.said(id).is_some()
    }

    /// Returns the summary of the run `id`; `None` unless it is committed and undamaged.
    pub(crate) fn said(&self, id: &RunId) -> Option<&Said> {
        self.runs.get(id).filter(|brief| brief.is_whole())?.said.as_ref()
    }

    /// Returns why the result of run `id` cannot be used; `None` if it can be used or does not exist.
    pub(crate) fn unusable(&self, id: &RunId) -> Option<StoreError> {
        self.runs.get(id)?.unusable(self.store.as_ref()?.layout(), ShortId::of(id))
    }

    /// Reads the record of the run `id`; `None` unless it is committed and undamaged.
    pub(crate) fn record(&self, id: &RunId) -> Option<RunRecord> {
        self.said(id)?;
        self.listed(ShortId::of(id)).filter(|listed| listed.state == State::Whole)?.record
    }

    /// Reads a run, whether damaged or not; `None` if it does not exist or the folder cannot be read.
    pub(crate) fn listed(&self, id: ShortId) -> Option<Listed> {
        #[cfg(test)]
        if let Some(listed) = self.given.iter().find(|listed| listed.id == id.to_string()) {
            return Some(listed.clone());
        }
        self.store.as_ref()?.run(&id.to_string()).ok().flatten()
    }

    /// Calls `tell` for each run, sorted by id; only a few runs are read at a time. An error is
    /// ignored, because the folder was readable before.
    fn each(&self, mut tell: impl FnMut(&Listed)) {
        #[cfg(test)]
        self.given.iter().for_each(&mut tell);
        let runs = self.store.as_ref().and_then(|store| store.stream().ok());
        runs.into_iter().flatten().for_each(|listed| tell(&listed));
    }

    /// Returns the evidence from earlier results about the cost of runs.
    pub(crate) fn history(&self) -> &History {
        self.history.get_or_init(|| {
            let mut history = History::default();
            if !self.runs.is_empty() {
                self.each(|listed| {
                    listed
                        .record
                        .iter()
                        .filter(|_| listed.state == State::Whole)
                        .for_each(|record| history.add(record));
                });
            }
            history.complete()
        })
    }

    /// Whether any undamaged run has an inventory entry that is missing, damaged, or belongs to an earlier
    /// attempt. The next writer repairs such entries.
    pub(crate) fn wants_entries(&self) -> bool {
        self.runs.iter().any(|(_, brief)| brief.wants_entry())
    }

    /// Returns the committed runs that are not in the plan but belong to one of its endpoints, sorted by
    /// id. `is_ours` returns whether an endpoint belongs to the plan. This check is needed because a
    /// results folder may be used by several plans, and a record contains the name of its endpoint, but no
    /// plan. Runs whose records cannot be read are omitted.
    pub(crate) fn orphans(&self, is_ours: impl Fn(&str) -> bool) -> Vec<ShortId> {
        let left = self.runs.iter().filter(|(id, _)| !self.wanted.contains_key(id));
        let is_orphan = |brief: &Brief| brief.said.as_ref().is_some_and(|said| is_ours(&said.endpoint));
        let mut orphans: Vec<ShortId> = left.filter(|(_, brief)| is_orphan(brief)).map(|(id, _)| id).collect();
        orphans.sort_unstable();
        orphans
    }

    /// Returns how a new run differs from the closest results; `None` if there are none, or if comparing
    /// `asked` runs with all results would take too long.
    pub(super) fn nearest_change(&self, spec: &RunSpec, asked: usize) -> Option<Change> {
        if Nearest::may_compare(asked, self.runs.len()) { self.nearest().find(spec) } else { None }
    }

    fn nearest(&self) -> &Nearest {
        self.nearest.get_or_init(|| {
            let mut nearest = Nearest::default();
            self.each(|listed| {
                let record = listed.record.iter();
                record.for_each(|record| nearest.add(&record.spec, self.is_wanted(&listed.id)));
            });
            nearest.complete()
        })
    }
}
