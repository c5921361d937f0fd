//! How a search or a ladder came to stand where it does: its runs in the order in which they were asked for, what each was for, and
//! what it said.

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

/// How a search or a ladder came to stand where it does.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Trail {
    /// Its sweep.
    pub(crate) sweep: String,
    /// Its cell but for the load: endpoint, model, scenario and values on further axes.
    pub(crate) cell: String,
    /// search, ladder or optimize.
    pub(crate) chooses: &'static str,
    /// The axis whose value is chosen: qps or batch_size; server, where its settings are.
    pub(crate) axis: &'static str,
    /// pending (none of its runs is there), searching (it asks for another run) or done.
    pub(crate) state: &'static str,
    /// How it stands, or how it ended, in words.
    pub(crate) standing: String,
    /// The load that a search found; null while it goes on, where it found none, and for ladders.
    pub(crate) found: Option<f64>,
    /// How a search ended: found, below_range, above_range, not_monotone, drifting, unsteady, unconfirmed, out_of_probes or too_few_requests; how a
    /// ladder did: whole or cut. Null while it goes on.
    pub(crate) end: Option<&'static str>,
    /// What it decided from, in the order in which it was asked for: of a search each run, of a ladder each load.
    pub(crate) steps: Vec<TrailStep>,
    /// Of optimize: its runs, in the order in which they were asked for; empty for others.
    pub(crate) trials: Vec<TrailTrial>,
    /// What it asks for next; null at its end.
    pub(crate) next: Option<TrailNext>,
    /// Loads of a ladder that are left out, rising; empty while it goes on, and for searches.
    pub(crate) pruned: Vec<f64>,
    /// What was shown of the last load of a ladder that was cut.
    #[serde(skip)]
    pub(crate) cut: Option<&'static str>,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct TrailNext {
    /// Full id of the run.
    pub(crate) run: String,
    /// Its load; null of optimize, which chooses none.
    pub(crate) load: Option<f64>,
    /// What it is for: up, closing_in, well_above, confirm, again, instead (the run before says nothing), bracketing (the cost) or trial (of
    /// settings).
    pub(crate) purpose: &'static str,
    /// The objective that asks for it: slo, ttft, tpot, itl, e2e or cost_per_million; null of ladders and optimize.
    pub(crate) of: Option<&'static str>,
    #[serde(skip)]
    pub(crate) words: String,
}

/// What runs of one load are for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepGoal {
    /// The load.
    pub(crate) load: f64,
    /// What they are for.
    pub(crate) purpose: Purpose,
    /// The objective that asked for them; none of a ladder.
    pub(crate) of: Option<Objective>,
}

/// What runs of one load said, when the next step was decided.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct TrailStep {
    /// Full ids of the runs: one of a search, all repeats of a ladder's load that are there.
    pub(crate) runs: Vec<String>,
    /// The load.
    pub(crate) load: f64,
    /// What it was for: up, closing_in, well_above, confirm, again, instead (the run before says nothing) or bracketing (the cost).
    pub(crate) purpose: &'static str,
    /// The objective that asked for it: slo, ttft, tpot, itl, e2e or cost_per_million; null of a ladder.
    pub(crate) of: Option<&'static str>,
    /// Requests of its windows.
    pub(crate) requests: u64,
    /// The limits of the objective, each decided over these runs; empty where no run counts.
    pub(crate) limits: Vec<TrailLimit>,
    /// holds, misses or undecided: the objective that asked for it, of a ladder the whole one, and whether the server kept up; null where no
    /// run says anything.
    pub(crate) answer: Option<&'static str>,
    /// What else there is to say: that it was saturated, why runs are invalid or were given up; null where there is nothing.
    pub(crate) note: Option<String>,
    /// The same in words.
    #[serde(skip)]
    pub(crate) words: &'static str,
}

/// One limit of the objective and what was observed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct TrailLimit {
    /// Key of the metric that was tested: an open loop's are `…_from_schedule`.
    pub(crate) metric: &'static str,
    /// The percentile that is limited.
    pub(crate) percentile: &'static str,
    /// The limit, in milliseconds.
    pub(crate) limit_ms: f64,
    /// The percentile as it was observed, in milliseconds, in the run where it is highest; null where it lies among failed requests, or
    /// there are too few for it.
    pub(crate) observed_ms: Option<f64>,
    /// holds, misses or undecided.
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

    /// What was observed: `22.1 ms`, or `n/a`.
    fn observed(&self) -> String {
        self.observed.as_ref().map_or_else(|| "n/a".to_owned(), |observed| format!("{observed} ms"))
    }

    /// What it is called above its column: `ttft p90` over `≤ 60ms`.
    fn heading(&self) -> String {
        format!("{}\n{} ≤ {}", self.metric, self.percentile, self.limit)
    }
}

