//! The path of a search or a ladder: its runs in the order in which they were requested, each with its
//! purpose and its result.

use std::collections::HashSet;

use comfy_table::{Cell, Table};
use indexmap::IndexSet;
use schemars::JsonSchema;
use serde::Serialize;

use super::format::{fill, plain, short_id};
use super::grid::{self, right};
use super::trial::{self, TrailTrial};
use crate::analysis::curve::{Curve, Limit, Rung};
use crate::analysis::highest::Highest;
use crate::analysis::saturation::State;
use crate::analysis::search::Purpose;
use crate::analysis::slo::Answer;
use crate::analysis::stats::Value;
use crate::plan::model::search::Objective;
use crate::units::text::digits;

/// The path of a search, a ladder or an optimize.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Trail {
    /// The sweep of the search, ladder or optimize.
    pub(crate) sweep: String,
    /// The cell, without the load: endpoint, model, scenario and values on further axes.
    pub(crate) cell: String,
    /// The kind of path: search, ladder or optimize.
    pub(crate) chooses: &'static str,
    /// The axis whose value is chosen: qps or batch_size, or server if settings of the server are chosen.
    pub(crate) axis: &'static str,
    /// The state: pending (no run exists yet), searching (another run is requested) or done.
    pub(crate) state: &'static str,
    /// The current state, or how the path ended, in words.
    pub(crate) standing: String,
    /// The load that a search found; null while the search is in progress, if the search found none, and for
    /// other paths.
    pub(crate) found: Option<f64>,
    /// The highest load that a search shows to meet the whole objective on latencies at 95 %, judged by all of
    /// its runs; null if no load does, and for other paths.
    pub(crate) shown: Option<f64>,
    /// The highest load of a search that met the whole objective on latencies in what was seen, whether or not
    /// this is shown; null if no load did, and for other paths.
    pub(crate) observed: Option<f64>,
    /// How a search ended: found, below_range, above_range, not_monotone, drifting, unsteady, unconfirmed,
    /// out_of_probes or too_few_requests; how a ladder ended: whole or cut. Null while the path is in
    /// progress.
    pub(crate) end: Option<&'static str>,
    /// The steps on which decisions were based, in the order in which they were requested: the runs of a
    /// search, or the loads of a ladder.
    pub(crate) steps: Vec<TrailStep>,
    /// The runs of an optimize, in the order in which they were requested; empty for searches and ladders.
    pub(crate) trials: Vec<TrailTrial>,
    /// The run that is requested next; null if the path has ended.
    pub(crate) next: Option<TrailNext>,
    /// The loads that a ladder skips, in ascending order; empty while the ladder is in progress, and for
    /// searches.
    pub(crate) pruned: Vec<f64>,
    /// Both figures of a search, with the load above them that missed the objective; `None` for other paths.
    #[serde(skip)]
    pub(crate) highest: Option<Highest>,
    /// Why a ladder ended early: the result of its last load. `None` for other paths.
    #[serde(skip)]
    pub(crate) cut: Option<&'static str>,
}

/// The run that a search, a ladder or an optimize requests next.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct TrailNext {
    /// Full id of the run.
    pub(crate) run: String,
    /// The load of the run; null for an optimize, which does not select loads.
    pub(crate) load: Option<f64>,
    /// The purpose of the run: up, closing_in, well_above, confirm, again, instead (the previous run is
    /// inconclusive), bracketing (the cost) or trial (of settings).
    pub(crate) purpose: &'static str,
    /// The objective that requests the run: slo, ttft, tpot, itl, e2e or cost_per_million; null for a ladder
    /// or an optimize.
    pub(crate) of: Option<&'static str>,
    #[serde(skip)]
    pub(crate) words: String,
}

/// The purpose of the runs of one load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepGoal {
    /// The load.
    pub(crate) load: f64,
    /// The purpose of the runs.
    pub(crate) purpose: Purpose,
    /// The objective that requested the runs; `None` for a ladder.
    pub(crate) of: Option<Objective>,
}

