//! `sweepline run PLAN` executes missing runs and shows the results.

mod announce;
mod args;
mod conclude;
mod decisions;
mod execute;
mod metrics;
mod others;
mod outlets;
mod part;
mod stage;

use std::path::Path;

use super::budget::BudgetState;
use super::interrupt::listen_for_signals;
use super::limits::raise_file_limit;
use super::preview::View;
use super::stages::{self, Stages};
use super::workspace::Workspace;
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::TextOrJson;
use crate::cli::trust::{PlanCommand, Trust};
use crate::cli::{gate, gate_page, ignored_proxies, lints, missing_texts, preview};
use crate::report::format::plain;
use crate::server::launch::left_servers;
use crate::store::{Writer, ignore_file_size_signal};
use crate::submit::Part;
use crate::sweep::resume::Wishes;
use crate::sweep::{Summary, secret_behind};
pub(super) use args::RunArgs;
use conclude::conclude;
use decisions::{any_work, decide, decided, have_room};
use execute::{Means, execute_stages};
use outlets::Outlets;
use stage::Stage;

/// Executes a plan.
pub(super) fn run(mut args: RunArgs) -> Result<Exit, Failure> {
    let wishes = args.again.wishes();
    args.shown.check()?;
    args.changes.spread(args.workers);
    if wishes.force || wishes.redo_invalid {
        args.folder.must_be_own("--force and --redo invalid")?;
    }
    let mut workspace = Workspace::open(&args.plan, &args.changes, &args.folder)?;
    args.frozen.check(&workspace)?;
    let part = part::select(&mut args, &workspace)?;
    if args.dry_run {
        let view = View { format: TextOrJson::Text, all: false, asked: None, jobs: args.jobs };
        preview::show(&workspace, &args.selection, wishes, view)?;
        return Ok(Exit::Done);
    }
    args.no_exec.check(|| commands(&args, &workspace, part.as_ref()))?;
    workspace.disk.remember();
    workspace.budget_allows_a_run()?;
    if args.gate {
        gate::is_one(workspace.plan())?;
    }
    args.markdown.as_deref().map_or(Ok(()), gate_page::check)?;
    // Unmet requirements are reported before anything is done.
    let outlets = Outlets::open(&args, &workspace.plan().name)?;
    let mut stages = Stages::default();
    let mut stage = Stage::next(&args, &workspace, (wishes, &stages))?;
    let writer = lock(&args, &mut workspace, part.as_ref(), (wishes, &stages), &mut stage)?;
    if let Some(writer) = &writer {
        for recovered in writer.recovered() {
            let text = format!("run {}: {:?} after an earlier kill", recovered.id, recovered.remedy);
            args.screen().with_times().line(&text);
        }
        end_left_servers(&args, writer, part.as_ref());
    }
    stage.announce(&args, &workspace);
    tell_notes(&args, &workspace, &stage);
    let summary = match writer.filter(|_| any_work(&stage.decisions)) {
        Some(writer) => {
            let stop = listen_for_signals()?;
            let means = Means { writer: &writer, stop: &stop, outlets: &outlets };
            execute_stages(&args, &mut workspace, (wishes, &mut stages), &mut stage, means)?
        }
        None => Summary::default(),
    };
    drop(outlets);
    if follows_from_results(&workspace) {
        workspace.look_again()?;
        stage.decisions = decide(&workspace, &args.selection, Wishes::default())?;
        tell_what_followed(&args, &workspace);
    }
    conclude(&args, &workspace, &stage.decisions, &summary)
}

/// Locks the results folder if there is something to do under the lock: execute runs, end abandoned
/// servers, send results, or update the inventory. Returns `None` if there is nothing to do. The decisions
/// for the first stage are made again under the lock.
fn lock(
    args: &RunArgs,
    workspace: &mut Workspace,
    part: Option<&Part>,
    (wishes, stages): (Wishes, &Stages),
    stage: &mut Stage,
) -> Result<Option<Writer>, Failure> {
    if any_work(&stage.decisions) {
        have_room(args, workspace, &stage.decisions)?;
        raise_file_limit();
        ignore_file_size_signal().map_err(|error| Failure::Unexpected(error.into()))?;
        let writer = part::lock(workspace, part)?;
        // Another sweepline process may have committed runs up to this point, and taking the lock may
        // have completed interrupted commits.
        workspace.look_again()?;
        stage.decide_again(args, workspace, (wishes, stages))?;
        return Ok(Some(writer));
    }
    let left = left_servers(&workspace.store.layout().servers());
    let has_left = left.iter().any(|left| part.is_none_or(|part| part.has(left.endpoint())));
    if workspace.store.has_unsent()? {
        return Ok(Some(part::lock(workspace, part)?));
    }
    // If every result is present and only the inventory is behind, the results are shown even if the
    // folder cannot be written.
    let is_wanted = has_left || workspace.disk.wants_entries();
    Ok(is_wanted.then(|| part::lock(workspace, part).ok()).flatten())
}