impl TrailStep {
    /// What the runs of a load say together, and what they were for.
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

    /// The answer with what else there is to say: `misses (saturated)`.
    pub(crate) fn said(&self) -> String {
        match (self.answer, &self.note) {
            (Some(answer), Some(note)) => format!("{answer} ({note})"),
            (Some(answer), None) => answer.to_owned(),
            (None, Some(note)) => note.clone(),
            (None, None) => "says nothing".to_owned(),
        }
    }

    /// What it was for, with the objective that asked for it where that is not the whole: `closing in for tpot`.
    pub(crate) fn what_for(&self) -> String {
        what_for(self.words, self.of)
    }

    /// What it was for and what it said: `closing in, holds (ttft p90 22.1 ms of 60ms)`.
    pub(crate) fn told(&self) -> String {
        let observed = Some(self.observed()).filter(|observed| !observed.is_empty());
        let observed = observed.map(|observed| format!(" ({observed})")).unwrap_or_default();
        format!("{}, {}{observed}", self.what_for(), self.said())
    }

    /// What was observed, limit by limit: `ttft p90 22.1 ms of 60ms`.
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

    /// The first of what its standing says, and what is to be known of that.
    pub(crate) fn headline(&self) -> (&str, Option<&str>) {
        self.standing.split_once("; ").map_or((&self.standing, None), |(found, rest)| (found, Some(rest)))
    }

    /// Full ids of the runs that it decided from.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &String> {
        self.steps.iter().flat_map(|step| &step.runs).chain(self.trials.iter().map(|trial| &trial.run))
    }

    /// What else there is to say of one of its runs: `invalid: client_late`.
    pub(crate) fn note_of(&self, run: &str) -> Option<&str> {
        let step = || self.steps.iter().find(|step| step.runs.iter().any(|id| id == run));
        let trial = || self.trials.iter().find(|trial| trial.run == run);
        step().and_then(|step| step.note.as_deref()).or_else(|| trial()?.note.as_deref())
    }

    /// What its loads are counted in.
    pub(crate) fn unit(&self) -> &'static str {
        if self.axis == "qps" { "qps" } else { "in flight" }
    }

    /// Why heavier loads are left out: `40 qps misses the objective (ttft p90 87.3 ms of 60ms)`; none where none is.
    pub(crate) fn why_left_out(&self) -> Option<String> {
        let last = self.steps.last()?;
        let observed = Some(last.observed()).filter(|observed| !observed.is_empty());
        let observed = observed.map(|observed| format!(" ({observed})")).unwrap_or_default();
        Some(format!("{} {} {}{observed}", last.load, self.unit(), self.cut?))
    }

    /// Which loads are left out, and why: `left out: 80, 160 qps, since 40 qps misses the objective`; none where none is.
    pub(crate) fn left_out(&self) -> Option<String> {
        let why = self.why_left_out().filter(|_| !self.pruned.is_empty())?;
        let loads = self.pruned.iter().map(f64::to_string).collect::<Vec<_>>().join(", ");
        Some(format!("left out: {loads} {}, since {why}", self.unit()))
    }

    /// How it stands and by which runs, in a few lines: where all runs stand in a table, the order in which they were asked for.
    pub(crate) fn path(&self) -> String {
        let step = |step: &TrailStep| {
            let long = if step.purpose == Purpose::Confirm.name() { " (long run)" } else { "" };
            format!("{}{long} {}", step.load, step.answer.unwrap_or("says nothing"))
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

    /// The limits that any of its steps has, each once, by their headings.
    fn headings(&self) -> IndexSet<String> {
        self.steps.iter().flat_map(|step| &step.limits).map(TrailLimit::heading).collect()
    }

    /// All of it, for people.
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

    /// Its steps, a row each.
    fn table(&self) -> Table {
        let headings = self.headings();
        let mut table = grid::table();
        let first = [self.unit(), "what for", "run", "requests"].map(str::to_owned);
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

/// What a run is for, with the objective that asks for it where that is not the whole one.
pub(crate) fn what_for(words: &str, of: Option<&str>) -> String {
    let alone = of.filter(|of| ![Objective::Slo, Objective::CostPerMillion].map(Objective::name).contains(of));
    alone.map_or_else(|| words.to_owned(), |of| format!("{words} for {of}"))
}

/// What else there is to say of runs of one load; what their tokens cost, where that is what was asked.
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
