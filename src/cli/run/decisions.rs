//! The decision about each run of a plan.

use std::collections::HashSet;

use super::super::estimate::{Cost, Estimator};
use super::super::selection::Selection;
use super::super::workspace::Workspace;
use super::args::RunArgs;
use crate::cli::failure::Failure;
use crate::cli::{connection_limits, preflight};
use crate::expand::PlannedRun;
use crate::report::progress::Outlook;
use crate::sweep::resume::{Decision, Wishes};
use crate::units::text::counted;

/// Whether a run is to be executed.
pub(super) fn is_to_do(decision: &Option<Decision>) -> bool {
    decision.as_ref().is_some_and(|decision| decision.action.is_work())
}

/// Returns the decision for each run; `None` if the run is not selected.
pub(super) fn decide(
    workspace: &Workspace,
    selection: &Selection,
    wishes: Wishes,
) -> Result<Vec<Option<Decision>>, Failure> {
    let picked = selection.pick(workspace.plan(), &workspace.expansion)?;
    let runs = workspace.expansion.runs.iter().zip(picked.runs);
    Ok(runs.map(|(run, picked)| picked.then(|| workspace.decide(run, wishes))).collect())
}

/// Returns the selected runs, each with its decision.
pub(super) fn decided<'a>(
    workspace: &'a Workspace,
    decisions: &'a [Option<Decision>],
) -> impl Iterator<Item = (&'a PlannedRun, &'a Decision)> {
    let runs = workspace.expansion.runs.iter().zip(decisions);
    runs.filter_map(|(run, decision)| Some((run, decision.as_ref()?)))
}

pub(super) fn any_work(decisions: &[Option<Decision>]) -> bool {
    decisions.iter().flatten().any(|decision| decision.action.is_work())
}

/// Returns the number of selected runs that are not to be executed; a run that several sweeps share is
/// counted once.
pub(super) fn settled(workspace: &Workspace, decisions: &[Option<Decision>]) -> usize {
    let settled = decided(workspace, decisions).filter(|(_, decision)| !decision.action.is_work());
    settled.map(|(run, _)| run.id).collect::<HashSet<_>>().len()
}

pub(super) fn runs(count: usize) -> String {
    format!("{} to do", counted(count, "run"))
}

/// Returns the time and the money of the runs to do, and the expectations about their sweep.
pub(super) fn expected(args: &RunArgs, workspace: &Workspace, decisions: &[Option<Decision>]) -> (Cost, Outlook) {
    let estimator = Estimator::of(workspace.plan(), &workspace.expansion, &workspace.disk);
    let todo = decisions.iter().enumerate().filter(|(_, decision)| is_to_do(decision)).map(|(at, _)| at);
    let cost = estimator.time(&todo.collect(), args.jobs);
    let outlook = estimator.outlook(&cost);
    (cost, outlook)
}

/// Rejects runs that need a secret, a program or a file that this machine lacks, before anything is sent or
/// started.
pub(super) fn has_all(args: &RunArgs, workspace: &Workspace, decisions: &[Option<Decision>]) -> Result<(), Failure> {
    let todo = decided(workspace, decisions).filter(|(_, decision)| decision.action.is_work());
    let lacking = preflight::lacking(workspace, args.plan_folder(), todo.map(|(run, _)| run));
    if lacking.is_empty() { Ok(()) } else { Err(Failure::Usage(lacking.join("\nerror: "))) }
}

/// Rejects runs for which this machine has too few files or ports before anything is written or sent,
/// because a sweep that failed in its last rung would have wasted hours.
pub(super) fn have_room(args: &RunArgs, workspace: &Workspace, decisions: &[Option<Decision>]) -> Result<(), Failure> {
    let todo = decided(workspace, decisions).filter(|(_, decision)| decision.action.is_work());
    let obstacles = connection_limits::obstacles(workspace, todo.map(|(run, _)| run), args.jobs);
    if obstacles.is_empty() { Ok(()) } else { Err(Failure::Usage(obstacles.join("\nerror: "))) }
}