/// The results of the runs of one load, at the time of the next decision.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct TrailStep {
    /// Full ids of the runs: a single run for a search, or all existing repeats of the load for a ladder.
    pub(crate) runs: Vec<String>,
    /// The load.
    pub(crate) load: f64,
    /// The purpose of the step: up, closing_in, well_above, confirm, again, instead (the previous run is
    /// inconclusive) or bracketing (the cost).
    pub(crate) purpose: &'static str,
    /// The objective that requested the step: slo, ttft, tpot, itl, e2e or cost_per_million; null for a
    /// ladder.
    pub(crate) of: Option<&'static str>,
    /// Number of requests in the windows of the runs.
    pub(crate) requests: u64,
    /// The limits of the objective, each decided over these runs; empty if no run counts.
    pub(crate) limits: Vec<TrailLimit>,
    /// The result for the objective that requested the step (for a ladder, the whole objective): holds,
    /// misses or undecided. It takes into account whether the server kept up; null if no run is conclusive.
    pub(crate) answer: Option<&'static str>,
    /// Further notes, such as that the server was saturated, or why runs are invalid or were given up; null
    /// if there are none.
    pub(crate) note: Option<String>,
    /// The purpose in words.
    #[serde(skip)]
    pub(crate) words: &'static str,
}

/// One limit of the objective and the observed value.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct TrailLimit {
    /// Key of the tested metric: `…_from_schedule` for an open loop.
    pub(crate) metric: &'static str,
    /// The limited percentile.
    pub(crate) percentile: &'static str,
    /// The limit, in milliseconds.
    pub(crate) limit_ms: f64,
    /// The observed percentile, in milliseconds, in the run in which it is highest; null if it lies among
    /// failed requests, or if there are too few requests.
    pub(crate) observed_ms: Option<f64>,
    /// The result: holds, misses or undecided.
    pub(crate) answer: &'static str,
    #[serde(skip)]
    observed: Option<String>,
    #[serde(skip)]
    limit: String,
}

impl TrailLimit {
    fn of(limit: &Limit) -> TrailLimit {
        let highest = limit.observed.map(|[_, high]| high);
        TrailLimit {
            metric: limit.metric,
            percentile: limit.percentile.name(),
            limit_ms: limit.limit.millis(),
            observed_ms: highest.and_then(Value::exact),
            answer: limit.answer.name(),
            observed: highest.map(Value::short),
            limit: limit.limit.to_string(),
        }
    }

    /// Formats the observed value: `22.1 ms`, or `n/a`.
    fn observed(&self) -> String {
        self.observed.as_ref().map_or_else(|| "n/a".to_owned(), |observed| format!("{observed} ms"))
    }

    /// Returns the heading of the limit's column: the metric, and below it the percentile and the limit.
    fn heading(&self) -> String {
        format!("{}\n{} ≤ {}", self.metric, self.percentile, self.limit)
    }
}

impl TrailStep {
    /// Creates the step for the runs of a load, with their purpose.
    pub(crate) fn of(rung: &Rung, runs: Vec<String>, goal: StepGoal, answer: Option<Answer>) -> TrailStep {
        TrailStep {
            runs,
            load: goal.load,
            purpose: goal.purpose.name(),
            of: goal.of.map(Objective::name),
            words: goal.purpose.words(),
            requests: rung.runs.iter().chain(&rung.left_out).map(|run| run.metrics.counts.requests).sum(),
            limits: rung.limits().iter().map(TrailLimit::of).collect(),
            answer: answer.map(Answer::name),
            note: note(rung, goal.of),
        }
    }

    /// Describes the result with further notes: `misses (saturated)`.
    pub(crate) fn said(&self) -> String {
        match (self.answer, &self.note) {
            (Some(answer), Some(note)) => format!("{answer} ({note})"),
            (Some(answer), None) => answer.to_owned(),
            (None, Some(note)) => note.clone(),
            (None, None) => "inconclusive".to_owned(),
        }
    }

    /// Describes the purpose of the step, with the objective that requested it unless that is the whole
    /// objective or the cost: `closing in for tpot`.
    pub(crate) fn what_for(&self) -> String {
        what_for(self.words, self.of)
    }

    /// Describes the purpose and the result of the step: `closing in, holds (ttft p90 22.1 ms of 60ms)`.
    pub(crate) fn told(&self) -> String {
        let observed = Some(self.observed()).filter(|observed| !observed.is_empty());
        let observed = observed.map(|observed| format!(" ({observed})")).unwrap_or_default();
        format!("{}, {}{observed}", self.what_for(), self.said())
    }

