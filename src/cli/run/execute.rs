//! Executes the pending runs, stage by stage. After each stage, runs whose server has changed since their
//! results were recorded are measured again. At the end, optional sweeps that now fit within the budget are
//! executed.

use indexmap::IndexSet;
use tokio::sync::watch;

use super::super::chosen_runs::Chooser;
use super::super::environment::Looks;
use super::super::stages::{self, Stages};
use super::super::workspace::Workspace;
use super::args::RunArgs;
use super::decisions::{any_work, decide, expected, have_room, is_to_do, runs, settled};
use super::others::wait_for_others;
use super::outlets::Outlets;
use super::stage::Stage;
use crate::cli::answers;
use crate::cli::failure::Failure;
use crate::cli::judgements::Judgements;
use crate::expand::{PlannedRun, Pool, Series, Waits};
use crate::report::progress::{Publisher, Screen};
use crate::store::{Store, Writer};
use crate::sweep::event::{Event, Observer};
use crate::sweep::resume::{Action, Decision, Wishes};
use crate::sweep::{self, Choices, EndsOf, OverBudget, Summary, Sweep, SweepError};

/// The resources that the execution of every stage uses.
#[derive(Clone, Copy)]
pub(super) struct Means<'a> {
    /// The locked results folder.
    pub(super) writer: &'a Writer,
    /// Becomes true when the sweep has to stop.
    pub(super) stop: &'a watch::Receiver<bool>,
    /// The outputs other than the screen, which receive events.
    pub(super) outlets: &'a Outlets,
}

/// Executes a stage, then the stages that its results enable, until there is nothing left to do.
pub(super) fn execute_stages(
    args: &RunArgs,
    workspace: &mut Workspace,
    (wishes, stages): (Wishes, &mut Stages),
    stage: &mut Stage,
    means: Means,
) -> Result<Summary, Failure> {
    let mut all = Summary::default();
    loop {
        let behind = stages.behind(workspace, &stage.decisions);
        let summary = execute(args, workspace, (&stage.decisions, &stage.looks), behind, means)?;
        let summary = measure_late(args, workspace, stage, behind, means, summary)?;
        all = all.and(summary);
        let elsewhere = std::mem::take(&mut all.elsewhere);
        stages.ran(workspace, &stage.decisions, &elsewhere);
        let is_over = all.interrupted || *means.stop.borrow() || (args.fail_fast && all.failed > 0);
        let may_go_on = Stages::are_several(workspace) || !elsewhere.is_empty();
        if is_over || !may_go_on {
            all.left += elsewhere.len();
            break;
        }
        if !wait_for_others(args, &elsewhere, workspace, (means.writer, means.stop))? {
            (all.left, all.interrupted) = (all.left + elsewhere.len(), true);
            break;
        }
        // The new results may make later sweeps possible.
        workspace.look_again()?;
        *stage = Stage::next(args, workspace, (wishes, stages))?;
        if !any_work(&stage.decisions) {
            break;
        }
        have_room(args, workspace, &stage.decisions)?;
        stage.announce(args, workspace);
    }
    spend_the_rest(args, workspace, &stage.looks, means, all)
}

/// After a stage, compares the servers that could not be queried before it but have been running since,
/// including launched ones, with those of earlier results, and measures the runs of changed servers again.
/// This happens only once per stage.
fn measure_late(
    args: &RunArgs,
    workspace: &Workspace,
    stage: &Stage,
    behind: usize,
    means: Means,
    first: Summary,
) -> Result<Summary, Failure> {
    let (decisions, looks) = (&stage.decisions, &stage.looks);
    let is_work = |endpoint: &str| {
        let mut runs = workspace.expansion.runs.iter().zip(decisions);
        runs.any(|(run, decision)| run.spec.endpoint.name == endpoint && is_to_do(decision))
    };
    if first.interrupted || *means.stop.borrow() || first.committed == 0 {
        return Ok(first);
    }
    let late = Looks::take(workspace, decisions, args.plan_folder(), |name| looks.missed(name) && is_work(name))
        .with_launched(workspace, first.launched.clone());
    // By now, all runs to do have been done or abandoned, so only runs that already had a result
    // count here.
    let settled = |decision: &Option<Decision>| decision.clone().filter(|decision| !decision.action.is_work());
    let mut again: Vec<Option<Decision>> = decisions.iter().map(settled).collect();
    let lines = late.apply(workspace, &mut again)?;
    if !any_work(&again) {
        return Ok(first);
    }
    args.tell(&lines);
    let done = decisions.iter().filter(|decision| is_to_do(decision)).count();
    let second = execute(args, workspace, (&again, &late), behind + done, means)?;
    Ok(first.and(second))
}

/// Measures optional sweeps that did not fit the budget in the worst case but fit now, because searches
/// have ended and some repeats were not needed.
fn spend_the_rest(
    args: &RunArgs,
    workspace: &mut Workspace,
    looks: &Looks,
    means: Means,
    mut summary: Summary,
) -> Result<Summary, Failure> {
    let left_out = |workspace: &Workspace| workspace.budget.as_ref().map_or(0, |budget| budget.left_out.len());
    loop {
        let is_whole = summary.failed + summary.skipped + summary.refused + summary.left == 0;
        let before = left_out(workspace);
        if before == 0 || !is_whole || summary.interrupted || *means.stop.borrow() {
            return Ok(summary);
        }
        workspace.look_again()?;
        if left_out(workspace) >= before {
            return Ok(summary);
        }
        let decisions = decide(workspace, &args.selection, Wishes::default())?;
        let count = decisions.iter().flatten().filter(|decision| decision.action.is_work()).count();
        if count > 0 {
            let text = format!("the budget now allows an optional sweep: {}", runs(count));
            args.screen().with_times().line(&text);
            have_room(args, workspace, &decisions)?;
            summary = summary.and(execute(args, workspace, (&decisions, looks), 0, means)?);
        }
    }
}

