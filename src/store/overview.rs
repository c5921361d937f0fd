//! An overview of all committed runs, with a quick check of each, that needs little memory.
//!
//! If the files of a run have not changed since an earlier sweep read them (`stamp`), the run is taken from
//! the index (`index`) and not read again. Results folders with fewer than [`WORTH`] runs have no index.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use super::Store;
use super::brief::{Brief, Common, ShortId};
use super::error::StoreError;
use super::folder::Folder;
use super::index::Index;
use super::inventory::{self, Entered};
use super::list::{Listed, RUNS_A_THREAD, State};
use super::parallel;
use super::stamp::Folders;
use crate::expand::{RunId, RunSpec};

/// Minimum number of runs for which an index pays off.
const WORTH: usize = 1_000;
/// How long a run's files must have been unchanged before the run is added to the index. This time is
/// needed because timestamps are coarse on some file systems, and the clock of a file server may be behind.
const SETTLED: Duration = Duration::from_secs(10);
/// Minimum number of newly read runs for which the index is rewritten.
const NEWS: usize = 100;

/// The rules for adding runs to the index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// Minimum number of runs for which there is an index.
    pub(super) worth: usize,
    /// How long a run's files must have been unchanged before the run is added to the index.
    pub(super) settled: Duration,
    /// Minimum number of newly read runs for which the index is rewritten.
    pub(super) news: usize,
}

impl Rules {
    /// Returns the rules in effect. In builds with debug assertions, tests can set an environment variable
    /// to index all runs.
    fn now() -> Rules {
        match cfg!(debug_assertions) && std::env::var_os("SWEEPLINE_INDEX_ALL").is_some() {
            true => Rules { worth: 0, settled: Duration::ZERO, news: 1 },
            false => Rules { worth: WORTH, settled: SETTLED, news: NEWS },
        }
    }
}

/// All committed runs of a results folder.
#[derive(Debug, Default)]
pub struct Overview {
    runs: HashMap<ShortId, Brief>,
    /// Number of runs whose records were read.
    read: usize,
    /// Whether to rewrite the index.
    is_news: bool,
}

impl Overview {
    /// Returns an overview of these runs.
    pub fn of(runs: impl IntoIterator<Item = (ShortId, Brief)>) -> Overview {
        Overview { runs: runs.into_iter().collect(), read: 0, is_news: false }
    }

    /// Returns the run with this id, whether damaged or not; `None` if it is not committed.
    pub fn get(&self, id: &RunId) -> Option<&Brief> {
        self.runs.get(&ShortId::of(id))
    }

    /// Returns an iterator over all runs, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (ShortId, &Brief)> {
        self.runs.iter().map(|(id, brief)| (*id, brief))
    }

    /// Returns the number of runs.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether there are no runs.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns the number of runs whose records were read. The other runs were taken from the index.
    pub fn read(&self) -> usize {
        self.read
    }
}

impl Store {
    /// Returns all committed runs with a quick check of each. `planned` returns the spec of a run, or
    /// `None` if the plan does not contain the run.
    ///
    /// Fails only if the folder itself cannot be read; problems of a run are part of the run's
    /// state.
    pub fn overview<'p>(
        &self,
        planned: &(impl Fn(ShortId) -> Option<&'p RunSpec> + Sync),
    ) -> Result<Overview, StoreError> {
        self.overview_by(Rules::now(), planned)
    }

    pub(super) fn overview_by<'p>(
        &self,
        rules: Rules,
        planned: &(impl Fn(ShortId) -> Option<&'p RunSpec> + Sync),
    ) -> Result<Overview, StoreError> {
        let began = SystemTime::now();
        let common = Common::default();
        let names = self.names()?;
        let eye = Eye::open(self, rules, (&names, &common))?;
        let read = AtomicUsize::new(0);
        let one = |name: &String| {
            let id = ShortId::named(name)?;
            let stamp = eye.folders().and_then(|folders| folders.stamp(name));
            if let Some((stamp, said)) = stamp.and_then(|(stamp, _)| Some((stamp, eye.index.get(id, stamp)?))) {
                let (state, said) = (State::Whole, Some(said.clone()));
                return Some((id, Brief { state, said, wants_entry: false, stamp: Some(stamp) }));
            }
            let listed = self.look(eye.inventory.as_ref(), name)?;
            read.fetch_add(1, Ordering::Relaxed);
            let stamp = stamp.filter(|(_, changed)| is_remembered(&listed, *changed, began, rules));
            let brief = Brief::of(&listed, &common, planned(id));
            Some((id, Brief { stamp: stamp.map(|(stamp, _)| stamp), ..brief }))
        };
        let runs: HashMap<ShortId, Brief> = parallel::filter_map(&names, RUNS_A_THREAD, &one).into_iter().collect();
        let read = read.into_inner();
        let is_news = eye.folders().is_some() && read >= rules.news;
        Ok(Overview { runs, read, is_news })
    }

    /// Stores an overview in the index for later sweeps, if enough runs are new. Errors are ignored.
    pub fn remember(&self, overview: &Overview) {
        if overview.is_news {
            let runs = overview.runs.values().filter_map(|brief| Some((brief.stamp?, brief.said.as_ref()?)));
            Index::write(&self.layout, runs);
        }
    }

    /// Applies `work` to each of these runs that is not in the index. Runs in the index need no attention,
    /// because an earlier sweep found that they are undamaged and listed in the inventory.
    pub(super) fn unsettled<R: Send>(
        &self,
        names: &[String],
        work: &(impl Fn(Listed) -> Option<R> + Sync),
    ) -> Result<Vec<R>, StoreError> {
        let common = Common::default();
        let eye = Eye::open(self, Rules::now(), (names, &common))?;
        let is_known = |name: &str| {
            let (id, stamp) = (ShortId::named(name)?, eye.folders()?.stamp(name)?.0);
            eye.index.get(id, stamp).map(drop)
        };
        let one = |name: &String| match is_known(name) {
            Some(()) => None,
            None => self.look(eye.inventory.as_ref(), name).and_then(work),
        };
        Ok(parallel::filter_map(names, RUNS_A_THREAD, &one))
    }
}

/// Reads many runs, and takes unchanged runs from the index.
struct Eye {
    inventory: Option<Folder>,
    /// The folder `runs/`; `None` if there are too few runs for an index.
    runs: Option<Folder>,
    index: Index,
}

impl Eye {
    fn open(store: &Store, rules: Rules, (names, common): (&[String], &Common)) -> Result<Eye, StoreError> {
        let inventory = inventory::folder(&store.layout)?;
        let runs = (names.len() >= rules.worth).then(|| Folder::open(&store.layout.runs()).ok()).flatten();
        let index = runs.as_ref().map(|_| Index::read(&store.layout, common)).unwrap_or_default();
        Ok(Eye { inventory, runs, index })
    }

    fn folders(&self) -> Option<Folders<'_>> {
        Some(Folders { runs: self.runs.as_ref()?, inventory: self.inventory.as_ref()? })
    }
}

/// Whether a run may be added to the index: it has no problem, and its files have been unchanged for long
/// enough. `changed` is the time of the last change, in seconds since 1970.
fn is_remembered(listed: &Listed, changed: i64, began: SystemTime, rules: Rules) -> bool {
    let began = began.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let is_old = i128::from(changed) + i128::from(rules.settled.as_secs()) <= i128::from(began.as_secs());
    is_old && listed.state == State::Whole && listed.entered == Entered::Same
}
