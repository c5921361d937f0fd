//! `sweepline run PLAN`: executes what is missing, shows how it came out.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use clap::Args;
use tokio::sync::watch;

use super::budget::BudgetState;
use super::changes::Changes;
use super::chosen_runs::Chooser;
use super::counting::Explain;
use super::environment::Looks;
use super::estimate::{Estimator, Spans};
use super::freeze::Frozen;
use super::interrupt::listen_for_signals;
use super::left_out::LeftOut;
use super::limits::raise_file_limit;
use super::preview::View;
use super::redo::Again;
use super::selection::Selection;
use super::stages::{self, Stages};
use super::workspace::Workspace;
use crate::cli::colour::Colour;
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::{Folder, Loudness, Shown, TextOrJson};
use crate::cli::{answers, connection_limits, gate, gate_page, lints, missing_texts, preview};
use crate::expand::{PlannedRun, Pool, Series, Waits};
use crate::report::calibration;
use crate::report::format::{duration, plain};
use crate::report::progress::{Publisher, Screen};
use crate::server::client_environment;
use crate::server::launch::left_servers;
use crate::store::{RunRecord, Store, Writer, ignore_file_size_signal};
use crate::sweep::calibrate::{Known, known};
use crate::sweep::event::{Event, Naming, Observer, RunView};
use crate::sweep::resume::{Action, Decision, Wishes};
use crate::sweep::{self, Choices, EndsOf, Summary, Sweep, SweepError, secret_behind};
use crate::units::text::counted;

pub(super) use crate::units::text::quoted;

/// How many of the runs to do are listed with their reasons.
const MOST_LISTED: usize = 20;

/// The arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The plan, YAML or TOML
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    frozen: Frozen,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    again: Again,
    /// Most runs at once; runs on one resource never overlap
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: u16,
    /// Stop at the first run that fails
    #[arg(long)]
    fail_fast: bool,
    /// Exit with 4 where a cell misses the plan's `slo` or its `compare` shows a regression, with 2 where that is undecided
    #[arg(long)]
    gate: bool,
    /// Also write what was found, what followed from it and what the gate says as Markdown, for a pull request
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Only show what would be done, like `preview`
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    explain: Explain,
    #[command(flatten)]
    folder: Folder,
    #[command(flatten)]
    loudness: Loudness,
    #[command(flatten)]
    shown: Shown,
    #[command(flatten)]
    pub colour: Colour,
}

impl RunArgs {
    /// What shows how it goes.
    fn screen(&self) -> Screen {
        self.shown.screen(self.loudness)
    }

    /// The plan's folder: secrets may lie under it.
    fn plan_folder(&self) -> &Path {
        self.plan.parent().unwrap_or(Path::new(""))
    }
}

