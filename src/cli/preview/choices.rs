//! Searches and ladders in a preview. Results decide which of their runs are executed, but their state and
//! their maximum cost are known.

use schemars::JsonSchema;
use serde::Serialize;

use crate::analysis::halving::Estimate;
use crate::expand::{Chooses, Pool};
use crate::plan::model::search::{MOST_CONFIRMATIONS, Objective};
use crate::report::format::duration;
use crate::sweep::choose::{Chosen, Part, Setting, most_runs};
use crate::sweep::event::RunView;
use crate::units::text::counted;

use super::super::workspace::Workspace;

/// The state of one search or ladder.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChoiceState {
    /// The sweep of the search or ladder.
    pub sweep: String,
    /// The cell without the load: endpoint, model, scenario and values on other axes.
    pub cell: String,
    /// `search`, `ladder`, or `optimize`.
    pub chooses: &'static str,
    /// The axis whose value is chosen: `qps` or `batch_size`; `server` if settings are chosen.
    pub axis: &'static str,
    /// The lightest load that may be measured; null if settings are chosen.
    pub from: Option<f64>,
    /// The heaviest load that may be measured; null if settings are chosen.
    pub to: Option<f64>,
    /// The unit of the loads or, if settings are chosen, of the optimized figure: `qps`, `conversations per
    /// second`, `in flight`, or `users` of conversations.
    pub unit: &'static str,
    /// Maximum number of runs, including existing ones.
    pub most_runs: usize,
    /// Maximum time for these runs, in seconds. This assumes that the longest possible runs are executed one
    /// after another; the length of each run follows from the rule for time in `rules`.
    pub most_seconds: f64,
    /// Full ids of the finished runs, in the order in which they were requested. They are the evidence for
    /// the decisions.
    pub finished: Vec<String>,
    /// Full id of the run that is requested next; null if the search or ladder has ended.
    pub next: Option<String>,
    /// The state or the result of the search or ladder, as text.
    pub standing: String,
    /// For a search: each objective that `meets` lists, in order, followed by other limits of the
    /// plan's objective; empty for a ladder.
    pub answers: Vec<AnswerState>,
    /// For a search: the latency limit that the lightest load above the answer misses by the widest margin;
    /// null if only one latency is limited, or if none is missed, for example because the server does not
    /// keep up.
    pub binds: Option<&'static str>,
    /// If settings are chosen: every combination of settings, in the order of the matrix; otherwise
    /// empty.
    pub settings: Vec<SettingState>,
    #[serde(skip)]
    about: About,
}

/// The part of the summary that does not depend on results.
#[derive(Debug)]
enum About {
    /// Loads are chosen. Contains the window of the confirmation runs; `None` if there are none.
    Loads(Option<String>),
    /// Settings are chosen. Contains the windows of the runs, the time limit, and the figure that is
    /// optimized.
    Settings { windows: String, budget: String, aim: &'static str },
}

/// The known results of one combination of server settings.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SettingState {
    /// The values on `server` axes: `max_num_seqs=64`.
    pub settings: String,
    /// Number of finished runs with the settings.
    pub runs: usize,
    /// The mean of the optimized figure, weighted by the precision of the runs; null if there is no run,
    /// or if the settings cannot be chosen.
    pub value: Option<f64>,
    /// The lower end of the 95 % interval of the mean. The interval assumes that runs differ by 1 % in
    /// addition to the variation that follows from their requests.
    pub low: Option<f64>,
    /// The upper end of the 95 % interval.
    pub high: Option<f64>,
    /// Whether the settings meet the plan's objective, judged from all of their runs together: `shown`,
    /// `seems` (met as observed), `seems_not` (missed as observed, or too few requests are available) or
    /// `misses`; null if there is no objective or no run.
    pub meets: Option<&'static str>,
    /// Why the last run of the settings does not count, like `invalid: client_late`, or that the
    /// settings cannot be chosen; null if the run counts.
    pub why: Option<String>,
}

