//! What most commands begin with: a plan, its runs, and what is on disk of them.

use std::path::Path;

use super::changes::Changes;
use super::chosen_runs::Chooser;
use super::selection::Selection;
use super::trails::trail;
use crate::cli::failure::Failure;
use crate::cli::options::Folder;
use crate::cli::{answers, stderr};
use crate::expand::{Expansion, PlannedRun, expand};
use crate::plan::{Endpoint, Loaded, Plan};
use crate::report::Trail;
use crate::report::format::plain;
use crate::store::{RunRecord, Store};
use crate::sweep::choose::Chosen;
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
        let mut expansion = expand(&loaded.plan)?;
        let store = Store::open(&folder.results);
        warn_of_no_inventory(&store);
        let disk = on_disk(&store, &expansion)?;
        let (chosen, trails) = choose(&store, &loaded.plan, &mut expansion);
        Ok(Workspace { loaded, expansion, store, disk, chosen, trails, allow_outside: changes.allow_outside() })
    }

    /// Lists the results folder anew.
    pub(crate) fn look_again(&mut self) -> Result<(), Failure> {
        self.disk = on_disk(&self.store, &self.expansion)?;
        (self.chosen, self.trails) = choose(&self.store, &self.loaded.plan, &mut self.expansion);
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

/// How the pools of a plan stand, and how they came to; those of their members that are there or asked for are put among its runs.
fn choose(store: &Store, plan: &Plan, expansion: &mut Expansion) -> (Vec<Chosen>, Vec<Trail>) {
    if expansion.pools.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let chooser = Chooser::new(store, plan);
    let chosen: Vec<Chosen> = expansion.pools.iter().map(|pool| chooser.choose(pool)).collect();
    let trails = expansion.pools.iter().zip(&chosen).map(|(pool, chosen)| trail(&chooser, pool, chosen)).collect();
    expansion.choose(&chosen.iter().map(Chosen::members).collect::<Vec<_>>());
    (chosen, trails)
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
