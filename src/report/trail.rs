//! The path of a search or a ladder: its runs in the order in which they were requested, each with its
//! purpose and its result.

use comfy_table::{Cell, Table};
use indexmap::IndexSet;
use schemars::JsonSchema;
use serde::Serialize;

use super::format::{fill, plain, short_id};
use super::grid::{self, right};
use super::trial::{self, TrailTrial};
use crate::analysis::curve::{Limit, Rung};
use crate::analysis::saturation::State;
use crate::analysis::search::Purpose;
use crate::analysis::slo::Answer;
use crate::analysis::stats::Value;
use crate::plan::model::search::Objective;
use crate::units::text::digits;

/// The path of a search or a ladder.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Trail {
    /// Its sweep.
    pub(crate) sweep: String,
    /// Its cell, without the load: endpoint, model, scenario and values on further axes.
    pub(crate) cell: String,
    /// The kind of path: search, ladder or optimize.
    pub(crate) chooses: &'static str,
    /// The axis whose value is chosen: qps or batch_size, or server if settings of the server are chosen.
    pub(crate) axis: &'static str,
    /// Its state: pending (none of its runs exists), searching (it requests another run) or done.
    pub(crate) state: &'static str,
    /// Its current state, or how it ended, in words.
    pub(crate) standing: String,
    /// The load that a search found; null while the search is in progress, if it found none, and for
    /// ladders.
    pub(crate) found: Option<f64>,
    /// How a search ended: found, below_range, above_range, not_monotone, drifting, unsteady, unconfirmed,
    /// out_of_probes or too_few_requests; how a ladder ended: whole or cut. Null while it is in progress.
    pub(crate) end: Option<&'static str>,
    /// The steps on which it decided, in the order in which they were requested: the runs of a search, or
    /// the loads of a ladder.
    pub(crate) steps: Vec<TrailStep>,
    /// Runs of an optimize, in the order in which they were requested; empty for others.
    pub(crate) trials: Vec<TrailTrial>,
    /// The run that it requests next; null at its end.
    pub(crate) next: Option<TrailNext>,
    /// The loads that a ladder skips, in rising order; empty while it is in progress, and for searches.
    pub(crate) pruned: Vec<f64>,
    /// The result of the last load of a cut ladder.
    #[serde(skip)]
    pub(crate) cut: Option<&'static str>,
}

/// The requested run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct TrailNext {
    /// Full id of the run.
    pub(crate) run: String,
    /// Its load; null for optimize, which chooses none.
    pub(crate) load: Option<f64>,
    /// Its purpose: up, closing_in, well_above, confirm, again, instead (the previous run is inconclusive),
    /// bracketing (the cost) or trial (of settings).
    pub(crate) purpose: &'static str,
    /// The objective that requests it: slo, ttft, tpot, itl, e2e or cost_per_million; null for ladders and
    /// optimize.
    pub(crate) of: Option<&'static str>,
    #[serde(skip)]
    pub(crate) words: String,
}

/// The purpose of the runs of one load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepGoal {
    /// The load.
    pub(crate) load: f64,
    /// Their purpose.
    pub(crate) purpose: Purpose,
    /// The objective that requested them; `None` for a ladder.
    pub(crate) of: Option<Objective>,
}

/// The results of the runs of one load, at the time of the next decision.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct TrailStep {
    /// Full ids of the runs: a single run for a search, or all existing repeats of the load for a ladder.
    pub(crate) runs: Vec<String>,
    /// The load.
    pub(crate) load: f64,
    /// Its purpose: up, closing_in, well_above, confirm, again, instead (the previous run is inconclusive)
    /// or bracketing (the cost).
    pub(crate) purpose: &'static str,
    /// The objective that requested it: slo, ttft, tpot, itl, e2e or cost_per_million; null for a ladder.
    pub(crate) of: Option<&'static str>,
    /// Number of requests in its windows.
    pub(crate) requests: u64,
    /// The limits of the objective, each decided over these runs; empty if no run counts.
    pub(crate) limits: Vec<TrailLimit>,
    /// The result, holds, misses or undecided, for the objective that requested it (for a ladder, the whole
    /// objective), taking into account whether the server kept up; null if no run is conclusive.
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

    /// The observed value: `22.1 ms`, or `n/a`.
    fn observed(&self) -> String {
        self.observed.as_ref().map_or_else(|| "n/a".to_owned(), |observed| format!("{observed} ms"))
    }

    /// The heading of its column: `ttft p90` over `≤ 60ms`.
    fn heading(&self) -> String {
        format!("{}\n{} ≤ {}", self.metric, self.percentile, self.limit)
    }
}