/// Returns every command that the selected runs may execute, and those that end servers of an earlier sweep.
fn commands(args: &RunArgs, workspace: &Workspace, part: Option<&Part>) -> Result<Vec<PlanCommand>, Failure> {
    let Workspace { expansion, .. } = workspace;
    let picked = args.selection.pick(workspace.plan(), expansion)?;
    let known = expansion.runs.iter().zip(&picked.runs).filter(|(_, picked)| **picked).map(|(run, _)| run);
    let chosen = expansion.pools.iter().flat_map(|pool| &pool.members).map(|member| &member.run);
    let waiting = picked.cells(&expansion.pending);
    let mut commands = Trust::of(workspace.plan(), known.chain(chosen), &waiting).commands;
    for left in left_servers(&workspace.store.layout().servers()) {
        let is_ours = part.is_none_or(|part| part.has(left.endpoint()));
        let stop = left.stop_command().filter(|_| is_ours);
        commands.extend(stop.map(|stop| PlanCommand::new(left.endpoint(), "stop", stop)));
    }
    Ok(commands)
}

/// Prints the other notes before the first stage: commands and secrets of the plan, missing texts, lint findings, and
/// ignored proxies.
fn tell_notes(args: &RunArgs, workspace: &Workspace, stage: &Stage) {
    let lints = || lints::one_line(&workspace.loaded, &args.folder, (&args.plan, &args.changes));
    let lints = any_work(&stage.decisions).then(lints).flatten();
    let proxies = any_work(&stage.decisions).then(|| ignored_proxies::note(workspace.plan())).flatten();
    let todo = decided(workspace, &stage.decisions).filter(|(_, decision)| decision.action.is_work());
    let waiting = stages::selected(workspace, &args.selection);
    let trust = Trust::of(workspace.plan(), todo.map(|(run, _)| run), &waiting);
    let trust = if any_work(&stage.decisions) { trust.lines() } else { Vec::new() };
    trust.iter().for_each(|line| args.screen().with_times().line(line));
    let notes = missing_texts::missing(workspace, &stage.decisions).into_iter().chain(lints).chain(proxies);
    notes.for_each(|line| args.screen().with_times().line(&line));
}

/// Whether results decide which runs are executed.
fn follows_from_results(workspace: &Workspace) -> bool {
    let is_chosen = !workspace.expansion.pools.is_empty() || !workspace.expansion.series.is_empty();
    is_chosen || Stages::are_several(workspace) || workspace.budget.is_some()
}

/// Reports the state of everything that depends on results.
fn tell_what_followed(args: &RunArgs, workspace: &Workspace) {
    let screen = args.screen();
    for (pool, chosen) in workspace.expansion.pools.iter().zip(&workspace.chosen) {
        screen.line(&plain(&format!("{}: {chosen}", pool.title())));
    }
    args.tell(&stages::pending(&stages::selected(workspace, &args.selection)));
    let repeats = preview::repeats::repeats(workspace);
    for sweep in workspace.plan().sweeps.keys() {
        let words = preview::repeats::words(repeats.iter().filter(|cell| cell.sweep == *sweep));
        words.iter().for_each(|words| screen.line(&plain(&format!("{sweep}: {words}"))));
    }
    let words = workspace.budget.iter().flat_map(BudgetState::words);
    words.for_each(|words| screen.line(&format!("budget: {words}")));
}

/// Ends servers that an earlier sweep of this folder launched but could not end, because it was killed
/// together with their supervisors. This process holds the folder's lock, so none of these servers is in use.
fn end_left_servers(args: &RunArgs, writer: &Writer, part: Option<&Part>) {
    let screen = args.screen().with_times();
    let folder = args.plan.parent().unwrap_or(Path::new(""));
    let left = left_servers(&writer.store().layout().servers()).into_iter();
    for left in left.filter(|left| part.is_none_or(|part| part.has(left.endpoint()))) {
        screen.line(&left.end(&|reference| secret_behind(reference, folder)));
    }
}
