//! The output of `run` before it executes anything.

use std::collections::HashSet;

use indexmap::IndexSet;

use super::super::budget::BudgetState;
use super::super::environment::Looks;
use super::super::preview::choices::most_in_all;
use super::super::stages;
use super::super::workspace::Workspace;
use super::args::RunArgs;
use super::decisions::{any_work, decided, expected, runs};
use crate::expand::{PlannedRun, Waits};
use crate::report::format::plain;
use crate::sweep::event::{Naming, RunView};
use crate::sweep::resume::{Action, Decision};

/// The maximum number of runs to do that are listed with their reasons.
const MOST_LISTED: usize = 20;

/// Announces the work that is about to begin.
pub(super) fn announce(args: &RunArgs, workspace: &Workspace, decisions: &[Option<Decision>], looks: &Looks) {
    let screen = args.screen().with_times();
    let mut seen = HashSet::new();
    // A run that several sweeps share is counted once.
    let chosen: Vec<_> = decided(workspace, decisions).filter(|(run, _)| seen.insert(run.id)).collect();
    let (todo, rest): (Vec<_>, Vec<_>) = chosen.iter().partition(|(_, decision)| decision.action.is_work());
    let lacks = |action: Action| matches!(action, Action::Pruned | Action::GivenUp);
    let (lacking, there): (Vec<_>, Vec<_>) = rest.into_iter().partition(|(_, decision)| lacks(decision.action));
    let name = plain(&workspace.plan().name);
    if any_work(decisions) {
        let words = workspace.budget.iter().flat_map(BudgetState::words);
        words.for_each(|words| screen.line(&format!("budget: {words}")));
    }
    let results = args.folder.results.display();
    let given_up = lacking.iter().filter(|(_, decision)| decision.action == Action::GivenUp).count();
    let is_not_needed = |run: &PlannedRun| workspace.expansion.why_pruned(run).is_some();
    let not_needed = lacking.iter().filter(|(run, decision)| decision.action == Action::Pruned && is_not_needed(run));
    let not_needed = not_needed.count();
    let not_needed = (not_needed > 0).then(|| format!("{not_needed} skipped"));
    let given_up = (given_up > 0).then(|| format!("{given_up} given up; --redo given-up retries"));
    if todo.is_empty() && lacking.is_empty() && there.is_empty() {
        say_that_all_wait(args, workspace, &name);
    } else if todo.is_empty() {
        let others: String = [given_up, not_needed].into_iter().flatten().map(|words| format!(", {words}")).collect();
        let sent = if looks.any() { "servers were only queried for their version" } else { "no request was sent" };
        screen.line(&format!(
            "{name}: nothing to do; {} in {results}{others}; {sent}",
            match there.len() {
                _ if !lacking.is_empty() => {
                    format!("the results of {} of {} runs are", there.len(), there.len() + lacking.len())
                }
                1 => "the result of the one run is".to_owned(),
                count => format!("the results of all {count} runs are"),
            }
        ));
        looks.lines().iter().for_each(|line| screen.line(&format!("  {}", plain(line))));
    } else {
        let cached = (!there.is_empty()).then(|| format!("{} are already done", there.len()));
        let settled: Vec<String> = [cached, given_up, not_needed].into_iter().flatten().collect();
        let settled = if settled.is_empty() { String::new() } else { format!(" ({})", settled.join(", ")) };
        let time = expected(args, workspace, decisions).0.time_words();
        screen.line(&format!("{name}: {}{settled}, {time}; results go to {results}", runs(todo.len())));
        let is_told = |run: &PlannedRun, decision: &Decision| {
            args.loudness.verbose || decision.action == Action::Redo || workspace.disk.deleted(&run.id).is_some()
        };
        let told: Vec<_> = todo.iter().filter(|(run, decision)| is_told(run, decision)).collect();
        let naming = Naming::of(&workspace.expansion.runs);
        for (run, decision) in told.iter().take(MOST_LISTED) {
            let view = RunView::among(0, run, &naming);
            screen.line(&format!("  {} ({}): {}", view.name, run.id.short(), plain(&decision.reason)));
        }
        if told.len() > MOST_LISTED {
            screen.line(&format!(
                "  and {} more: `preview --all` lists every run with its reason",
                told.len() - MOST_LISTED
            ));
        }
        if let Some(most) = most_in_all(workspace) {
            screen.line(&format!("  searches and ladders request their runs one by one: {most} in all"));
        }
        let pending = stages::pending(&stages::selected(workspace, &args.selection));
        for line in stages::taken(workspace, decisions).into_iter().chain(pending) {
            screen.line(&format!("  {line}"));
        }
    }
}

/// Reports that no selected cell has a run id yet, because each cell waits for an earlier sweep, or
/// an earlier sweep decided against it.
fn say_that_all_wait(args: &RunArgs, workspace: &Workspace, name: &str) {
    let waiting = stages::selected(workspace, &args.selection);
    let runs: usize = waiting.iter().map(|cell| cell.repeats as usize).sum();
    let when: IndexSet<&str> = waiting.iter().map(|cell| cell.state.when_ids_come()).collect();
    let when = when.into_iter().collect::<Vec<_>>().join("; ");
    let has = if runs == 1 { "selected run has no id" } else { "selected runs have no ids" };
    let chosen =
        waiting.iter().any(|cell| cell.state == Waits::Pending) && !args.selection.typed(str::to_owned).is_empty();
    let remedy = if chosen { "; also select the sweeps that they wait for" } else { "" };
    let text = format!("{name}: nothing to do; {runs} {has} yet: {when}{remedy}; no request was sent");
    args.screen().with_times().line(&text);
}
