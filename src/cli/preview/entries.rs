//! The preview as data, with an entry for each run, the cost of each sweep, and the total cost.

use std::collections::{HashMap, HashSet};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::analysis::comparison::tolerated;
use crate::expand::resolve::load_engine;
use crate::expand::{Pending, PlannedRun};
use crate::plan::{Plan, Scalar, Sweep};
use crate::store::RunRecord;
use crate::sweep::event::{name, planned_name};
use crate::sweep::resume::{Action, Decision, Wishes, explain, or_pending};

use super::super::attempts::Tried;
use super::super::budget::BudgetState;
use super::super::estimate::{Cost, Estimator, MONEY_RULE, REQUESTS_RULE, Start, TIME_RULE, TOKENS_RULE};
use super::super::probe::ProbedEndpoint;
use super::super::workspace::Workspace;
use super::choices::{ChoiceState, choices};
use super::data::{self, DataUse};
use super::environments::{Differs, differing, or_changed};
use super::hooks::{Happens, happens};
use super::pending::PendingCell;
use super::reason::{Changed, Places, changes, reason};
use super::repeats::{RepeatsState, repeats};
use super::scrapes::{Scrapes, scrapes};
use super::starts::{Starts, starts};
use super::token_commands::{TokenCommandUse, token_commands};

/// The definition of a given-up run, as text.
const GIVEN_UP_RULE: &str = "the environment spoiled the run as often as the plan's `retries` allow; `run` retries \
                             it only with --redo given-up, --force, or more retries in the plan";
/// The definition of an orphan, as text.
const ORPHAN_RULE: &str = "a committed run on one of the plan's endpoints that no cell requests, and that no cell \
                           waiting for an earlier sweep can request";
/// The definition of a pending run, as text.
const PENDING_RULE: &str = "another process has locked the results folder and is measuring the run";
/// The definition of a pruned run, as text.
const PRUNED_RULE: &str = "`run` would wait for the run's endpoint, which is not ready (with --probe), or would skip \
                           the run, because the repeat is not needed, the budget skips its sweep, or its result \
                           cannot be read";

/// What `run` would do.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Preview {
    /// Name of the plan.
    pub plan: String,
    /// The plan's file.
    pub file: String,
    /// The results folder.
    pub results: String,
    /// One entry for each sweep, cell and repeat, in the order of execution, followed by the
    /// orphans.
    pub runs: Vec<Entry>,
    /// The sweeps in the plan's order.
    pub sweeps: Vec<Part>,
    /// The totals over all entries.
    pub totals: Totals,
    /// The searches and ladders of the plan, which request one run after another; absent if the plan has
    /// none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<ChoiceState>,
    /// Cells that have no runs (yet) because they depend on the result of an earlier sweep; absent if there
    /// are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<PendingCell>,
    /// The budget of the plan, and the sweeps that are skipped because of it; absent if the plan
    /// has no budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetState>,
    /// The cells of the plan whose repeats may end early; absent if the plan has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<RepeatsState>,
    /// How often servers that the plan launches are started for the runs to do; absent if the plan launches
    /// no servers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<Starts>,
    /// Hooks and resets of the plan that accompany the runs to do; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Happens>,
    /// The commands that print tokens for the runs to do; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub token_commands: Vec<TokenCommandUse>,
    /// The metrics pages that `run` would scrape during the remaining runs, by endpoint; empty if no
    /// endpoint of these runs has `telemetry`.
    pub scrapes: Vec<Scrapes>,
    /// The data sets that the plan's scenarios use, in the order of the scenarios.
    pub data: Vec<DataUse>,
    /// The rules for states and figures.
    pub rules: Rules,
    /// The reports of the servers; absent unless they were queried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Vec<ProbedEndpoint>>,
    /// Where servers and this machine differ from those on which the results were measured; absent
    /// unless servers were queried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differing: Option<Vec<Differs>>,
}

/// One run of the preview.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Entry {
    /// The full id, 64 hex digits.
    pub id: String,
    /// The sweep of the run; empty for an orphan, whose sweep is unknown.
    pub sweep: String,
    /// The run's value for each axis.
    pub cell: Map<String, Value>,
    /// The number of the repeat within the cell, counted from 0.
    pub repeat: u32,
    /// The action that `run` would take.
    pub state: Action,
    /// The reason for the action, in words.
    pub reason: String,
    /// The place in the plan that caused this action, as file:line:column; for a run that no edit explains,
    /// the beginning of its sweep. Null for an orphan.
    pub place: Option<String>,
    /// The fields in which a new run differs from the closest result.
    pub changed: Vec<Changed>,
    /// The outcome of the attempts since the run's last commit; null if there are none.
    pub tries: Option<Tried>,
    /// The run's display name.
    #[serde(skip)]
    pub name: String,
    /// Whether the run is a repeat that is not needed because its cell has ended.
    #[serde(skip)]
    pub is_not_needed: bool,
    /// The position of the run in the expansion; `None` for an orphan.
    #[serde(skip)]
    pub at: Option<usize>,
}

