//! The output of `run` at its end, and its exit code.

use std::collections::BTreeSet;

use super::super::left_out::LeftOut;
use super::super::workspace::Workspace;
use super::args::RunArgs;
use super::decisions::decided;
use super::others;
use crate::cli::failure::{Exit, Failure};
use crate::cli::gate::Gate;
use crate::cli::{answers, gate, gate_page, shared, stages, stderr};
use crate::expand::{PlannedRun, Waits};
use crate::plan::{Plan, Slo};
use crate::report::calibration;
use crate::report::format::plain;
use crate::report::progress::Screen;
use crate::server::client_environment;
use crate::store::Store;
use crate::sweep::Summary;
use crate::sweep::calibrate::{Known, known};
use crate::sweep::resume::{Action, Decision};
use crate::units::text::{counted, quoted};

/// Prints the results and suggested next commands.
pub(super) fn conclude(
    args: &RunArgs,
    workspace: &Workspace,
    decisions: &[Option<Decision>],
    summary: &Summary,
) -> Result<Exit, Failure> {
    let picked = || decided(workspace, decisions);
    let is_asked = args.gate || args.markdown.is_some();
    let all: Vec<_> = picked().map(|(run, _)| run).collect();
    let runs = if is_asked { all.clone() } else { others::cheap_to_show(&workspace.store, &all) };
    let fresh = workspace.store.clone();
    let left_out = LeftOut::default();
    let pruned = picked().filter(|(_, decision)| decision.action == Action::Pruned);
    pruned.filter_map(|(run, _)| workspace.disk.unusable(&run.id)).for_each(|error| left_out.name(error));
    let shown = match answers::print_table(&fresh, workspace.plan(), &runs, (args.colour, &left_out)) {
        // If the terminal was closed, no table is printed, and the run was interrupted.
        Err(Failure::Unexpected(_)) if summary.interrupted => return Ok(Exit::Interrupted),
        shown => shown?,
    };
    args.explain.below()?;
    let screen = args.screen();
    let done_without = done_without(workspace, &runs, &shown.invalid);
    done_without.iter().for_each(|line| screen.line(line));
    let invalid = shown.invalid.len() - done_without.len();
    let work = picked().filter(|(_, decision)| decision.action.is_work()).map(|(run, _)| run);
    others::not_shown(all.len() - runs.len()).iter().for_each(|line| screen.line(line));
    others::told(summary).iter().for_each(|line| screen.line(line));
    say_what_is_missing(&screen, args, summary, || left(workspace, &fresh, work));
    // A run that several sweeps share is counted once.
    let is_given_up = |(_, decision): &(&PlannedRun, &Decision)| decision.action == Action::GivenUp;
    let before: BTreeSet<String> = picked().filter(is_given_up).map(|(run, _)| run.id.to_string()).collect();
    let given_up = before.len() + summary.given_up;
    say_what_was_given_up(&screen, args, given_up, before.len());
    if let Some(first) = shown.doubtful.as_ref().or(shown.first.as_ref()) {
        // A folder of calibrations that cannot be read does not hide any result.
        let known = known(&fresh, &client_environment()).unwrap_or(Known::Nothing);
        let (lines, wanting) = calibration::beside(&known, &shown.loaded);
        if !lines.is_empty() {
            screen.line(&format!("\n{}", lines.join("\n")));
        }
        say_what_next(
            &screen,
            args,
            first,
            Hints {
                doubtful: shown.doubtful.is_some(),
                invalid: invalid > 0 && shared::address(&args.folder.results).is_none(),
                chosen: workspace.expansion.pools.first().map(|pool| plain(&pool.sweep)),
                calibrate: wanting,
                answer: Answer::of(workspace.plan(), &all),
            },
        );
    }
    if summary.interrupted {
        return Ok(Exit::Interrupted);
    }
    let vanished = others::vanished(args, workspace)?;
    vanished.iter().for_each(|error| stderr::complain(error));
    let waiting = stages::selected(workspace, &args.selection);
    let gate = is_asked.then(|| gate::check(workspace, &fresh, (&runs, &waiting), &left_out));
    if let (Some(path), Some(gate)) = (&args.markdown, &gate) {
        gate_page::write(path, workspace, (gate, &waiting))?;
    }
    let gate = gate.filter(|_| args.gate);
    // Cells that `skip_if` or the budget skips do not count as missing, so their states are not tested below.
    let is_so = |state: Waits| waiting.iter().any(|pending| pending.state == state);
    // Exit codes that are more specific about the next step take precedence.
    let exit = if left_out.any() || vanished.is_some() {
        Exit::Store
    } else if summary.refused > 0 {
        Exit::Usage
    } else if summary.failed + summary.skipped + summary.left > 0 || is_so(Waits::Pending) {
        Exit::Missing
    } else if invalid + given_up > 0 || is_so(Waits::Blocked) {
        Exit::Runs
    } else if gate.as_ref().is_some_and(|gate| !gate.missed.is_empty()) || is_so(Waits::Stopped) {
        Exit::Gate
    } else if gate.as_ref().is_some_and(Gate::is_undecided) || is_so(Waits::Undecided) {
        Exit::Usage
    } else {
        Exit::Done
    };
    if let Some(gate) = &gate {
        screen.line(&format!("\n{}", gate.told(matches!(exit, Exit::Done))));
    }
    Ok(exit)
}