/// Executes the runs to do. The numbers shown for runs continue after the `behind` earlier runs that are no
/// longer in `decisions`.
fn execute(
    args: &RunArgs,
    workspace: &Workspace,
    (decisions, looks): (&[Option<Decision>], &Looks),
    behind: usize,
    means: Means,
) -> Result<Summary, Failure> {
    let Means { writer, stop, outlets } = means;
    let action = |decision: &Option<Decision>| decision.as_ref().map(|decision| decision.action);
    // In `whole`, the runs that searches and ladders may request follow the runs that are already known.
    let (whole, places) = workspace.expansion.with_members();
    let chooser = Chooser::new(writer.store(), workspace.plan());
    let choose = |pool: &Pool| chooser.choose(pool);
    let ends = |series: &Series, is_open: &dyn Fn(&PlannedRun) -> bool| {
        chooser.look_again();
        let standing = chooser.stand(series, &workspace.expansion.series, is_open);
        standing.into_iter().map(|cell| cell.end).collect()
    };
    let over_budget = |run: &PlannedRun| workspace.over_budget(run);
    let picked = (!places.is_empty()).then(|| args.selection.pick(workspace.plan(), &whole)).transpose()?;
    let mut picked = picked.map(|picked| picked.runs).unwrap_or_default();
    picked.iter_mut().zip(&whole.runs).for_each(|(picked, run)| *picked &= whole.why_left_out(run).is_none());
    let more = || std::iter::repeat_n(&None, whole.runs.len() - decisions.len());
    let all = || decisions.iter().chain(more());
    let sweep = Sweep {
        plan: workspace.plan(),
        folder: args.plan_folder(),
        expansion: &whole,
        todo: all().map(|decision| action(decision).is_some_and(Action::is_work)).collect(),
        settled: behind + settled(workspace, decisions),
        replaces: all().map(|d| d.as_ref().filter(|d| d.action == Action::Redo).map(|d| d.reason.clone())).collect(),
        spoiled: all().map(|d| d.as_ref().map_or(0, |d| d.spoiled)).collect(),
        afresh: all().map(|d| d.as_ref().is_some_and(|d| d.afresh)).collect(),
        environment: looks.expected(workspace, decisions),
        writer,
        servers: writer.store().layout().servers(),
        jobs: usize::from(args.jobs),
        choices: (!places.is_empty()).then_some(Choices { places, picked, choose: &choose }),
        over_budget: workspace.has_uncounted_costs().then_some(&over_budget as OverBudget),
        ends: (!workspace.expansion.series.is_empty()).then_some(&ends as EndsOf),
        later: later(workspace, args),
        fail_fast: args.fail_fast,
    };
    let (_, outlook) = expected(args, workspace, decisions);
    let screen = args.screen().with_times().expecting(outlook.clone());
    // With `--part`, several processes would write the same live.json.
    let live = writer.store().layout().live();
    let publisher = args.part.is_none().then(|| Publisher::start(&workspace.plan().name, &live, outlook.clone()));
    outlets.begin(outlook);
    let store = writer.store();
    let judgements = answers::are_many(whole.runs.len()).then(|| Judgements::of(store, workspace.plan()));
    let mut listener = Listener { screen, publisher, outlets, store, workspace, judgements };
    sweep::run(&sweep, &mut listener, stop.clone()).map_err(|error| match error {
        SweepError::Store(error) => Failure::Store(error),
        SweepError::Endpoints(_) => Failure::Usage(error.to_string()),
        other => Failure::Unexpected(other.into()),
    })
}

/// Returns the selected sweeps that wait for an earlier one.
fn later(workspace: &Workspace, args: &RunArgs) -> Vec<String> {
    let waiting = stages::selected(workspace, &args.selection).into_iter();
    let waiting = waiting.filter(|cell| cell.state == Waits::Pending).map(|cell| cell.sweep.to_string());
    waiting.collect::<IndexSet<String>>().into_iter().collect()
}

/// Shows events, and adds headline figures to committed runs.
struct Listener<'a> {
    screen: Screen,
    publisher: Option<Publisher>,
    outlets: &'a Outlets,
    store: &'a Store,
    workspace: &'a Workspace,
    /// The cache for verdicts; `None` unless the plan has too many runs for a table.
    judgements: Option<Judgements<'a>>,
}

impl Observer for Listener<'_> {
    fn event(&mut self, event: Event) {
        self.publisher.iter().for_each(|publisher| publisher.take(&event));
        let answered = match &event {
            Event::Committed { run } => answers::committed(self.store, &run.id, self.workspace.plan()),
            _ => None,
        };
        if let (Some(judgements), Some((record, answered))) = (&mut self.judgements, &answered) {
            judgements.key(record).into_iter().for_each(|key| judgements.keep(key, answered.judged()));
        }
        let answered = answered.map(|(_, answered)| answered);
        self.outlets.take(&event, || answered.as_ref().map(answers::headline));
        self.screen.show(&event, |_| answers::one_line(answered.as_ref()));
    }
}
