//! `sweepline run PLAN`: executes what is missing, shows how it came out.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::report::progress::{Screen, Talk, duration};
use crate::store::{Store, Writer, ignore_file_size_signal};
use crate::sweep::event::{Event, Observer, RunView};
use crate::sweep::resume::{Action, Decision, Wishes};
use crate::sweep::{self, Summary, Sweep, SweepError};

use super::limits::raise_file_limit;
use super::selection::Selection;
use super::workspace::Workspace;
use super::{Colour, Exit, Failure, Folder, Loudness, TextOrJson, answers, preview};

/// The arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The plan, YAML or TOML
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    #[command(flatten)]
    selection: Selection,
    /// Execute the selected runs although their results are there; the old ones move to superseded/
    #[arg(long)]
    force: bool,
    /// Execute runs of this kind again
    #[arg(long, value_enum, value_name = "KIND")]
    redo: Option<Redo>,
    /// Most runs at once; runs on one resource never overlap
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: u16,
    /// Stop at the first run that fails
    #[arg(long)]
    fail_fast: bool,
    /// Only show what would be done, like `preview`
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    folder: Folder,
    #[command(flatten)]
    loudness: Loudness,
    #[command(flatten)]
    colour: Colour,
}

/// Which committed runs are executed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Redo {
    /// Those whose verdict is invalid.
    Invalid,
}

/// Executes a plan.
pub fn run(args: RunArgs) -> Result<Exit, Failure> {
    let wishes = Wishes { force: args.force, redo_invalid: args.redo == Some(Redo::Invalid) };
    if args.dry_run {
        let workspace = Workspace::open(&args.plan, &args.folder)?;
        preview::show(&workspace, &args.selection, wishes, TextOrJson::Text)?;
        return Ok(Exit::Done);
    }
    let mut workspace = Workspace::open(&args.plan, &args.folder)?;
    let picked = args.selection.pick(workspace.plan(), &workspace.expansion.runs)?;
    let mut decisions = decide(&workspace, &picked, wishes);
    let writer = if any_work(&decisions) {
        raise_file_limit();
        ignore_file_size_signal().map_err(|error| Failure::Unexpected(error.into()))?;
        let writer = Store::lock(&args.folder.results)?;
        // Until now another sweepline may have committed runs, and taking the lock may have finished interrupted ones.
        workspace.look_again()?;
        decisions = decide(&workspace, &picked, wishes);
        Some(writer)
    } else {
        None
    };
    for recovered in writer.iter().flat_map(Writer::recovered) {
        let text = format!("run {}: {:?} after an earlier kill", recovered.id, recovered.remedy);
        Screen::new(args.loudness.talk()).line(&text);
    }
    announce(&args, &workspace, &decisions);
    let summary = match writer.filter(|_| any_work(&decisions)) {
        Some(writer) => execute(&args, &workspace, &decisions, &writer)?,
        None => Summary::default(),
    };
    conclude(&args, &workspace, &picked, &summary)
}

/// For each run what is to be done with it; none where it is not picked.
fn decide(workspace: &Workspace, picked: &[bool], wishes: Wishes) -> Vec<Option<Decision>> {
    let runs = workspace.expansion.runs.iter().zip(picked);
    runs.map(|(run, picked)| picked.then(|| workspace.decide(run, wishes))).collect()
}

fn any_work(decisions: &[Option<Decision>]) -> bool {
    decisions.iter().flatten().any(|decision| decision.action.is_work())
}

/// Says what is going to be done.
fn announce(args: &RunArgs, workspace: &Workspace, decisions: &[Option<Decision>]) {
    let screen = Screen::new(args.loudness.talk());
    let chosen: Vec<_> = workspace
        .expansion
        .runs
        .iter()
        .zip(decisions)
        .filter_map(|(run, decision)| decision.as_ref().map(|decision| (run, decision)))
        .collect();
    let mut seen = std::collections::HashSet::new();
    let todo: Vec<_> =
        chosen.iter().filter(|(run, decision)| decision.action.is_work() && seen.insert(run.id)).collect();
    let name = &workspace.plan().name;
    let there = chosen.iter().filter(|(_, decision)| decision.action == Action::Cached).count();
    if chosen.is_empty() {
        screen.line(&format!("{name}: no run is selected"));
    } else if todo.is_empty() {
        let results = args.folder.results.display();
        screen.line(&format!("{name}: nothing to do, all {} runs are in {results}; no request was sent", chosen.len()));
    } else {
        let time: u64 =
            todo.iter().map(|(run, _)| RunView::new(0, run).expected_ns() + run.spec.between.cooldown.0).sum::<u64>()
                / 1_000_000_000;
        let cached = if there > 0 { format!(", {there} are there already") } else { String::new() };
        screen.line(&format!("{name}: {} runs to do{cached}; about {}", todo.len(), duration(time.max(1))));
        for (run, decision) in todo.iter().filter(|(_, d)| args.loudness.verbose || d.action == Action::Redo) {
            let view = RunView::new(0, run);
            screen.line(&format!("  {} ({}): {}", view.name, run.id.short(), decision.reason));
        }
    }
}