/// Executes a plan.
pub(super) fn run(args: RunArgs) -> Result<Exit, Failure> {
    let wishes = args.again.wishes();
    args.shown.check()?;
    if args.dry_run {
        let workspace = Workspace::open(&args.plan, &args.changes, &args.folder)?;
        args.frozen.check(&workspace)?;
        let view = View { format: TextOrJson::Text, all: false, asked: None, jobs: args.jobs };
        preview::show(&workspace, &args.selection, wishes, view)?;
        return Ok(Exit::Done);
    }
    let mut workspace = Workspace::open(&args.plan, &args.changes, &args.folder)?;
    args.frozen.check(&workspace)?;
    workspace.budget_allows_a_run()?;
    if args.gate {
        gate::is_one(workspace.plan())?;
    }
    args.markdown.as_deref().map_or(Ok(()), gate_page::check)?;
    let mut stages = Stages::default();
    let Stage { mut decisions, mut looks, mut changes } = what_to_do(&args, &mut workspace, (wishes, &stages))?;
    let has_left = !left_servers(&Store::open(&args.folder.results).layout().servers()).is_empty();
    let writer = if any_work(&decisions) {
        have_room(&args, &workspace, &decisions)?;
        raise_file_limit();
        ignore_file_size_signal().map_err(|error| Failure::Unexpected(error.into()))?;
        let writer = Store::lock(&args.folder.results)?;
        // Until now another sweepline may have committed runs, and taking the lock may have finished interrupted ones.
        workspace.look_again()?;
        decisions = decide(&workspace, &args.selection, wishes)?;
        changes = looks.apply(&workspace, &mut decisions)?;
        workspace.reopen(&mut decisions);
        stages.hold(&workspace, &mut decisions);
        Some(writer)
    } else if has_left {
        Store::lock(&args.folder.results).ok()
    } else if workspace.disk.wants_entries() {
        // Every result is there, and only the inventory lags. Whoever cannot write the folder now has no less of a result.
        Store::lock(&args.folder.results).ok()
    } else {
        None
    };
    for recovered in writer.iter().flat_map(Writer::recovered) {
        let text = format!("run {}: {:?} after an earlier kill", recovered.id, recovered.remedy);
        args.screen().with_times().line(&text);
    }
    if let Some(writer) = &writer {
        end_left_servers(&args, writer);
    }
    announce(&args, &workspace, &decisions, &looks);
    tell(&args, &changes);
    if let Some(line) = missing_texts::missing(&workspace, &decisions) {
        args.screen().with_times().line(&line);
    }
    if any_work(&decisions)
        && let Some(line) = lints::one_line(&workspace.loaded, &args.folder, &args.plan)
    {
        args.screen().with_times().line(&line);
    }
    let summary = match writer.filter(|_| any_work(&decisions)) {
        Some(writer) => {
            let stop = listen_for_signals()?;
            let mut all = Summary::default();
            let all = loop {
                let summary = execute(&args, &workspace, (&decisions, &looks), (&writer, &stop))?;
                let summary = measure_late(&args, &workspace, (&decisions, &looks), (&writer, &stop), summary)?;
                all = all.and(summary);
                stages.ran(&workspace, &decisions);
                let is_over = all.interrupted || *stop.borrow() || (args.fail_fast && all.failed > 0);
                if is_over || !Stages::are_several(&workspace) {
                    break all;
                }
                // What was measured may have answered what later sweeps wait for.
                workspace.look_again()?;
                Stage { decisions, looks, changes } = what_to_do(&args, &mut workspace, (wishes, &stages))?;
                if !any_work(&decisions) {
                    break all;
                }
                have_room(&args, &workspace, &decisions)?;
                announce(&args, &workspace, &decisions, &looks);
                tell(&args, &changes);
            };
            spend_the_rest(&args, &mut workspace, &looks, (&writer, &stop), all)?
        }
        None => Summary::default(),
    };
    let is_staged = Stages::are_several(&workspace);
    let is_chosen = !workspace.expansion.pools.is_empty() || !workspace.expansion.series.is_empty();
    if is_chosen || is_staged || workspace.budget.is_some() {
        workspace.look_again()?;
        decisions = decide(&workspace, &args.selection, Wishes::default())?;
        for (pool, chosen) in workspace.expansion.pools.iter().zip(&workspace.chosen) {
            args.screen().line(&plain(&format!("{}: {chosen}", pool.title())));
        }
        tell(&args, &stages::pending(&workspace));
        let repeats = preview::repeats::repeats(&workspace);
        for sweep in workspace.plan().sweeps.keys() {
            let words = preview::repeats::words(repeats.iter().filter(|cell| cell.sweep == *sweep));
            words.iter().for_each(|words| args.screen().line(&plain(&format!("{sweep}: {words}"))));
        }
        let words = workspace.budget.iter().flat_map(BudgetState::words);
        words.for_each(|words| args.screen().line(&format!("budget: {words}")));
    }
    conclude(&args, &workspace, &decisions, &summary)
}

/// What a stage is to do.
struct Stage {
    /// For each run what is to be done with it; none where that is nothing of this stage.
    decisions: Vec<Option<Decision>>,
    /// What servers said.
    looks: Looks,
    /// A line for each server that is another one now.
    changes: Vec<String>,
}

