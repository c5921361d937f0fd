//! The input of most commands: a plan, its runs, and their state on disk.

use std::collections::HashSet;
use std::path::Path;

use super::budget::{self, BudgetState};
use super::changes::Changes;
use super::chosen_runs::Chooser;
use super::selection::Selection;
use super::trails::trail;
use crate::cli::failure::Failure;
use crate::cli::options::Folder;
use crate::cli::{answers, stderr};
use crate::expand::{Expansion, Known, PlannedRun, RunId, Series, expand_with};
use crate::plan::{Endpoint, Loaded, Plan, ResolvedPlan, Step, Sweep};
use crate::report::Trail;
use crate::report::format::plain;
use crate::store::{RunRecord, Store};
use crate::sweep::choose::Chosen;
use crate::sweep::endings::CellStanding;
use crate::sweep::found::found;
use crate::sweep::on_disk::OnDisk;
use crate::sweep::resume::{Action, Decision, Wishes, decide};

/// A plan with its runs and the results folder.
pub(crate) struct Workspace {
    /// The plan and the places of its values.
    pub loaded: Loaded,
    /// The runs of the plan.
    pub expansion: Expansion,
    /// The results folder.
    pub store: Store,
    /// The contents of the results folder.
    pub disk: OnDisk,
    /// The known results of sweeps on which other sweeps depend.
    pub(crate) known: Known,
    /// The state of each search and ladder.
    pub(crate) chosen: Vec<Chosen>,
    /// The decisions of each search and ladder.
    pub(crate) trails: Vec<Trail>,
    /// For each series of the plan, the state of its cells, whose repeats may end early.
    pub(crate) standing: Vec<Vec<CellStanding>>,
    /// The state of the plan's budget; `None` if it has none.
    pub(crate) budget: Option<BudgetState>,
    /// Whether plans may use files outside their folder.
    pub(crate) allow_outside: bool,
}

impl Workspace {
    /// Reads the plan with the changes of the call, expands it and lists the results folder.
    pub(super) fn open(path: &Path, changes: &Changes, folder: &Folder) -> Result<Workspace, Failure> {
        let loaded = changes.load(path)?;
        let store = folder.store()?;
        warn_of_no_inventory(&store);
        let Staged { mut expansion, known, chosen, trails } = staged(&store, &loaded.plan)?;
        let disk = OnDisk::read(&store, &expansion)?;
        let standing = end_early(&store, &loaded.plan, &mut expansion);
        let allow_outside = changes.allow_outside();
        let mut workspace =
            Workspace { loaded, expansion, store, disk, known, chosen, trails, standing, budget: None, allow_outside };
        workspace.keep_budget();
        Ok(workspace)
    }

    /// Lists the results folder again; results of earlier sweeps may turn pending cells into runs.
    pub(crate) fn look_again(&mut self) -> Result<(), Failure> {
        Staged { expansion: self.expansion, known: self.known, chosen: self.chosen, trails: self.trails } =
            staged(&self.store, &self.loaded.plan)?;
        self.disk = OnDisk::read(&self.store, &self.expansion)?;
        self.standing = end_early(&self.store, &self.loaded.plan, &mut self.expansion);
        self.keep_budget();
        Ok(())
    }