fn execute(
    args: &RunArgs,
    workspace: &Workspace,
    decisions: &[Option<Decision>],
    writer: &Writer,
) -> Result<Summary, Failure> {
    let stop = listen_for_signals()?;
    let action = |decision: &Option<Decision>| decision.as_ref().map(|decision| decision.action);
    let sweep = Sweep {
        plan: workspace.plan(),
        folder: args.plan.parent().unwrap_or(Path::new("")),
        expansion: &workspace.expansion,
        todo: decisions.iter().map(|decision| action(decision).is_some_and(Action::is_work)).collect(),
        replaces: decisions
            .iter()
            .map(|d| d.as_ref().filter(|d| d.action == Action::Redo).map(|d| d.reason.clone()))
            .collect(),
        writer,
        jobs: usize::from(args.jobs),
        fail_fast: args.fail_fast,
    };
    let screen = Screen::new(args.loudness.talk());
    let mut listener = Listener { screen, store: writer.store(), workspace };
    sweep::run(&sweep, &mut listener, stop).map_err(|error| match error {
        SweepError::Store(error) => Failure::Store(error),
        other => Failure::Unexpected(other.into()),
    })
}

/// Shows events; a committed run with its main figures.
struct Listener<'a> {
    screen: Screen,
    store: &'a Store,
    workspace: &'a Workspace,
}

impl Observer for Listener<'_> {
    fn event(&mut self, event: Event) {
        let (store, plan) = (self.store, self.workspace.plan());
        self.screen.show(&event, |run| answers::one_line(store, &run.id, plan));
    }
}

/// The first SIGINT or SIGTERM asks the sweep to stop, the second ends the program at once.
fn listen_for_signals() -> Result<watch::Receiver<bool>, Failure> {
    let (sender, receiver) = watch::channel(false);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Unexpected(error.into()))?;
    let mut signals = {
        let _inside = runtime.enter();
        let listen = |kind| signal(kind).map_err(|error| Failure::Unexpected(error.into()));
        (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?)
    };
    let listen = move || {
        runtime.block_on(async {
            for times in 1.. {
                tokio::select! {
                    _ = signals.0.recv() => {}
                    _ = signals.1.recv() => {}
                }
                if times > 1 {
                    std::process::exit(i32::from(Exit::Interrupted.code()));
                }
                sender.send_replace(true);
            }
        });
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(listen).map_err(|e| Failure::Unexpected(e.into()))?;
    Ok(receiver)
}

/// Prints the results and what one would type next.
fn conclude(args: &RunArgs, workspace: &Workspace, picked: &[bool], summary: &Summary) -> Result<Exit, Failure> {
    let runs: Vec<_> =
        workspace.expansion.runs.iter().zip(picked).filter(|(_, picked)| **picked).map(|(run, _)| run).collect();
    let fresh = Store::open(&args.folder.results);
    let invalid = answers::print_table(&fresh, workspace.plan(), &runs, args.colour)?;
    let screen = Screen::new(args.loudness.talk());
    say_what_is_missing(&screen, summary);
    if args.loudness.talk() > Talk::Quiet {
        say_what_next(&screen, args, workspace, &runs);
    }
    Ok(if summary.interrupted {
        Exit::Interrupted
    } else if summary.failed + summary.skipped + summary.left > 0 || invalid > 0 {
        Exit::Runs
    } else {
        Exit::Done
    })
}

fn say_what_is_missing(screen: &Screen, summary: &Summary) {
    let parts: Vec<String> = [(summary.failed, "failed"), (summary.skipped, "skipped"), (summary.left, "left to do")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if !parts.is_empty() {
        screen.line(&format!("\n{}; the same command goes on with what is missing", parts.join(", ")));
    }
}

fn say_what_next(screen: &Screen, args: &RunArgs, workspace: &Workspace, runs: &[&crate::expand::PlannedRun]) {
    let Some(first) = runs.iter().find(|run| workspace.store.run(&run.id.short()).is_ok_and(|found| found.is_some()))
    else {
        return;
    };
    let program = std::env::args().next().unwrap_or_else(|| "sweepline".to_owned());
    let folder = match args.folder.results.to_str() {
        Some("results") => String::new(),
        _ => format!(" --results {}", args.folder.results.display()),
    };
    let (plan, results) = (args.plan.display(), args.folder.results.display());
    screen.line(&format!("\nrows: {results}/runs/*/requests.parquet, one row per request\nnext:"));
    screen.line(&format!("  {program} show {}{folder}    every metric of one run", &first.id.short()[..8]));
    screen.line(&format!("  {program} export {plan}{folder} -o runs.csv    one row per run, for a spreadsheet"));
    screen.line(&format!("  edit {plan} and run it again: only what changed is measured"));
}