/// Returns a line for each of the `invalid` runs that a search or `optimize` replaced with another run, or
/// that a search counts as a miss above its answer. A run that several sweeps share is included only if this
/// holds in each of these sweeps.
fn done_without(workspace: &Workspace, runs: &[&PlannedRun], invalid: &[String]) -> Vec<String> {
    let pools = || workspace.expansion.pools.iter().zip(&workspace.chosen).zip(&workspace.trails);
    let why = |run: &PlannedRun, id: &str| {
        let mut answered = pools().filter(|((pool, chosen), _)| pool.sweep == run.sweep && chosen.is_answered());
        answered.find_map(|((pool, chosen), trail)| {
            let is_of = |members: &[usize]| members.iter().any(|at| pool.members[*at].run.id == run.id);
            let then = match () {
                () if is_of(&chosen.replaced) => "another run replaced it",
                () if is_of(&chosen.beyond) => "its load is above the result of the search, so it counts as a miss",
                () => return None,
            };
            let why = trail.note_of(id).unwrap_or("invalid");
            Some(plain(&format!("{}: run {} is {why}; {then}", pool.title(), &id[..8])))
        })
    };
    let line = |id: &String| {
        let asked = runs.iter().filter(|run| run.id.to_string() == *id);
        asked.map(|run| why(run, id)).collect::<Option<Vec<String>>>()?.into_iter().next()
    };
    invalid.iter().filter_map(line).collect()
}

/// Returns the shortened ids of the runs in `work` whose result was not replaced, or that still have no
/// result.
fn left<'a>(workspace: &Workspace, fresh: &Store, work: impl Iterator<Item = &'a PlannedRun>) -> BTreeSet<String> {
    let is_left = |run: &&PlannedRun| {
        let now = fresh.run(&run.id.short()).ok().flatten();
        now.and_then(|listed| listed.record).map(|record| record.attempt)
            == workspace.disk.said(&run.id).map(|said| said.attempt)
    };
    work.filter(is_left).map(|run| run.id.short()[..8].to_owned()).collect()
}