impl TrailStep {
    /// Summarizes the runs of a load, with their purpose.
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

    /// The result with further notes: `misses (saturated)`.
    pub(crate) fn said(&self) -> String {
        match (self.answer, &self.note) {
            (Some(answer), Some(note)) => format!("{answer} ({note})"),
            (Some(answer), None) => answer.to_owned(),
            (None, Some(note)) => note.clone(),
            (None, None) => "inconclusive".to_owned(),
        }
    }

    /// Its purpose, with the objective that requested it unless that is the whole objective:
    /// `closing in for tpot`.
    pub(crate) fn what_for(&self) -> String {
        what_for(self.words, self.of)
    }

    /// Its purpose and its result: `closing in, holds (ttft p90 22.1 ms of 60ms)`.
    pub(crate) fn told(&self) -> String {
        let observed = Some(self.observed()).filter(|observed| !observed.is_empty());
        let observed = observed.map(|observed| format!(" ({observed})")).unwrap_or_default();
        format!("{}, {}{observed}", self.what_for(), self.said())
    }

    /// The observed values for each limit: `ttft p90 22.1 ms of 60ms`.
    pub(crate) fn observed(&self) -> String {
        let one = |limit: &TrailLimit| {
            format!("{} {} {} of {}", limit.metric, limit.percentile, limit.observed(), limit.limit)
        };
        self.limits.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

impl Trail {
    /// `limit · vllm · llama · chat`.
    pub(crate) fn title(&self) -> String {
        format!("{} · {}", self.sweep, self.cell)
    }

    /// The first part of its state, and the note that follows.
    pub(crate) fn headline(&self) -> (&str, Option<&str>) {
        self.standing.split_once("; ").map_or((&self.standing, None), |(found, rest)| (found, Some(rest)))
    }

    /// Full ids of the runs on which it decided.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &String> {
        self.steps.iter().flat_map(|step| &step.runs).chain(self.trials.iter().map(|trial| &trial.run))
    }

    /// The further note on one of its runs: `invalid: client_late`.
    pub(crate) fn note_of(&self, run: &str) -> Option<&str> {
        let step = || self.steps.iter().find(|step| step.runs.iter().any(|id| id == run));
        let trial = || self.trials.iter().find(|trial| trial.run == run);
        step().and_then(|step| step.note.as_deref()).or_else(|| trial()?.note.as_deref())
    }

    /// The unit of its loads.
    pub(crate) fn unit(&self) -> &'static str {
        if self.axis == "qps" { "qps" } else { "in flight" }
    }

    /// Why heavier loads are skipped: `40 qps misses the objective (ttft p90 87.3 ms of 60ms)`; `None` if
    /// none is skipped.
    pub(crate) fn why_left_out(&self) -> Option<String> {
        let last = self.steps.last()?;
        let observed = Some(last.observed()).filter(|observed| !observed.is_empty());
        let observed = observed.map(|observed| format!(" ({observed})")).unwrap_or_default();
        Some(format!("{} {} {}{observed}", last.load, self.unit(), self.cut?))
    }

    /// The skipped loads with the reason: `skipped: 80, 160 qps, since 40 qps misses the objective`; `None`
    /// if none is skipped.
    pub(crate) fn left_out(&self) -> Option<String> {
        let why = self.why_left_out().filter(|_| !self.pruned.is_empty())?;
        let loads = self.pruned.iter().map(f64::to_string).collect::<Vec<_>>().join(", ");
        Some(format!("skipped: {loads} {}, since {why}", self.unit()))
    }

    /// Its state and its runs in a few lines, with the runs in the order in which they were requested. Used
    /// next to a table that lists all runs.
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

    /// The limits of all steps, each once, identified by their headings.
    fn headings(&self) -> IndexSet<String> {
        self.steps.iter().flat_map(|step| &step.limits).map(TrailLimit::heading).collect()
    }

    /// Renders all of it for people.
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

    /// Its steps, one row each.
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

/// The purpose of a run, with the objective that requests it unless that is the whole objective.
pub(crate) fn what_for(words: &str, of: Option<&str>) -> String {
    let alone = of.filter(|of| ![Objective::Slo, Objective::CostPerMillion].map(Objective::name).contains(of));
    alone.map_or_else(|| words.to_owned(), |of| format!("{words} for {of}"))
}

/// Further notes on the runs of one load, including the cost of their tokens if that is the objective.
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