/// What the next stage is to do.
fn what_to_do(
    args: &RunArgs,
    workspace: &mut Workspace,
    (wishes, stages): (Wishes, &Stages),
) -> Result<Stage, Failure> {
    let mut decisions = decide(workspace, &args.selection, wishes)?;
    let looks = Looks::take(workspace, &decisions, args.plan_folder(), |_| true);
    let changes = looks.apply(workspace, &mut decisions)?;
    workspace.reopen(&mut decisions);
    stages.hold(workspace, &mut decisions);
    Ok(Stage { decisions, looks, changes })
}

/// Says these lines.
fn tell(args: &RunArgs, lines: &[String]) {
    lines.iter().for_each(|line| args.screen().with_times().line(&plain(line)));
}

/// Ends servers that a sweep of this folder launched and could not end, for it was killed with their supervisors. Whoever holds the
/// folder's lock knows that none of them is in use.
fn end_left_servers(args: &RunArgs, writer: &Writer) {
    let screen = args.screen().with_times();
    let folder = args.plan.parent().unwrap_or(Path::new(""));
    for left in left_servers(&writer.store().layout().servers()) {
        screen.line(&left.end(&|reference| secret_behind(reference, folder)));
    }
}

/// Compares the servers that could not be asked before the sweep and have been up since, launched ones among them, and measures again
/// what they had measured as something else; once in an invocation.
fn measure_late(
    args: &RunArgs,
    workspace: &Workspace,
    (decisions, looks): (&[Option<Decision>], &Looks),
    (writer, stop): (&Writer, &watch::Receiver<bool>),
    first: Summary,
) -> Result<Summary, Failure> {
    let is_work = |endpoint: &str| {
        let mut runs = workspace.expansion.runs.iter().zip(decisions);
        runs.any(|(run, decision)| run.spec.endpoint.name == endpoint && is_to_do(decision))
    };
    if first.interrupted || *stop.borrow() || first.committed == 0 {
        return Ok(first);
    }
    let late = Looks::take(workspace, decisions, args.plan_folder(), |name| looks.missed(name) && is_work(name))
        .with_launched(workspace, first.launched.clone());
    // What was to do is done, or left: only what had a result counts here.
    let settled = |decision: &Option<Decision>| decision.clone().filter(|decision| !decision.action.is_work());
    let mut again: Vec<Option<Decision>> = decisions.iter().map(settled).collect();
    let lines = late.apply(workspace, &mut again)?;
    if !any_work(&again) {
        return Ok(first);
    }
    lines.iter().for_each(|line| args.screen().with_times().line(&plain(line)));
    let second = execute(args, workspace, (&again, &late), (writer, stop))?;
    Ok(first.and(second))
}

/// Measures optional sweeps that the budget did not suffice for in the worst case, and does now: searches have ended, and repeats were not
/// needed.
fn spend_the_rest(
    args: &RunArgs,
    workspace: &mut Workspace,
    looks: &Looks,
    (writer, stop): (&Writer, &watch::Receiver<bool>),
    mut summary: Summary,
) -> Result<Summary, Failure> {
    let left_out = |workspace: &Workspace| workspace.budget.as_ref().map_or(0, |budget| budget.left_out.len());
    loop {
        let is_whole = summary.failed + summary.skipped + summary.refused + summary.left == 0;
        let before = left_out(workspace);
        if before == 0 || !is_whole || summary.interrupted || *stop.borrow() {
            return Ok(summary);
        }
        workspace.look_again()?;
        if left_out(workspace) >= before {
            return Ok(summary);
        }
        let decisions = decide(workspace, &args.selection, Wishes::default())?;
        let count = decisions.iter().flatten().filter(|decision| decision.action.is_work()).count();
        if count > 0 {
            let text = format!("the budget suffices for an optional sweep now: {}", runs(count));
            args.screen().with_times().line(&text);
            summary = summary.and(execute(args, workspace, (&decisions, looks), (writer, stop))?);
        }
    }
}

