//! The budget of a plan: how much time, how many tokens and how much money its runs take, estimated as in
//! `preview`; and which optional sweeps are skipped to stay within the budget.
//!
//! Decisions use the worst case, so the skipped sweeps are known before anything is sent, and the remaining
//! sweeps stay within the budget. The worst case shrinks as results come in, because searches end and some
//! repeats become unnecessary. A skipped sweep may then fit within the budget.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::estimate::{Cost, Estimator};
use crate::expand::error::Mistake;
use crate::expand::{ExpandError, Expansion, PlannedRun, Pool, Waits, expand};
use crate::plan::{Budget, Code, Loaded, Plan, PlanErrors, Step};
use crate::report::format::{digits, duration, plain};
use crate::report::priced;
use crate::sweep::choose::{Chosen, most_runs};
use crate::sweep::endings::CellStanding;
use crate::sweep::on_disk::OnDisk;
use crate::units::Currency;
use crate::units::text::counted;

/// A budget, and how much of it the plan takes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct BudgetState {
    /// The limits of the budget, each with the amount that the plan takes.
    pub limits: Vec<LimitState>,
    /// Optional sweeps that are skipped, in the order in which they were skipped: the last declared sweep
    /// first.
    pub left_out: Vec<String>,
}

/// One limit of a budget. Both runs that have a result and runs that are still to be executed count toward
/// the limit.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct LimitState {
    /// The limited resource: `time`, in seconds; `tokens`, of prompts and outputs together; or `money`, in
    /// the currency of the plan.
    pub of: &'static str,
    /// The limit for all runs together.
    pub budget: f64,
    /// The amount that all runs are expected to take, if searches and repeats end as early as the existing
    /// results suggest.
    pub expected: f64,
    /// The maximum amount that all runs may take.
    pub worst: f64,
    /// Number of runs whose cost is unknown; their cost is not included.
    pub runs_not_counted: usize,
    #[serde(skip)]
    currency: Option<Currency>,
}

impl LimitState {
    fn shown(&self, number: f64) -> String {
        match self.of {
            "time" if number < 60.0 => format!("{}s", (number * 10.0).round() / 10.0),
            "time" => duration(number.ceil() as u64),
            "money" => priced(digits(number), self.currency),
            _ => format!("{} tokens", number.round() as u64),
        }
    }

    fn is_exceeded(&self) -> bool {
        self.worst > self.budget
    }

    /// Returns the limit as text: `time: 1h10m expected and at most 1h50m, of 2h`.
    fn words(&self) -> String {
        let [budget, expected, worst] = [self.budget, self.expected, self.worst].map(|number| self.shown(number));
        let takes = if expected == worst { worst } else { format!("{expected} expected and at most {worst}") };
        let unknown = match self.runs_not_counted {
            0 => String::new(),
            count => format!("; {} not counted, because the cost is unknown beforehand", counted(count, "run")),
        };
        let of = match self.is_exceeded() {
            true => format!("budget of {budget} exceeded: sweeps that are not optional take {takes}"),
            false => format!("{takes}, of {budget}"),
        };
        format!("{}: {of}{unknown}", self.of)
    }
}

impl BudgetState {
    /// Returns one line for each limit, and one that lists the skipped sweeps.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.limits.iter().map(LimitState::words).collect();
        if !self.left_out.is_empty() {
            let names: Vec<String> = self.left_out.iter().map(|name| format!("`{}`", plain(name))).collect();
            lines.push(format!("skipped (optional, last declared first): {}", names.join(", ")));
        }
        lines
    }
}

/// The inputs of [`decide`]: the plan, its runs, and the state of its searches and repeats, which depends
/// on results.
pub(super) struct Asked<'a> {
    pub plan: &'a Plan,
    pub expansion: &'a Expansion,
    pub disk: &'a OnDisk,
    pub chosen: &'a [Chosen],
    pub standing: &'a [Vec<CellStanding>],
}