    /// Returns the inputs of the budget.
    fn asked(&self) -> budget::Asked<'_> {
        budget::Asked {
            plan: &self.loaded.plan,
            expansion: &self.expansion,
            disk: &self.disk,
            chosen: &self.chosen,
            standing: &self.standing,
        }
    }

    /// Before anything is sent, rejects a budget that does not allow even one run. The error names the
    /// budget's place in the plan.
    pub(super) fn budget_allows_a_run(&self) -> Result<(), Failure> {
        let too_little = self.budget.as_ref().and_then(|state| budget::below_one_run(&self.asked(), state));
        let Some(too_little) = too_little else { return Ok(()) };
        let place = self.loaded.written(&[Step::from("budget"), Step::from(too_little.of)]);
        let place = place.map(|origin| format!("{}: ", origin.place)).unwrap_or_default();
        Err(Failure::Usage(format!("{place}{}", too_little.words())))
    }

    /// Whether the plan has a budget that includes runs whose cost is unknown beforehand.
    pub(super) fn has_uncounted_costs(&self) -> bool {
        self.budget.as_ref().is_some_and(|state| state.limits.iter().any(|limit| limit.runs_not_counted > 0))
    }

    /// Returns why the budget skips a run, based on the current results: all sweeps that request the run are
    /// optional and no longer fit. Otherwise `None`.
    pub(super) fn over_budget(&self, run: &PlannedRun) -> Option<String> {
        let plan = &self.loaded.plan;
        let asking = || self.expansion.runs.iter().filter(|other| other.id == run.id).map(|other| &*other.sweep);
        if !asking().all(|name| plan.sweeps.get(name).is_some_and(|sweep| sweep.optional)) {
            return None;
        }
        // If the folder cannot be read, nothing is skipped.
        let Staged { mut expansion, chosen, .. } = staged(&self.store, plan).ok()?;
        let disk = OnDisk::read(&self.store, &expansion).ok()?;
        let standing = end_early(&self.store, plan, &mut expansion);
        let asked = budget::Asked { plan, expansion: &expansion, disk: &disk, chosen: &chosen, standing: &standing };
        let (_, left_out) = budget::decide(&asked)?;
        let why = |name: &str| left_out.iter().find(|(other, _)| other == name).map(|(_, why)| why.clone());
        asking().map(why).collect::<Option<Vec<String>>>()?.into_iter().next()
    }

    /// Skips the sweeps that exceed the budget.
    fn keep_budget(&mut self) {
        self.expansion.leave_out(Vec::new());
        let Some((state, left_out)) = budget::decide(&self.asked()) else { return };
        self.expansion.leave_out(left_out);
        self.budget = Some(state);
    }

    /// Returns the plan.
    pub(super) fn plan(&self) -> &Plan {
        &self.loaded.plan
    }

    /// Returns the selected runs of the plan, without repeats that are neither needed nor present.
    pub(super) fn picked(&self, selection: &Selection) -> Result<Vec<&PlannedRun>, Failure> {
        let runs = &self.expansion.runs;
        let picked = selection.pick_runs(self.plan(), &self.expansion)?;
        let is_wanted = |run: &PlannedRun| self.expansion.why_pruned(run).is_none() || self.disk.is_whole(&run.id);
        Ok(runs.iter().zip(picked).filter(|(run, is)| *is && is_wanted(run)).map(|(run, _)| run).collect())
    }

    /// Returns the decision about one run.
    pub(crate) fn decide(&self, run: &PlannedRun, wishes: Wishes) -> Decision {
        let is_invalid = |record: &RunRecord| answers::is_invalid(&self.store, record, self.plan());
        let retries = self.plan().endpoints.get(&run.spec.endpoint.name).map_or(0, Endpoint::retries);
        let decision = decide(run, &self.disk, (wishes, retries), &is_invalid);
        if let Some(why) = self.expansion.why_left_out(run).filter(|_| decision.action.is_work()) {
            return Decision::pruned(why);
        }
        // With --force, unneeded repeats are executed too, because the results that made them unnecessary
        // are measured again.
        match self.expansion.why_pruned(run).filter(|_| decision.action == Action::New && !wishes.force) {
            Some(why) => Decision::pruned(why),
            None => decision,
        }
    }

    /// Decides again on repeats that the current results make unnecessary, if any of these results will be
    /// measured again. Such repeats may be needed after all.
    pub(crate) fn reopen(&self, decisions: &mut [Option<Decision>]) {
        let is_again = |decision: &Option<Decision>| decision.as_ref().is_some_and(|d| d.action == Action::Redo);
        let runs = || self.expansion.runs.iter().zip(decisions.iter());
        let again: HashSet<RunId> = runs().filter(|(_, decision)| is_again(decision)).map(|(run, _)| run.id).collect();
        if again.is_empty() {
            return;
        }
        let is_open = |series: &&Series| series.runs().any(|run| again.contains(&run.id));
        let open = self.expansion.series.iter().filter(is_open).flat_map(|series| series.runs().map(|run| run.id));
        let open: HashSet<RunId> = open.collect();
        for (run, decision) in self.expansion.runs.iter().zip(decisions) {
            let is_pruned = decision.as_ref().is_some_and(|decision| decision.action == Action::Pruned);
            if is_pruned && open.contains(&run.id) && self.expansion.why_pruned(run).is_some() {
                *decision = Some(self.decide(run, Wishes { force: true, ..Wishes::default() }));
            }
        }
    }
}