impl From<&Setting> for SettingState {
    fn from(setting: &Setting) -> SettingState {
        let of = |value: fn(&Estimate) -> f64| setting.estimate.as_ref().map(value);
        let (value, low, high) = (of(|one| one.value), of(|one| one.low), of(|one| one.high));
        let (meets, why) = (setting.meets.name(), setting.why.clone());
        SettingState { settings: setting.name.clone(), runs: setting.runs, value, low, high, meets, why }
    }
}

/// The answer of a search to one objective.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AnswerState {
    /// `slo`, all latency limits together; `ttft`, `itl`, `tpot` or `e2e`, the limits on that latency
    /// alone; or `cost_per_million`.
    pub objective: &'static str,
    /// Whether `meets` lists the objective. If not, the objective has no answer, only the results of runs
    /// for other objectives.
    pub asked: bool,
    /// The highest load that meets the objective; for `cost_per_million`, the lowest load that
    /// meets it. Null if there is no answer.
    pub found: Option<f64>,
    /// The highest load that is shown to meet the objective at 95 %, judged by all runs of the load; null if no
    /// load is, and for `cost_per_million`.
    pub shown: Option<f64>,
    /// The highest load that met the objective in what was seen, whether or not this is shown; null if no load
    /// did, and for `cost_per_million`.
    pub observed: Option<f64>,
    /// The lightest load above `found` that missed the objective; for `cost_per_million`, the heaviest load
    /// below `found` that missed it. Null if there is no such load.
    pub misses: Option<f64>,
    /// How the search for the objective ended; null while it is running, or if the objective is not
    /// requested. For `cost_per_million`, `below_range` means that the lightest load meets it,
    /// `above_range` that no load does, and `unknown` that no token count is available.
    pub end: Option<&'static str>,
    /// The highest load that met the objective and is lower than all loads that missed it, as far as the runs
    /// show; for `cost_per_million`, the highest load that did not meet it.
    pub low: Option<f64>,
    /// The lowest load above `low` that missed the objective; for `cost_per_million`, the lowest load that
    /// met it.
    pub high: Option<f64>,
}

impl From<&Part> for AnswerState {
    fn from(part: &Part) -> AnswerState {
        let ((found, misses), (low, high)) = (part.found(), part.between);
        AnswerState {
            objective: part.of.name(),
            asked: part.is_asked,
            found,
            shown: part.highest.shown,
            observed: part.highest.observed,
            misses,
            end: part.end(),
            low,
            high,
        }
    }
}

/// Returns every search and ladder of the plan, in plan order.
pub(super) fn choices(workspace: &Workspace) -> Vec<ChoiceState> {
    workspace
        .expansion
        .pools
        .iter()
        .zip(&workspace.chosen)
        .map(|(pool, chosen)| ChoiceState::of(pool, chosen))
        .collect()
}

/// Returns the maximum cost of all searches and ladders that have not ended, including the runs that they
/// have already finished: `at most 28 runs and 3h02m`. The time is omitted if settings are optimized, because
/// it is then limited per cell. `None` if all have ended.
pub(crate) fn most_in_all(workspace: &Workspace) -> Option<String> {
    let pools = workspace.expansion.pools.iter().zip(&workspace.chosen);
    let pools: Vec<&Pool> = pools.filter(|(_, chosen)| chosen.next.is_some()).map(|(pool, _)| pool).collect();
    let runs = counted(pools.iter().map(|pool| most_runs(pool)).sum::<usize>(), "run");
    let seconds: f64 = pools.iter().map(|pool| most_seconds(pool)).sum();
    let has_budget = pools.iter().any(|pool| matches!(pool.chooses, Chooses::Optimize(_)));
    let time = if has_budget { String::new() } else { format!(" and {}", duration(seconds.ceil() as u64)) };
    (!pools.is_empty()).then(|| format!("at most {runs}{time}"))
}