/// Returns the state of a plan's budget, and why each skipped sweep is skipped; `None` if the plan has no budget.
pub(super) fn decide(asked: &Asked) -> Option<(BudgetState, Vec<(String, String)>)> {
    let budget = asked.plan.budget?;
    let mut kept: Vec<&str> = asked.plan.sweeps.keys().map(String::as_str).collect();
    let mut left_out = Vec::new();
    loop {
        let limits = limits(asked, &budget, &kept);
        let last = kept.iter().rposition(|name| may_go(asked.plan, name, &kept));
        let Some((exceeded, last)) = limits.iter().find(|limit| limit.is_exceeded()).zip(last) else {
            let names = left_out.iter().map(|(name, _): &(String, String)| name.clone()).collect();
            return Some((BudgetState { limits, left_out: names }, left_out));
        };
        let (budget, worst) = (exceeded.shown(exceeded.budget), exceeded.shown(exceeded.worst));
        let why = format!("optional: it and the sweeps before it may take {worst} of a budget of {budget}");
        left_out.push((kept.remove(last).to_owned(), why));
    }
}

/// Whether a sweep may be skipped, that is, whether it is optional and no sweep that is kept depends on its
/// result.
fn may_go(plan: &Plan, name: &str, kept: &[&str]) -> bool {
    let asks = |other: &&&str| plan.sweeps[**other].asks().any(|(asked, _)| asked == name);
    plan.sweeps[name].optional && !kept.iter().any(|other| asks(&other))
}

/// Returns how much of each limit the runs of the `kept` sweeps use.
fn limits(asked: &Asked, budget: &Budget, kept: &[&str]) -> Vec<LimitState> {
    let [expected, worst] = [false, true].map(|at_worst| cost(asked, kept, at_worst));
    let currency = asked.plan.currency;
    // If an earlier sweep has yet to find a load, the cost of that load is unknown.
    let waiting =
        asked.expansion.pending.iter().filter(|cell| cell.state == Waits::Pending && kept.contains(&&*cell.sweep));
    let waiting: usize = waiting.map(|cell| cell.repeats as usize).sum();
    let limit = |of, budget: f64, number: fn(&Cost) -> f64, unknown: fn(&Cost) -> usize| LimitState {
        of,
        budget,
        expected: number(&expected),
        worst: number(&worst),
        runs_not_counted: unknown(&worst) + waiting,
        currency,
    };
    let time = budget.time.map(|time| limit("time", time.secs(), |cost| cost.seconds, |c| c.runs_of_unknown_length));
    let tokens = |cost: &Cost| (cost.prompt_tokens + cost.output_tokens) as f64;
    let tokens = budget.tokens.map(|most| limit("tokens", most.0 as f64, tokens, |c| c.runs_with_unknown_requests));
    let money = |cost: &Cost| cost.money.unwrap_or(0.0);
    let money = budget.money.map(|most| limit("money", most.to_f64(), money, |c| c.runs_of_unknown_length));
    [time, tokens, money].into_iter().flatten().collect()
}

/// Returns the cost of the runs of the `kept` sweeps if the runs are executed one after another.
fn cost(asked: &Asked, kept: &[&str], at_worst: bool) -> Cost {
    let expansion = asked.expansion;
    let mut out: HashSet<(&str, u32, &[u32])> = HashSet::new();
    for (series, standing) in expansion.series.iter().zip(asked.standing).filter(|_| !at_worst) {
        for (cell, standing) in series.cells.iter().zip(standing) {
            let expected = standing.expect.unwrap_or(u32::MAX) as usize;
            let behind = cell.runs.iter().skip(expected);
            out.extend(behind.map(|run| (&*run.sweep, run.repeat, run.cell.rank())));
        }
    }
    let is_needed = |run: &PlannedRun| {
        let is_there = asked.disk.is_whole(&run.id);
        is_there || (expansion.why_pruned(run).is_none() && !out.contains(&(&*run.sweep, run.repeat, run.cell.rank())))
    };
    let runs = expansion.runs.iter().filter(|run| is_needed(run));
    let more = expansion.pools.iter().zip(asked.chosen).flat_map(|(pool, chosen)| to_come(pool, chosen));
    let all = runs.chain(more).filter(|run| kept.contains(&&*run.sweep));
    Estimator::of(asked.plan, expansion, asked.disk).without_starts(all)
}