/// One sweep of the preview.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Part {
    /// The name of the sweep.
    pub sweep: String,
    /// Where the sweep begins in the plan, as file:line:column.
    pub place: Option<String>,
    /// How much rounds may differ if the repeats are to show the margin of the sweep's comparison; null if
    /// there is no margin, or fewer than 3 repeats.
    pub margin: Option<MarginCost>,
    /// Number of processes that together send the load of each run of the sweep; null if one
    /// process sends it.
    pub workers: Option<u32>,
    /// The number of the sweep's runs in each state, and the cost of the runs to do.
    #[serde(flatten)]
    pub totals: Totals,
}

/// How much rounds may differ if the repeats of a sweep are to show a margin.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MarginCost {
    /// The margin by which an arm may be worse (0.02 means 2 %).
    pub margin: f64,
    /// Number of repeats of each cell.
    pub repeats: u32,
    /// How much rounds of equal arms may differ if this number of repeats is to show the margin in 80 % of
    /// cases. This is the standard deviation of a round's change; for a ratio, its excess over 1.
    pub(crate) rounds_may_differ_by: f64,
}

impl MarginCost {
    fn of(plan: &Plan, sweep: &Sweep) -> Option<MarginCost> {
        let compare = plan.compared(sweep)?;
        let margin = compare.margin?.to_f64();
        let repeats = sweep.repeats.at_most;
        let rounds_may_differ_by = tolerated(margin, repeats, compare.sequential)?;
        Some(MarginCost { margin, repeats, rounds_may_differ_by })
    }
}

/// The number of runs in each state, and the cost of the runs to do.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Totals {
    /// Number of entries in each state.
    pub states: Counts,
    /// The cost of the runs to do, both new runs and runs to be measured again.
    pub to_do: Cost,
}

/// Number of entries in each state.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Counts {
    /// Runs without a result that would be measured.
    pub new: usize,
    /// Runs to be measured again.
    pub redo: usize,
    /// Runs that the environment spoiled in all allowed attempts, which are skipped.
    pub given_up: usize,
    /// Runs that are being measured at this moment.
    pub pending: usize,
    /// Runs without a result that are skipped.
    pub pruned: usize,
    /// Runs with a result that is kept.
    pub cached: usize,
    /// Results that no run of the plan requests.
    pub orphan: usize,
}

/// The rules of a preview, as text.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Rules {
    /// The rule by which requests are counted.
    pub requests: &'static str,
    /// The rule by which tokens are counted.
    pub tokens: &'static str,
    /// The rule by which time is estimated.
    pub time: &'static str,
    /// The rule by which money is estimated.
    pub money: &'static str,
    /// The definition of an orphan.
    pub orphan: &'static str,
    /// The definition of a pending run.
    pub pending: &'static str,
    /// The definition of a pruned run.
    pub pruned: &'static str,
    /// The definition of a given-up run.
    pub given_up: &'static str,
}

/// The runs and cells that a preview covers, and the user's options.
pub(crate) struct Seen<'a> {
    /// For each run of the expansion, whether it is selected.
    pub(crate) picked: &'a [bool],
    /// The selected cells that have no runs (yet).
    pub(crate) waiting: &'a [Pending],
    /// The options of the user.
    pub(crate) wishes: Wishes,
    /// Whether all runs are selected; only in this case can results be orphans.
    pub whole: bool,
}