/// Returns the maximum time that the runs of a pool take, in seconds. This assumes as many of the longest
/// runs as the pool may request, with windows as long as `min_requests` may extend them; the number of long
/// confirmation runs of a search is limited.
fn most_seconds(pool: &Pool) -> f64 {
    let objectives = match &pool.chooses {
        Chooses::Search(search) => search.meets.len(),
        Chooses::Optimize(_) | Chooses::Ladder { .. } => 0,
    };
    let longest = |confirms: bool, most: usize| -> Vec<u64> {
        let members = pool.members.iter().filter(|member| member.confirms == confirms);
        let mut lengths: Vec<u64> = members.map(|member| RunView::new(0, &member.run).most_ns()).collect();
        lengths.sort_unstable_by_key(|length| std::cmp::Reverse(*length));
        lengths.truncate(most);
        lengths
    };
    let all = most_runs(pool);
    let long = longest(true, objectives * MOST_CONFIRMATIONS as usize);
    let others = longest(false, all.saturating_sub(long.len()));
    long.iter().chain(&others).map(|ns| *ns as f64 / 1e9).sum()
}

impl ChoiceState {
    fn of(pool: &Pool, chosen: &Chosen) -> ChoiceState {
        let id = |at: &usize| pool.members[*at].run.id.to_string();
        let (chooses, about) = match &pool.chooses {
            Chooses::Search(search) => ("search", About::Loads(search.confirm.map(|window| window.to_string()))),
            Chooses::Ladder { .. } => ("ladder", About::Loads(None)),
            Chooses::Optimize(optimized) => {
                let mut windows: Vec<String> =
                    pool.members.iter().map(|member| member.run.spec.phases.measure.duration.to_string()).collect();
                windows.dedup();
                let (budget, aim) = (optimized.budget.to_string(), optimized.aim.name());
                ("optimize", About::Settings { windows: windows.join(", "), budget, aim })
            }
        };
        let unit = match &pool.chooses {
            Chooses::Optimize(optimized) => optimized.aim.unit(),
            _ => pool.unit(),
        };
        let loads = if chooses == "optimize" { Vec::new() } else { pool.loads() };
        ChoiceState {
            sweep: pool.sweep.to_string(),
            cell: pool.name(),
            chooses,
            axis: pool.chooses.axis(),
            from: loads.first().copied(),
            to: loads.last().copied(),
            most_runs: most_runs(pool),
            most_seconds: most_seconds(pool),
            finished: chosen.finished.iter().map(id).collect(),
            next: chosen.next.as_ref().map(id),
            unit,
            standing: chosen.to_string(),
            answers: chosen.parts.iter().map(AnswerState::from).collect(),
            binds: chosen.binds.map(Objective::name),
            settings: chosen.settings.iter().flat_map(|settings| &settings.all).map(SettingState::from).collect(),
            about,
        }
    }

    /// Returns the summary in one line: the range and the maximum cost, and the state so far; once the
    /// search or ladder has ended, its result.
    pub(super) fn words(&self) -> String {
        if self.next.is_none() {
            return format!("{}: {}", self.cell, self.standing);
        }
        let most = counted(self.most_runs, "run");
        let so_far = if self.finished.is_empty() { String::new() } else { format!("; {}", self.standing) };
        match &self.about {
            About::Loads(confirms) => {
                let confirms = confirms.as_ref().map(|window| format!(", long ones with a window of {window}"));
                let [from, to] = [self.from, self.to].map(Option::unwrap_or_default);
                format!(
                    "{}: {from} to {to} {}, at most {most} and {}{}{so_far}",
                    self.cell,
                    self.unit,
                    duration(self.most_seconds.ceil() as u64),
                    confirms.unwrap_or_default(),
                )
            }
            About::Settings { windows, budget, aim } => format!(
                "{}: {} for {aim}, windows of {windows}, at most {most} and {budget}; each change of settings starts the server{so_far}",
                self.cell,
                counted(self.settings.len(), "setting"),
            ),
        }
    }
}