/// Whether a run is to be executed.
fn is_to_do(decision: &Option<Decision>) -> bool {
    decision.as_ref().is_some_and(|decision| decision.action.is_work())
}

/// For each run what is to be done with it; none where it is not picked.
fn decide(workspace: &Workspace, selection: &Selection, wishes: Wishes) -> Result<Vec<Option<Decision>>, Failure> {
    let picked = selection.pick(workspace.plan(), &workspace.expansion.runs)?;
    let runs = workspace.expansion.runs.iter().zip(picked);
    Ok(runs.map(|(run, picked)| picked.then(|| workspace.decide(run, wishes))).collect())
}

/// The runs that are picked, each with what is to be done with it.
fn decided<'a>(
    workspace: &'a Workspace,
    decisions: &'a [Option<Decision>],
) -> impl Iterator<Item = (&'a PlannedRun, &'a Decision)> {
    let runs = workspace.expansion.runs.iter().zip(decisions);
    runs.filter_map(|(run, decision)| Some((run, decision.as_ref()?)))
}

fn any_work(decisions: &[Option<Decision>]) -> bool {
    decisions.iter().flatten().any(|decision| decision.action.is_work())
}

/// Refuses what this machine has too few files or ports for, before anything is written or sent: a sweep that fails in
/// its last rung has cost its hours already.
fn have_room(args: &RunArgs, workspace: &Workspace, decisions: &[Option<Decision>]) -> Result<(), Failure> {
    let todo = decided(workspace, decisions).filter(|(_, decision)| decision.action.is_work());
    let obstacles = connection_limits::obstacles(workspace, todo.map(|(run, _)| run), args.jobs);
    if obstacles.is_empty() { Ok(()) } else { Err(Failure::Usage(obstacles.join("\nerror: "))) }
}

/// Says what is going to be done.
fn announce(args: &RunArgs, workspace: &Workspace, decisions: &[Option<Decision>], looks: &Looks) {
    let screen = args.screen().with_times();
    let mut seen = HashSet::new();
    // A run that sweeps share counts once.
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
    let not_needed = (not_needed > 0).then(|| format!("{not_needed} left out"));
    let given_up = (given_up > 0).then(|| format!("{given_up} given up; --redo given-up tries again"));
    if todo.is_empty() {
        let others: String = [given_up, not_needed].into_iter().flatten().map(|words| format!(", {words}")).collect();
        let sent = if looks.any() { "servers were only asked for their version" } else { "no request was sent" };
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
        let cached = (!there.is_empty()).then(|| format!("{} are done already", there.len()));
        let settled: Vec<String> = [cached, given_up, not_needed].into_iter().flatten().collect();
        let settled = if settled.is_empty() { String::new() } else { format!(" ({})", settled.join(", ")) };
        let (_, side_by_side, unknown) = expected(args, workspace, decisions);
        let time = match (side_by_side, unknown) {
            (0, true) => "time unknown until the first start".to_owned(),
            (ns, false) => format!("about {}", duration(ns.div_ceil(1_000_000_000))),
            (ns, true) => format!("about {} beside starts of unknown length", duration(ns.div_ceil(1_000_000_000))),
        };
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
        for line in stages::taken(workspace, decisions).into_iter().chain(stages::pending(workspace)) {
            screen.line(&format!("  {line}"));
        }
    }
}

fn runs(count: usize) -> String {
    format!("{} to do", counted(count, "run"))
}

/// How long the runs to do take, in nanoseconds: one after another, and with as many side by side as `--jobs` and their
/// resources allow; and whether there are more of which nobody knows how long they take.
fn expected(args: &RunArgs, workspace: &Workspace, decisions: &[Option<Decision>]) -> (u64, u64, bool) {
    let estimator = Estimator::of(workspace.plan(), &workspace.expansion, &workspace.disk);
    let mut is_unknown = false;
    let expansion = &workspace.expansion;
    let mut seen = HashSet::new();
    let mut spans = Spans::default();
    for (run, decision) in decided(workspace, decisions) {
        if decision.action.is_work() && seen.insert(run.id) {
            let resource = expansion.resources[&run.spec.endpoint.name].as_str();
            let ns = estimator.expected_ns(run);
            is_unknown |= ns.is_none();
            spans.add(resource, ns.unwrap_or(0));
        }
    }
    (spans.one_after_another(), spans.side_by_side(args.jobs), is_unknown)
}