impl Preview {
    /// Returns the preview of the workspace's runs, with the servers' reports if these are in
    /// `asked`.
    pub(crate) fn new(workspace: &Workspace, seen: Seen, asked: Option<Vec<ProbedEndpoint>>, jobs: u16) -> Preview {
        let places = Places::new(workspace);
        let mut runs = entries(workspace, &seen, asked.as_deref(), &places);
        if seen.whole {
            let is_ours = |endpoint: &str| workspace.plan().endpoints.contains_key(endpoint);
            let orphans = workspace.disk.orphans(is_ours).into_iter();
            let orphans = orphans.filter_map(|id| workspace.disk.listed(id)?.record);
            runs.extend(orphans.filter(|record| !may_be_asked_for(workspace, record)).map(|record| orphan(&record)));
        }
        let estimator = Estimator::of(workspace.plan(), &workspace.expansion, &workspace.disk);
        let is_to_do = |entry: &&Entry| entry.state.is_work();
        let (plan, mut counted) = (workspace.plan(), HashSet::new());
        let todo: HashSet<usize> = runs.iter().filter(is_to_do).filter_map(|entry| entry.at).collect();
        let all_starts = estimator.starts(&todo);
        let planned = &workspace.expansion.runs;
        let part = |sweep: &String| {
            let of_sweep = || runs.iter().filter(|entry| entry.sweep == *sweep);
            let states = Counts::of(of_sweep());
            let own = of_sweep().filter(is_to_do).filter_map(|entry| entry.at).collect();
            let is_own = |start: &&Start| *planned[start.run].sweep == **sweep;
            let starts: Vec<Start> = all_starts.iter().filter(is_own).copied().collect();
            let to_do = estimator.part(&own, &starts, jobs, &mut counted);
            let margin = MarginCost::of(plan, &plan.sweeps[sweep]);
            let workers = Some(load_engine(plan, &plan.sweeps[sweep]).workers).filter(|workers| *workers > 1);
            let (sweep, place) = (sweep.clone(), places.of_sweep(sweep));
            Part { sweep, place, margin, workers, totals: Totals { states, to_do } }
        };
        let sweeps = plan.sweeps.keys().map(part).collect();
        let to_do = estimator.total(&todo, jobs);
        let totals = Totals { states: Counts::of(runs.iter()), to_do };
        let results = workspace.expansion.runs.iter().filter_map(|run| workspace.disk.record(&run.id));
        let differing = asked.as_deref().map(|asked| differing(asked, results));
        let looked_at = workspace.expansion.runs.iter().zip(seen.picked).filter(|(_, picked)| **picked);
        let data = data::uses(workspace, &estimator, looked_at.map(|(run, _)| &*run.spec));
        Preview {
            choices: choices(workspace),
            pending: seen.waiting.iter().map(PendingCell::of).collect(),
            repeats: repeats(workspace),
            budget: workspace.budget.clone(),
            starts: starts(workspace, &todo, &all_starts),
            hooks: happens(workspace, &todo),
            token_commands: token_commands(workspace, &todo),
            scrapes: scrapes(workspace, &todo),
            data,
            plan: workspace.plan().name.clone(),
            file: workspace.loaded.file().display().to_string(),
            results: workspace.store.place().display().to_string(),
            runs,
            sweeps,
            totals,
            rules: Rules {
                requests: REQUESTS_RULE,
                tokens: TOKENS_RULE,
                time: TIME_RULE,
                money: MONEY_RULE,
                orphan: ORPHAN_RULE,
                pending: PENDING_RULE,
                pruned: PRUNED_RULE,
                given_up: GIVEN_UP_RULE,
            },
            endpoints: asked,
            differing,
        }
    }

    /// Puts the runs into the order of the plan's matrices, with a cell's repeats together; orphans stay last.
    pub(crate) fn in_order_of_plan(&mut self, workspace: &Workspace) {
        let (plan, planned) = (workspace.plan(), &workspace.expansion.runs);
        let place = |entry: &Entry| {
            let run = entry.at.map(|at| &planned[at]);
            let order = run.map(|run| (plan.sweeps.get_index_of(&*run.sweep), run.cell.rank(), run.repeat));
            (order.is_none(), order)
        };
        self.runs.sort_by(|a, b| place(a).cmp(&place(b)));
    }

    /// Whether any run has no result to keep, is needed, and is not given up.
    pub(crate) fn has_work(&self) -> bool {
        let settled = |state| matches!(state, Action::Cached | Action::Orphan | Action::GivenUp);
        self.runs.iter().any(|entry| !settled(entry.state) && !entry.is_not_needed)
    }
}

/// Whether a result may belong to a cell whose load an earlier sweep has yet to find.
fn may_be_asked_for(workspace: &Workspace, record: &RunRecord) -> bool {
    let spec = &record.spec;
    let load = |axis: &str| match axis {
        "qps" => spec.load.qps().map(|qps| qps.to_string()),
        _ => spec.load.batch_size().map(|size| size.to_string()),
    };
    let has = |axis: &str, value: &str| match axis {
        "endpoint" => spec.endpoint.name == value,
        "model" => *spec.labels.model == *value,
        "scenario" => *spec.labels.scenario == *value,
        "qps" | "batch_size" => load(axis).is_some_and(|load| load == value),
        _ => spec.labels.axes.iter().any(|(label, text)| label == axis && text == value),
    };
    let mut waiting = workspace.expansion.pending.iter();
    waiting.any(|waiting| waiting.cell.known().all(|(axis, value)| has(axis, &value.to_string())))
}