/// Returns the runs that a pool may still request in addition to those already among the plan's runs. The
/// longest runs are assumed, because it is unknown which ones the pool will request.
fn to_come<'p>(pool: &'p Pool, chosen: &Chosen) -> Vec<&'p PlannedRun> {
    if chosen.next.is_none() {
        return Vec::new();
    }
    let there = chosen.members();
    let others = pool.members.iter().enumerate().filter(|(at, _)| !there.contains(at));
    let mut others: Vec<&PlannedRun> = others.map(|(_, member)| &member.run).collect();
    others.sort_by_key(|run| std::cmp::Reverse(run.spec.phases.measure.duration));
    others.truncate(most_runs(pool).saturating_sub(there.len()));
    others
}

/// A limit that does not allow even one run.
pub(super) struct TooLittle {
    /// Which limit: `time`, `tokens` or `money`.
    pub of: &'static str,
    /// The error message.
    what: String,
}

impl TooLittle {
    /// The remedy for a limit that does not allow even one run.
    const REMEDY: &str = "write at least that value, or shorten `phases`";

    /// Returns the error and the remedy.
    pub(super) fn words(&self) -> String {
        format!("{}: {}", self.what, TooLittle::REMEDY)
    }
}

/// Returns the error with which `run` would reject the plan's budgets regardless of the contents of the
/// results folder, and the error's place in the plan; `None` if `run` would accept the budgets.
pub(super) fn refused(loaded: &Loaded) -> Option<PlanErrors> {
    let plan = &loaded.plan;
    if plan.budget.is_none() && plan.sweeps.values().all(|sweep| sweep.optimize.is_none()) {
        return None;
    }
    let expansion = match expand(plan) {
        Ok(expansion) => expansion,
        Err(ExpandError { sweep, mistake: Mistake::SmallBudget { budget, settings, needs }, .. }) => {
            let needs = needs.spoken();
            let what = format!(
                "a budget of {budget} is less than the time of one run for each of the {settings} settings, \
                         {needs}"
            );
            let remedy = "increase the budget so that it also covers the server starts, or use fewer settings";
            let path = ["sweeps", &sweep, "optimize", "budget"].map(Step::from);
            return Some(loaded.refuse(&path, Code::OutOfRange, what, remedy));
        }
        Err(_) => return None,
    };
    let disk = OnDisk::without_results(&expansion);
    let asked = Asked { plan, expansion: &expansion, disk: &disk, chosen: &[], standing: &[] };
    let (state, _) = decide(&asked)?;
    let TooLittle { of, what } = below_one_run(&asked, &state)?;
    Some(loaded.refuse(&["budget", of].map(Step::from), Code::OutOfRange, what, TooLittle::REMEDY))
}

/// Returns the first limit of a budget that does not allow even one run; `None` if every limit allows one,
/// or if the cost of the runs is unknown.
pub(super) fn below_one_run(asked: &Asked, state: &BudgetState) -> Option<TooLittle> {
    let estimator = Estimator::of(asked.plan, asked.expansion, asked.disk);
    let costs: Vec<Cost> =
        asked.expansion.possible().map(|run| estimator.without_starts(std::iter::once(run))).collect();
    state.limits.iter().find_map(|limit| {
        let of = |cost: &Cost| match limit.of {
            "time" => (cost.runs_of_unknown_length == 0).then_some(cost.seconds),
            "money" => cost.money.filter(|_| cost.runs_of_unknown_length == 0),
            _ => (cost.runs_with_unknown_requests == 0).then_some((cost.prompt_tokens + cost.output_tokens) as f64),
        };
        let least = costs.iter().map(of).collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::min)?;
        (least > limit.budget).then(|| {
            let (budget, least) = (limit.shown(limit.budget), limit.shown(least));
            TooLittle { of: limit.of, what: format!("`budget.{}` is {budget}, and one run takes {least}", limit.of) }
        })
    })
}