/// Reports runs that are missing, and the command that continues with them. With --force, the same command
/// would repeat runs that have already been repeated.
fn say_what_is_missing(screen: &Screen, args: &RunArgs, summary: &Summary, left: impl FnOnce() -> BTreeSet<String>) {
    if summary.refused > 0 {
        let runs = counted(summary.refused, "run");
        screen.line(&format!("\n{runs} not measured: the plan or its server must be changed first, as reported above"));
    }
    let parts: Vec<String> = [(summary.failed, "failed"), (summary.skipped, "skipped"), (summary.left, "left to do")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let parts = parts.join(", ");
    if !parts.is_empty() && !args.again.force {
        screen.line(&format!("\n{parts}; the same command continues with the missing runs"));
    } else if !parts.is_empty() {
        let (program, plan, folder) = as_typed(args);
        let ids: Vec<String> = left().iter().map(|id| format!("'{id}'")).collect();
        screen.line(&format!(
            "\n{parts}; results that were not repeated stay as they were, and the same command would repeat all\n  \
             {:<24}{program} run {plan}{folder} --force --only \"id[:8] in [{}]\"",
            "only the missing runs",
            ids.join(", "),
        ));
    }
}

fn say_what_was_given_up(screen: &Screen, args: &RunArgs, given_up: usize, before: usize) {
    if given_up > 0 {
        let (program, plan, folder) = as_typed(args);
        let runs =
            if given_up == 1 { "1 run was given up".to_owned() } else { format!("{given_up} runs were given up") };
        let earlier =
            if (1..given_up).contains(&before) { format!(", {before} of them earlier") } else { String::new() };
        let runs = runs + &earlier;
        // With --force, a run may have an earlier result. In that case it does not count as given up in
        // the next invocation.
        if args.again.force {
            return screen.line(&format!("\n{runs}; their earlier results stay as they were"));
        }
        let what = "given-up runs again";
        let selection = args.selection.typed(quoted);
        screen.line(&format!("\n{runs}\n  {what:<24}{program} run {plan}{folder}{selection} --redo given-up"));
    }
}

/// Returns program, plan, and the flags for plan and results folder, as typed on a command line.
fn as_typed(args: &RunArgs) -> (String, String, String) {
    let program = std::env::args().next().unwrap_or_else(|| "sweepline".to_owned());
    (quoted(&program), quoted(&args.plan.to_string_lossy()), args.changes.typed(quoted) + &args.folder.typed())
}

/// The conditions for the suggested commands.
struct Hints {
    /// Whether any run is not valid.
    doubtful: bool,
    /// Whether to suggest `--redo invalid`: at least one run stays invalid until it is executed again, and
    /// the results are not shared.
    invalid: bool,
    /// The first sweep with a search or ladder; `None` if the plan has none.
    chosen: Option<String>,
    /// Whether no calibration shows the generator's own error.
    calibrate: bool,
    /// The command that answers the plan's question; `None` for a single run, which answers nothing but
    /// itself.
    answer: Option<Answer>,
}

/// The command that answers the question of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// The plan declares a comparison.
    Compare,
    /// The plan declares an objective.
    Capacity,
    /// The plan declares neither.
    Report,
}

impl Answer {
    /// Returns the command for a plan whose `runs` are known. A comparison whose runs wait for the result of an earlier
    /// sweep cannot answer yet.
    fn of(plan: &Plan, runs: &[&PlannedRun]) -> Option<Answer> {
        let is_compared = |sweep: &str| plan.sweeps.get(sweep).is_some_and(|sweep| plan.compared(sweep).is_some());
        let compares = runs.iter().any(|run| is_compared(&run.sweep));
        let has_objective = plan.slo.as_ref().is_some_and(|slo| !Slo::is_empty(slo));
        match (compares, has_objective, runs.len()) {
            (true, ..) => Some(Answer::Compare),
            (_, true, _) => Some(Answer::Capacity),
            (_, _, 0 | 1) => None,
            _ => Some(Answer::Report),
        }
    }

    /// Returns what the command shows, and its name.
    fn named(self) -> (&'static str, &'static str) {
        match self {
            Answer::Compare => ("how the arms differ", "compare"),
            Answer::Capacity => ("loads within the slo", "capacity"),
            Answer::Report => ("charts and answers", "report"),
        }
    }
}

/// Suggests the next commands. Each command is at the end of its line, so that it can be copied however
/// long it is.
fn say_what_next(screen: &Screen, args: &RunArgs, run: &str, hints: Hints) {
    let (program, plan, folder) = as_typed(args);
    let show = if hints.doubtful { "why a run is not valid" } else { "one run in full" };
    let calibrate = match hints.calibrate {
        true => format!("\n  {:<24}{program} calibrate {plan}{folder}", "the generator's error"),
        false => String::new(),
    };
    let chosen = hints.chosen.map_or(String::new(), |sweep| {
        format!("\n  {:<24}{program} why {} --plan {plan}{folder}", "why it chose these runs", quoted(&sweep))
    });
    let again = match hints.invalid {
        true => {
            let selection = args.selection.typed(quoted);
            format!("\n  {:<24}{program} run {plan}{folder}{selection} --redo invalid", "invalid runs again")
        }
        false => String::new(),
    };
    let answer = hints.answer.map_or(String::new(), |answer| {
        let (shows, command) = answer.named();
        format!("  {shows:<24}{program} {command} {plan}{folder}\n")
    });
    let rows = match shared::address(&args.folder.results) {
        Some(url) => format!("{url}, fetched when they are read"),
        None => format!("{}/runs/*/requests.parquet (one row per request)", args.folder.results.display()),
    };
    screen.line(&format!(
        "\nrows: {rows}\n\
         next:\n{answer}  \
         {show:<24}{program} show {} --plan {plan}{folder}{again}{chosen}\n  \
         {:<24}{program} export {plan}{folder} -o runs.csv\n  \
         {:<24}edit {plan}, then run it again{calibrate}",
        &run[..8],
        "all runs as a table",
        "other values",
    ));
}