impl Counts {
    fn of<'a>(entries: impl Iterator<Item = &'a Entry>) -> Counts {
        let mut counts = Counts::default();
        for entry in entries {
            *match entry.state {
                Action::New => &mut counts.new,
                Action::Redo => &mut counts.redo,
                Action::GivenUp => &mut counts.given_up,
                Action::Pending => &mut counts.pending,
                Action::Pruned => &mut counts.pruned,
                Action::Cached => &mut counts.cached,
                Action::Orphan => &mut counts.orphan,
            } += 1;
        }
        counts
    }
}

fn entries(workspace: &Workspace, seen: &Seen, asked: Option<&[ProbedEndpoint]>, places: &Places) -> Vec<Entry> {
    let unready: HashMap<&str, &str> = asked
        .unwrap_or_default()
        .iter()
        .filter(|asked| !asked.can_be_measured())
        .map(|asked| (asked.endpoint.as_str(), asked.reason.as_deref().unwrap_or_default()))
        .collect();
    let picked = || workspace.expansion.runs.iter().enumerate().filter(|(at, _)| seen.picked[*at]);
    let count = picked().count();
    let one = |(at, run): (usize, &PlannedRun)| {
        let mut decision = workspace.decide(run, seen.wishes);
        or_pending(&mut decision, run, &workspace.disk);
        or_changed(&mut decision, run, workspace, asked.unwrap_or_default());
        let is_not_needed = decision.action == Action::Pruned && workspace.expansion.why_pruned(run).is_some();
        let why = unready.get(run.spec.endpoint.name.as_str());
        if let Some(why) = why.filter(|_| decision.action.is_work()) {
            decision.action = Action::Pruned;
            decision.reason = format!("`run` would wait for its endpoint, which is not ready: {why}");
        }
        explain(&mut decision, run, &workspace.disk, count);
        let tries = workspace.disk.tries(&run.id).and_then(Tried::of);
        Entry { tries, is_not_needed, ..entry(at, run, &decision, places) }
    };
    picked().map(one).collect()
}

fn entry(at: usize, run: &PlannedRun, decision: &Decision, places: &Places) -> Entry {
    let value = |scalar: &Scalar| serde_json::to_value(scalar).unwrap_or(Value::Null);
    let changed = changes(decision, run, places);
    let of_edit = changed.iter().find_map(|changed| changed.place.clone());
    Entry {
        id: run.id.to_string(),
        sweep: run.sweep.to_string(),
        cell: run
            .cell
            .iter()
            .map(|(axis, scalar)| (axis.to_owned(), value(scalar)))
            .chain(run.of_arrivals().iter().map(|(axis, scalar)| ((*axis).to_owned(), value(scalar))))
            .collect(),
        repeat: run.repeat,
        state: decision.action,
        reason: reason(decision, &changed),
        place: of_edit.or_else(|| places.of_sweep(&run.sweep)),
        changed,
        tries: None,
        name: planned_name(run),
        is_not_needed: false,
        at: Some(at),
    }
}

/// Returns the entry of a result that no run requests, based on its record.
fn orphan(record: &RunRecord) -> Entry {
    let spec = &record.spec;
    let mut cell = Map::new();
    cell.insert("endpoint".to_owned(), spec.endpoint.name.as_str().into());
    cell.insert("model".to_owned(), (*spec.labels.model).into());
    cell.insert("scenario".to_owned(), (*spec.labels.scenario).into());
    cell.extend(spec.load.batch_size().map(|size| ("batch_size".to_owned(), size.into())));
    cell.extend(spec.load.qps().map(|qps| ("qps".to_owned(), serde_json::to_value(qps).unwrap_or(Value::Null))));
    cell.extend(spec.labels.axes.iter().map(|(axis, value)| (axis.to_owned(), value.into())));
    Entry {
        id: record.id.clone(),
        sweep: String::new(),
        cell,
        repeat: spec.repeat,
        state: Action::Orphan,
        reason: "committed, but not part of this plan".to_owned(),
        place: None,
        changed: Vec::new(),
        tries: None,
        name: name(spec),
        is_not_needed: false,
        at: None,
    }
}
