//! What most commands begin with: a plan, its runs, and what is on disk of them.

use std::path::Path;

use super::changes::Changes;
use super::chosen_runs::Chooser;
use super::selection::Selection;
use super::trails::trail;
use crate::cli::failure::Failure;
use crate::cli::options::Folder;
use crate::cli::{answers, stderr};
use crate::expand::{Expansion, Known, PlannedRun, expand_with};
use crate::plan::{Endpoint, Loaded, Plan, ResolvedPlan, Sweep};
use crate::report::Trail;
use crate::report::format::plain;
use crate::store::{RunRecord, Store};
use crate::sweep::choose::Chosen;
use crate::sweep::found::found;
use crate::sweep::resume::{Decision, OnDisk, Wishes, decide};

/// A plan with its runs and the results folder.
pub(crate) struct Workspace {
    /// The plan and where its values were written.
    pub loaded: Loaded,
    /// Its runs.
    pub expansion: Expansion,
    /// The results folder.
    pub store: Store,
    /// What lies in it.
    pub disk: OnDisk,
    /// How each of its searches and ladders stands.
    pub(crate) chosen: Vec<Chosen>,
    /// How each of them came to stand so.
    pub(crate) trails: Vec<Trail>,
    /// Whether plans may use files outside of their folder.
    pub(crate) allow_outside: bool,
}

impl Workspace {
    /// Reads the plan with what the call changes in it, expands it and lists the results folder.
    pub(super) fn open(path: &Path, changes: &Changes, folder: &Folder) -> Result<Workspace, Failure> {
        let loaded = changes.load(path)?;
        let store = Store::open(&folder.results);
        warn_of_no_inventory(&store);
        let Staged { expansion, chosen, trails } = staged(&store, &loaded.plan)?;
        let disk = on_disk(&store, &expansion)?;
        let allow_outside = changes.allow_outside();
        Ok(Workspace { loaded, expansion, store, disk, chosen, trails, allow_outside })
    }

    /// Lists the results folder anew; what it says of earlier sweeps may make runs of cells that were pending.
    pub(crate) fn look_again(&mut self) -> Result<(), Failure> {
        Staged { expansion: self.expansion, chosen: self.chosen, trails: self.trails } =
            staged(&self.store, &self.loaded.plan)?;
        self.disk = on_disk(&self.store, &self.expansion)?;
        Ok(())
    }

    /// The plan.
    pub(super) fn plan(&self) -> &Plan {
        &self.loaded.plan
    }

    /// The runs of the plan that are asked for.
    pub(super) fn picked(&self, selection: &Selection) -> Result<Vec<&PlannedRun>, Failure> {
        let runs = &self.expansion.runs;
        let picked = selection.pick(self.plan(), runs)?;
        Ok(runs.iter().zip(picked).filter(|(_, is)| *is).map(|(run, _)| run).collect())
    }

    /// What is to be done with one run.
    pub(crate) fn decide(&self, run: &PlannedRun, wishes: Wishes) -> Decision {
        let is_invalid = |record: &RunRecord| answers::is_invalid(&self.store, record, self.plan());
        let retries = self.plan().endpoints.get(&run.spec.endpoint.name).map_or(0, Endpoint::retries);
        decide(run, &self.disk, (wishes, retries), &is_invalid)
    }
}

/// The runs of a plan as far as they are known, how its searches and ladders stand, and how they came to.
struct Staged {
    expansion: Expansion,
    chosen: Vec<Chosen>,
    trails: Vec<Trail>,
}

/// The runs of a plan by what lies in the results folder, and how its pools stand. What an earlier sweep has found makes runs of the
/// cells that wait for it, which may be what yet another one waits for.
fn staged(store: &Store, plan: &ResolvedPlan) -> Result<Staged, Failure> {
    let is_staged = plan.sweeps.values().any(|sweep| Sweep::asks(sweep).next().is_some());
    let mut known = Known::default();
    let mut expansion = expand_with(plan, &known)?;
    if expansion.pools.is_empty() && !is_staged {
        return Ok(Staged { expansion, chosen: Vec::new(), trails: Vec::new() });
    }
    let chooser = Chooser::new(store, plan);
    loop {
        let chosen: Vec<Chosen> = expansion.pools.iter().map(|pool| chooser.choose(pool)).collect();
        if !chosen.is_empty() {
            expansion.choose(&chosen.iter().map(Chosen::members).collect::<Vec<_>>());
        }
        let now = if is_staged { found(plan, &expansion, &chosen, &chooser) } else { known.clone() };
        // Sweeps ask earlier ones alone, so that after as many rounds as there are sweeps nothing new is known.
        if now == known {
            let trails =
                expansion.pools.iter().zip(&chosen).map(|(pool, chosen)| trail(&chooser, pool, chosen)).collect();
            return Ok(Staged { expansion, chosen, trails });
        }
        known = now;
        expansion = expand_with(plan, &known)?;
    }
}

/// Says that something else lies in the place of the inventory; the runs are there all the same.
pub(crate) fn warn_of_no_inventory(store: &Store) {
    if let Some(error) = store.no_inventory() {
        stderr::complain(&format!("warning: {}", plain(&error.to_string())));
    }
}

/// What lies in a results folder, seen from a plan.
fn on_disk(store: &Store, expansion: &Expansion) -> Result<OnDisk, Failure> {
    let disk = OnDisk::new(store.list()?, expansion).with_deleted(store.deleted()?);
    let tries = store.tries_of(&|id| disk.is_wanted(id))?;
    Ok(disk.with_tries(tries))
}