fn execute(
    args: &RunArgs,
    workspace: &Workspace,
    (decisions, looks): (&[Option<Decision>], &Looks),
    (writer, stop): (&Writer, &watch::Receiver<bool>),
) -> Result<Summary, Failure> {
    let action = |decision: &Option<Decision>| decision.as_ref().map(|decision| decision.action);
    // Behind the runs that are known now stand those that searches and ladders may ask for.
    let (whole, places) = workspace.expansion.with_members();
    let chooser = Chooser::new(writer.store(), workspace.plan());
    let choose = |pool: &Pool| chooser.choose(pool);
    let ends = |series: &Series, is_open: &dyn Fn(&PlannedRun) -> bool| {
        chooser.look_again();
        let standing = chooser.stand(series, &workspace.expansion.series, is_open);
        standing.into_iter().map(|cell| cell.end).collect()
    };
    let mut picked = if places.is_empty() { Vec::new() } else { args.selection.pick(workspace.plan(), &whole.runs)? };
    picked.iter_mut().zip(&whole.runs).for_each(|(picked, run)| *picked &= whole.why_left_out(run).is_none());
    let more = || std::iter::repeat_n(&None, whole.runs.len() - decisions.len());
    let all = || decisions.iter().chain(more());
    let sweep = Sweep {
        plan: workspace.plan(),
        folder: args.plan_folder(),
        expansion: &whole,
        todo: all().map(|decision| action(decision).is_some_and(Action::is_work)).collect(),
        settled: settled(workspace, decisions),
        replaces: all().map(|d| d.as_ref().filter(|d| d.action == Action::Redo).map(|d| d.reason.clone())).collect(),
        spoiled: all().map(|d| d.as_ref().map_or(0, |d| d.spoiled)).collect(),
        afresh: all().map(|d| d.as_ref().is_some_and(|d| d.afresh)).collect(),
        environment: looks.expected(workspace, decisions),
        writer,
        servers: writer.store().layout().servers(),
        jobs: usize::from(args.jobs),
        choices: (!places.is_empty()).then_some(Choices { places, picked, choose: &choose }),
        ends: (!workspace.expansion.series.is_empty()).then_some(&ends as EndsOf),
        fail_fast: args.fail_fast,
    };
    let (in_turn, side_by_side, _) = expected(args, workspace, decisions);
    let pace = side_by_side as f64 / in_turn.max(1) as f64;
    let screen = args.screen().with_times().at_pace(pace);
    let publisher = Publisher::start(&workspace.plan().name, &writer.store().layout().live(), pace);
    let mut listener = Listener { screen, publisher, store: writer.store(), workspace };
    sweep::run(&sweep, &mut listener, stop.clone()).map_err(|error| match error {
        SweepError::Store(error) => Failure::Store(error),
        SweepError::Endpoints(_) => Failure::Usage(error.to_string()),
        other => Failure::Unexpected(other.into()),
    })
}

/// How many runs of the selection are not to be executed; a run that sweeps share counts once.
fn settled(workspace: &Workspace, decisions: &[Option<Decision>]) -> usize {
    let settled = decided(workspace, decisions).filter(|(_, decision)| !decision.action.is_work());
    settled.map(|(run, _)| run.id).collect::<HashSet<_>>().len()
}

/// Shows events; a committed run with its main figures.
struct Listener<'a> {
    screen: Screen,
    publisher: Publisher,
    store: &'a Store,
    workspace: &'a Workspace,
}

impl Observer for Listener<'_> {
    fn event(&mut self, event: Event) {
        self.publisher.take(&event);
        let (store, plan) = (self.store, self.workspace.plan());
        self.screen.show(&event, |run| answers::one_line(store, &run.id, plan));
    }
}

