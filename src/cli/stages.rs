//! The stages of a sweep: runs that wait for the result of an earlier sweep are executed once it is available.

use std::collections::{BTreeSet, HashSet};

use indexmap::{IndexMap, IndexSet};

use super::selection::Selection;
use super::workspace::Workspace;
use crate::expand::{Pending, PlannedRun, RunId, Waits};
use crate::plan::Sweep;
use crate::report::format::plain;
use crate::sweep::resume::Decision;
use crate::units::text::counted;

/// The progress of an invocation of `run` through its stages.
#[derive(Debug, Default)]
pub(super) struct Stages {
    /// Runs that a stage was to execute. Whatever their outcome was, they are not executed again in this
    /// invocation.
    tried: HashSet<RunId>,
}

impl Stages {
    /// Whether any sweep of the plan depends on the result of an earlier sweep.
    pub(super) fn are_several(workspace: &Workspace) -> bool {
        workspace.plan().sweeps.values().any(|sweep| Sweep::asks(sweep).next().is_some())
    }

    /// Removes runs that are not to be executed in this stage: runs that were already tried, and sweeps
    /// that depend on a sweep with runs to do, because those runs may change its result.
    pub(super) fn hold(&self, workspace: &Workspace, decisions: &mut [Option<Decision>]) {
        if !Stages::are_several(workspace) {
            return;
        }
        let runs = &workspace.expansion.runs;
        let is_work = |decision: &Option<Decision>| decision.as_ref().is_some_and(|one| one.action.is_work());
        for (run, decision) in runs.iter().zip(decisions.iter_mut()) {
            if is_work(decision) && self.tried.contains(&run.id) {
                *decision = None;
            }
        }
        let busy: BTreeSet<&str> =
            runs.iter().zip(&*decisions).filter(|(_, one)| is_work(one)).map(|(run, _)| &*run.sweep).collect();
        let sweeps = &workspace.plan().sweeps;
        let mut held: BTreeSet<&str> = BTreeSet::new();
        loop {
            let waits = |sweep: &Sweep| {
                sweep.asks().any(|(asked, _)| busy.contains(asked))
                    || sweep.after.0.iter().any(|before| held.contains(before.as_str()))
            };
            let more: Vec<&str> = sweeps
                .iter()
                .filter(|(name, sweep)| !held.contains(name.as_str()) && waits(sweep))
                .map(|(name, _)| name.as_str())
                .collect();
            if more.is_empty() {
                break;
            }
            held.extend(more);
        }
        for (run, decision) in runs.iter().zip(decisions) {
            if is_work(decision) && held.contains(&*run.sweep) {
                *decision = None;
            }
        }
    }

    /// Returns the number of runs of earlier stages that are not part of this one. The numbers that are
    /// shown for runs continue after those runs, whatever their outcome was.
    pub(super) fn behind(&self, workspace: &Workspace, decisions: &[Option<Decision>]) -> usize {
        let runs = workspace.expansion.runs.iter().zip(decisions);
        let tried = runs.filter(|(run, decision)| decision.is_none() && self.tried.contains(&run.id));
        tried.map(|(run, _)| run.id).collect::<HashSet<RunId>>().len()
    }

    /// Records the runs that a stage was to execute, except those that were being measured `elsewhere`.
    pub(super) fn ran(&mut self, workspace: &Workspace, decisions: &[Option<Decision>], elsewhere: &[RunId]) {
        let runs = workspace.expansion.runs.iter().zip(decisions);
        let work = runs.filter(|(_, decision)| decision.as_ref().is_some_and(|one| one.action.is_work()));
        self.tried.extend(work.map(|(run, _)| run.id).filter(|id| !elsewhere.contains(id)));
    }
}

/// Returns the loads that earlier sweeps found for the runs to do, one line for each.
pub(super) fn taken<'w>(workspace: &'w Workspace, decisions: &'w [Option<Decision>]) -> Vec<String> {
    let work = workspace.expansion.runs.iter().zip(decisions);
    let work = work.filter(|(_, decision)| decision.as_ref().is_some_and(|one| one.action.is_work()));
    let lines: IndexSet<String> = work.flat_map(|(run, _)| lines_of(run)).collect();
    lines.into_iter().collect()
}

/// Returns the loads that earlier sweeps found for the plan's runs, one line for each.
pub(super) fn all_taken(workspace: &Workspace) -> Vec<String> {
    let lines = workspace.expansion.runs.iter().flat_map(lines_of);
    lines.collect::<IndexSet<String>>().into_iter().collect()
}

fn lines_of(run: &PlannedRun) -> impl Iterator<Item = String> {
    run.spec.taken.iter().map(|taken| plain(&format!("{}: {}", run.sweep, taken.words())))
}

/// Describes the cells that have no runs (yet), with one line for each sweep, state and reason.
pub(crate) fn pending(cells: &[Pending]) -> Vec<String> {
    let mut groups: IndexMap<(&str, Waits, &str), usize> = IndexMap::new();
    for pending in cells {
        *groups.entry((&pending.sweep, pending.state, &pending.why)).or_default() += pending.repeats as usize;
    }
    let line = |((sweep, state, why), runs): (&(&str, Waits, &str), &usize)| {
        plain(&format!("{sweep}: {} {}: {why}", counted(*runs, "run"), state.words()))
    };
    groups.iter().map(line).collect()
}

/// Returns the selected cells without runs (yet). A selection that matches nothing has already been
/// rejected.
pub(super) fn selected(workspace: &Workspace, selection: &Selection) -> Vec<Pending> {
    let picked = selection.pick(workspace.plan(), &workspace.expansion);
    picked.map(|picked| picked.cells(&workspace.expansion.pending)).unwrap_or_default()
}