    /// Describes the observed value for each limit: `ttft p90 22.1 ms of 60ms`.
    pub(crate) fn observed(&self) -> String {
        let one = |limit: &TrailLimit| {
            format!("{} {} {} of {}", limit.metric, limit.percentile, limit.observed(), limit.limit)
        };
        self.limits.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

impl Trail {
    /// Returns the title of the path: `limit · vllm · llama · chat`.
    pub(crate) fn title(&self) -> String {
        format!("{} · {}", self.sweep, self.cell)
    }

    /// Splits the current state into its first part and the note that follows, if there is one.
    pub(crate) fn headline(&self) -> (&str, Option<&str>) {
        self.standing.split_once("; ").map_or((&self.standing, None), |(found, rest)| (found, Some(rest)))
    }

    /// Gives the curves whose loads a search chose the figures of that search.
    pub(crate) fn tell(trails: &[Trail], curves: &mut [Curve]) {
        for curve in curves {
            let is_of = |trail: &&Trail| trail.sweep == curve.series.sweep && trail.has_chosen(curve);
            curve.search = trails.iter().find(is_of).and_then(|trail| trail.highest);
        }
    }

    /// Returns whether this path chose loads of a curve.
    fn has_chosen(&self, curve: &Curve) -> bool {
        let measured = curve.rungs.iter().flat_map(|rung| {
            let excluded = rung.excluded.iter().map(|one| &one.run);
            let labels = rung.runs.iter().chain(&rung.left_out).chain(excluded).map(|run| run.labels);
            labels.chain(rung.given_up.iter().map(|run| run.labels))
        });
        let ids: HashSet<&str> = measured.map(|labels| labels.run_id.as_str()).collect();
        self.runs().any(|id| ids.contains(id.as_str()))
    }

    /// Returns the full ids of the runs that the search, ladder or optimize based its decisions on.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &String> {
        self.steps.iter().flat_map(|step| &step.runs).chain(self.trials.iter().map(|trial| &trial.run))
    }

    /// Returns the note on a run: `invalid: client_late`; `None` if there is none.
    pub(crate) fn note_of(&self, run: &str) -> Option<&str> {
        let step = || self.steps.iter().find(|step| step.runs.iter().any(|id| id == run));
        let trial = || self.trials.iter().find(|trial| trial.run == run);
        step().and_then(|step| step.note.as_deref()).or_else(|| trial()?.note.as_deref())
    }

    /// Returns the unit of the loads.
    pub(crate) fn unit(&self) -> &'static str {
        if self.axis == "qps" { "qps" } else { "in flight" }
    }

    /// Describes why a ladder skips heavier loads: `40 qps misses the objective (ttft p90 87.3 ms of 60ms)`;
    /// `None` if it skips none.
    pub(crate) fn why_left_out(&self) -> Option<String> {
        let last = self.steps.last()?;
        let observed = Some(last.observed()).filter(|observed| !observed.is_empty());
        let observed = observed.map(|observed| format!(" ({observed})")).unwrap_or_default();
        Some(format!("{} {} {}{observed}", last.load, self.unit(), self.cut?))
    }

    /// Lists the loads that a ladder skips, with the reason: `skipped: 80, 160 qps, since 40 qps misses the
    /// objective`; `None` if it skips none.
    pub(crate) fn left_out(&self) -> Option<String> {
        let why = self.why_left_out().filter(|_| !self.pruned.is_empty())?;
        let loads = self.pruned.iter().map(f64::to_string).collect::<Vec<_>>().join(", ");
        Some(format!("skipped: {loads} {}, since {why}", self.unit()))
    }

    /// Renders the current state and the runs in a few lines, with the runs in the order in which they were
    /// requested. Used next to a table that lists all runs.
    pub(crate) fn path(&self) -> String {
        let step = |step: &TrailStep| {
            let long = if step.purpose == Purpose::Confirm.name() { " (long run)" } else { "" };
            format!("{}{long} {}", step.load, step.answer.unwrap_or("inconclusive"))
        };
        let steps = self.steps.iter().map(step).collect::<Vec<_>>().join(", ");
        let order = match self.trials.is_empty() {
            true => format!("in this order, {}: {steps}", self.unit()),
            false => {
                format!("in this order: {}", self.trials.iter().map(TrailTrial::told).collect::<Vec<_>>().join("; "))
            }
        };
        let lines = [format!("{} {}: {}", self.chooses, self.title(), self.standing), order];
        let lines = lines.into_iter().chain(self.left_out()).map(|line| plain(&line));
        lines.enumerate().map(|(at, line)| if at == 0 { fill("", 2, &line) } else { fill("  ", 4, &line) }).collect()
    }