/// Prints the results and what one would type next.
fn conclude(
    args: &RunArgs,
    workspace: &Workspace,
    decisions: &[Option<Decision>],
    summary: &Summary,
) -> Result<Exit, Failure> {
    let picked = || decided(workspace, decisions);
    let runs: Vec<_> = picked().map(|(run, _)| run).collect();
    let fresh = Store::open(&args.folder.results);
    let left_out = LeftOut::default();
    let pruned = picked().filter(|(_, decision)| decision.action == Action::Pruned);
    pruned.filter_map(|(run, _)| workspace.disk.get(&run.id)?.unusable()).for_each(|error| left_out.name(error));
    let shown = match answers::print_table(&fresh, workspace.plan(), &runs, (args.colour, &left_out)) {
        // A terminal that closed takes no table, and what was interrupted was.
        Err(Failure::Unexpected(_)) if summary.interrupted => return Ok(Exit::Interrupted),
        shown => shown?,
    };
    args.explain.below()?;
    let screen = args.screen();
    let work = picked().filter(|(_, decision)| decision.action.is_work()).map(|(run, _)| run);
    say_what_is_missing(&screen, args, summary, || left(workspace, &fresh, work));
    // A run that sweeps share counts once.
    let is_given_up = |(_, decision): &(&PlannedRun, &Decision)| decision.action == Action::GivenUp;
    let before: BTreeSet<String> = picked().filter(is_given_up).map(|(run, _)| run.id.to_string()).collect();
    let given_up = before.len() + summary.given_up;
    say_what_was_given_up(&screen, args, given_up);
    if let Some(first) = shown.doubtful.as_ref().or(shown.first.as_ref()) {
        // A folder of calibrations that cannot be read hides no result.
        let known = known(&fresh, &client_environment()).unwrap_or(Known::Nothing);
        let (lines, wanting) = calibration::beside(&known, &shown.loaded);
        if !lines.is_empty() {
            screen.line(&format!("\n{}", lines.join("\n")));
        }
        say_what_next(
            &screen,
            args,
            first,
            Hints { doubtful: shown.doubtful.is_some(), invalid: shown.invalid > 0, calibrate: wanting },
        );
    }
    if summary.interrupted {
        return Ok(Exit::Interrupted);
    }
    let is_asked = args.gate || args.markdown.is_some();
    let gate = is_asked.then(|| gate::check(workspace, &fresh, &runs, &left_out));
    if let (Some(path), Some(gate)) = (&args.markdown, &gate) {
        gate_page::write(path, workspace, gate)?;
    }
    let gate = gate.filter(|_| args.gate);
    if let Some(gate) = &gate {
        screen.line(&format!("\n{}", gate.told()));
    }
    // Of runs that were not asked for nothing is missing.
    let is_so = |state: Waits| {
        args.selection.is_everything() && workspace.expansion.pending.iter().any(|pending| pending.state == state)
    };
    // Codes that say more about what to do next come first.
    Ok(if left_out.any() {
        Exit::Store
    } else if summary.refused > 0 {
        Exit::Usage
    } else if summary.failed + summary.skipped + summary.left > 0 || is_so(Waits::Pending) {
        Exit::Missing
    } else if shown.invalid + given_up > 0 || is_so(Waits::Blocked) {
        Exit::Runs
    } else if gate.as_ref().is_some_and(|gate| !gate.missed.is_empty()) || is_so(Waits::Stopped) {
        Exit::Gate
    } else if gate.is_some_and(|gate| gate.is_undecided()) || is_so(Waits::Undecided) {
        Exit::Usage
    } else {
        Exit::Done
    })
}