/// Returns the runs of a plan, as far as they are known from the results folder.
pub(super) fn expansion(store: &Store, plan: &ResolvedPlan) -> Result<Expansion, Failure> {
    staged(store, plan).map(|staged| staged.expansion)
}

/// The runs of a plan as far as they are known, and the state and decisions of its searches and ladders.
struct Staged {
    expansion: Expansion,
    known: Known,
    chosen: Vec<Chosen>,
    trails: Vec<Trail>,
}

/// Returns the runs of a plan based on the results folder, and the state of its pools. The result of an
/// earlier sweep turns the cells that wait for it into runs, for which yet another sweep may wait.
fn staged(store: &Store, plan: &ResolvedPlan) -> Result<Staged, Failure> {
    let is_staged = plan.sweeps.values().any(|sweep| Sweep::asks(sweep).next().is_some());
    let mut known = Known::default();
    let mut expansion = expand_with(plan, &known)?;
    refresh(store, &expansion)?;
    if expansion.pools.is_empty() && !is_staged {
        return Ok(Staged { expansion, known, chosen: Vec::new(), trails: Vec::new() });
    }
    let chooser = Chooser::new(store, plan);
    loop {
        let chosen: Vec<Chosen> = expansion.pools.iter().map(|pool| chooser.choose(pool)).collect();
        if !chosen.is_empty() {
            expansion.choose(&chosen.iter().map(Chosen::members).collect::<Vec<_>>());
        }
        let now = if is_staged { found(plan, &expansion, &chosen, &chooser) } else { known.clone() };
        // Sweeps depend only on earlier sweeps, so the loop ends after at most as many rounds as
        // there are sweeps.
        if now == known {
            let trails =
                expansion.pools.iter().zip(&chosen).map(|(pool, chosen)| trail(&chooser, pool, chosen)).collect();
            return Ok(Staged { expansion, known, chosen, trails });
        }
        known = now;
        expansion = expand_with(plan, &known)?;
        refresh(store, &expansion)?;
    }
}

/// Fetches the possible runs of a plan that were committed elsewhere.
fn refresh(store: &Store, expansion: &Expansion) -> Result<(), Failure> {
    Ok(store.refresh_these(|| expansion.possible().map(|run| run.id.short()).collect())?)
}

/// Returns the state of a plan's cells whose repeats may end early.
fn end_early(store: &Store, plan: &Plan, expansion: &mut Expansion) -> Vec<Vec<CellStanding>> {
    if expansion.series.is_empty() {
        return Vec::new();
    }
    let chooser = Chooser::new(store, plan);
    let all = &expansion.series;
    let standing: Vec<Vec<CellStanding>> = all.iter().map(|series| chooser.stand(series, all, &|_| false)).collect();
    expansion.end_early(standing.iter().map(|cells| cells.iter().map(|cell| cell.end.clone()).collect()).collect());
    standing
}

/// Warns if the path of the inventory is occupied by something else; the runs can still be used.
pub(crate) fn warn_of_no_inventory(store: &Store) {
    if let Some(error) = store.no_inventory() {
        stderr::complain(&format!("warning: {}", plain(&error.to_string())));
    }
}