    /// Returns the headings of the limits of all steps, each once.
    fn headings(&self) -> IndexSet<String> {
        self.steps.iter().flat_map(|step| &step.limits).map(TrailLimit::heading).collect()
    }

    /// Renders the whole path for human readers.
    pub(crate) fn text(&self) -> String {
        let mut out = fill("", 2, &plain(&format!("{}: {}", self.title(), self.standing)));
        if !self.steps.is_empty() {
            out.push_str(&format!("\n{}", grid::text(self.table(), 2, &[1, 4 + self.headings().len()])));
        }
        if !self.trials.is_empty() {
            out.push_str(&format!("\n{}", grid::text(trial::table(&self.trials), 2, &[2, 5])));
        }
        if let Some(TrailNext { run, load, words, .. }) = &self.next {
            let load = load.map(|load| format!("{load} {}, ", self.unit())).unwrap_or_default();
            out.push_str(&fill("next: ", 2, &format!("{load}{words} (run {})", short_id(run))));
        }
        out.extend(self.left_out().map(|why| fill("", 2, &plain(&why))));
        let asked: IndexSet<&str> = self.steps.iter().map(|step| step.purpose).collect();
        if self.chooses == "search" && !asked.is_empty() {
            out.push('\n');
            let all = [
                Purpose::Up,
                Purpose::ClosingIn,
                Purpose::WellAbove,
                Purpose::Confirm,
                Purpose::Again,
                Purpose::Instead,
                Purpose::Bracketing,
            ];
            let told = all.into_iter().filter(|purpose| asked.contains(purpose.name()));
            out.extend(told.map(|purpose| fill(&format!("{}: ", purpose.words()), 2, purpose.why())));
        }
        out
    }

    /// Returns a table with one row per step.
    fn table(&self) -> Table {
        let headings = self.headings();
        let mut table = grid::table();
        let first = [self.unit(), "purpose", "run", "requests"].map(str::to_owned);
        table.set_header(first.into_iter().chain(headings.iter().cloned()).chain(["answer".to_owned()]));
        for step in &self.steps {
            let runs = step.runs.iter().map(|run| short_id(run)).collect::<Vec<_>>().join("\n");
            let mut row = vec![
                right(step.load.to_string()),
                Cell::new(step.what_for()),
                Cell::new(runs),
                right(step.requests.to_string()),
            ];
            for heading in &headings {
                let limit = step.limits.iter().find(|limit| limit.heading() == *heading);
                row.push(right(limit.map_or_else(|| "n/a".to_owned(), TrailLimit::observed)));
            }
            row.push(Cell::new(plain(&step.said())));
            table.add_row(row);
        }
        table
    }
}

/// Describes the purpose of a run, with the objective that requests it unless that is the whole objective or
/// the cost.
pub(crate) fn what_for(words: &str, of: Option<&str>) -> String {
    let alone = of.filter(|of| ![Objective::Slo, Objective::CostPerMillion].map(Objective::name).contains(of));
    alone.map_or_else(|| words.to_owned(), |of| format!("{words} for {of}"))
}

/// Returns further notes on the runs of one load, including the cost of their tokens if the objective is the
/// cost.
pub(crate) fn note(rung: &Rung, of: Option<Objective>) -> Option<String> {
    let state = match rung.state() {
        Some(State::Saturated) => Some("saturated".to_owned()),
        Some(State::NotShown) if !rung.runs.is_empty() => Some("not shown to keep up".to_owned()),
        _ => None,
    };
    let invalid = rung.left_out_repeats().into_iter().map(|(_, why)| format!("invalid: {why}"));
    let given_up = rung.why_given_up().map(|why| format!("given up: {why}"));
    let excluded = rung.why_excluded().map(|why| format!("excluded: {why}"));
    let costs = rung.runs.iter().filter_map(|run| run.plan_metrics.cost_per_million_output_tokens);
    let cost = costs.reduce(f64::max).filter(|_| of == Some(Objective::CostPerMillion));
    let cost = cost.map(|cost| format!("{} per million output tokens", digits(cost)));
    let notes: IndexSet<String> =
        state.into_iter().chain(cost).chain(invalid).chain(given_up).chain(excluded).collect();
    (!notes.is_empty()).then(|| notes.into_iter().collect::<Vec<_>>().join("; "))
}