/// The short beginnings of the ids of those of `work` that have the result which they had before, or none.
fn left<'a>(workspace: &Workspace, fresh: &Store, work: impl Iterator<Item = &'a PlannedRun>) -> BTreeSet<String> {
    let attempt = |record: Option<&RunRecord>| record.map(|record| record.attempt);
    let is_left = |run: &&PlannedRun| {
        let now = fresh.run(&run.id.short()).ok().flatten();
        attempt(now.and_then(|listed| listed.record).as_ref()) == attempt(workspace.disk.record(&run.id))
    };
    work.filter(is_left).map(|run| run.id.short()[..8].to_owned()).collect()
}

/// Of a repetition the same command would repeat what is repeated already.
fn say_what_is_missing(screen: &Screen, args: &RunArgs, summary: &Summary, left: impl FnOnce() -> BTreeSet<String>) {
    if summary.refused > 0 {
        let runs = counted(summary.refused, "run");
        screen.line(&format!(
            "\n{runs} not measured: the server is not the one that the plan wants, as said above; mend that first"
        ));
    }
    let parts: Vec<String> = [(summary.failed, "failed"), (summary.skipped, "skipped"), (summary.left, "left to do")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let parts = parts.join(", ");
    if !parts.is_empty() && !args.again.force {
        screen.line(&format!("\n{parts}; the same command goes on with what is missing"));
    } else if !parts.is_empty() {
        let (program, plan, folder) = as_typed(args);
        let ids: Vec<String> = left().iter().map(|id| format!("'{id}'")).collect();
        screen.line(&format!(
            "\n{parts}; results that were not repeated stay as they were, and the same command would repeat all\n  \
             {:<24}{program} run {plan}{folder} --force --only \"id[:8] in [{}]\"",
            "only what is left",
            ids.join(", "),
        ));
    }
}

fn say_what_was_given_up(screen: &Screen, args: &RunArgs, given_up: usize) {
    if given_up > 0 {
        let (program, plan, folder) = as_typed(args);
        let runs =
            if given_up == 1 { "1 run was given up".to_owned() } else { format!("{given_up} runs were given up") };
        // Under --force a run may have the result of before: then it is not given up for the next invocation.
        if args.again.force {
            return screen.line(&format!("\n{runs}; results that they had before stay as they were"));
        }
        let what = "given-up runs again";
        let selection = args.selection.typed(quoted);
        screen.line(&format!("\n{runs}\n  {what:<24}{program} run {plan}{folder}{selection} --redo given-up"));
    }
}

/// Program, plan, and what is said of plan and results folder, as one types them.
fn as_typed(args: &RunArgs) -> (String, String, String) {
    let program = std::env::args().next().unwrap_or_else(|| "sweepline".to_owned());
    (quoted(&program), quoted(&args.plan.to_string_lossy()), args.changes.typed(quoted) + &args.folder.typed())
}

/// What the commands to type next depend on.
struct Hints {
    /// Some run is not valid.
    doubtful: bool,
    /// Some run is invalid, and stays so until it is executed again.
    invalid: bool,
    /// No calibration says how large the generator's own error was.
    calibrate: bool,
}

/// The commands stand at the end of their lines, ready to be copied however long they are.
fn say_what_next(screen: &Screen, args: &RunArgs, run: &str, hints: Hints) {
    let (program, plan, folder) = as_typed(args);
    let results = args.folder.results.display();
    let show = if hints.doubtful { "why a run is not valid" } else { "one run in full" };
    let calibrate = match hints.calibrate {
        true => format!("\n  {:<24}{program} calibrate {plan}{folder}", "the generator's error"),
        false => String::new(),
    };
    let again = match hints.invalid {
        true => {
            let selection = args.selection.typed(quoted);
            format!("\n  {:<24}{program} run {plan}{folder}{selection} --redo invalid", "invalid runs again")
        }
        false => String::new(),
    };
    screen.line(&format!(
        "\nrows: {results}/runs/*/requests.parquet (one row per request)\n\
         next:\n  \
         {show:<24}{program} show {} --plan {plan}{folder}{again}\n  \
         {:<24}{program} export {plan}{folder} -o runs.csv\n  \
         {:<24}edit {plan}, then run it again{calibrate}",
        &run[..8],
        "all runs as a table",
        "other values",
    ));
}
