//! `show RUN --format json`: its types are its schema (schemas/show.schema.json).

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::super::answers::Answered;
use crate::analysis::{Failure, Pulse, ServerFigure, Verdict, Whole, saturation, slo, undecided};
use crate::cli::export::source::{class_rows, run_row};
use crate::export::Cell;
use crate::export::further::Further;
use crate::export::run_row::RunRow;
use crate::export::runs;
use crate::store::RunRecord;

/// One run in full.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document<'a> {
    /// The run's `run.json`: its specification with every default, the circumstances, the facts, the digests of its files.
    #[schemars(with = "Map<String, Value>")]
    run: &'a RunRecord,
    /// What the run is worth.
    verdict: Verdict,
    /// How the failed requests of the window ended, the most frequent way first; absent where none failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<Failure>,
    /// Each limit of the plan's objective, tested on the run; empty without a plan or an objective.
    slo: Vec<Limit>,
    /// Whether the server kept up with what came; null for a closed loop, and where the window has no length.
    saturation: Option<Saturation>,
    /// The run over time, from its start to the end of drain; absent where nothing was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<Pulse>,
    /// What the server said of itself over the window; absent where nothing was scraped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    server: Vec<Figure>,
    /// Where the time went: mean latencies from the schedule as sums of parts; absent where nothing was scraped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Sum>,
    /// What names the run, and every metric: the columns of `export`, of which `schema export` has the meaning.
    metrics: Map<String, Value>,
    /// The same for each class of a mix; absent where there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    classes: Vec<Map<String, Value>>,
}

/// One limit of the objective and what the test says.
#[derive(Debug, Serialize, JsonSchema)]
struct Limit {
    /// The latency, like ttft_from_schedule.
    metric: &'static str,
    /// Which percentile of it is limited.
    #[schemars(with = "String")]
    percentile: crate::plan::Percentile,
    /// The limit, in milliseconds.
    limit_ms: f64,
    /// How many of the n were above it.
    above: u64,
    /// How many were looked at.
    n: u64,
    /// How many without one above it, that depend on each other as these do, would show that it holds.
    need: u64,
    /// How many independent ones the n are worth: those that wait for each other say less.
    worth: f64,
    /// holds, misses or undecided.
    answer: &'static str,
    /// Seconds of a window that would decide, were the share above the limit what it is here; null where it is decided, and where a
    /// window a hundred times as long would not do.
    would_do_s: Option<f64>,
}

/// One figure of a server over the window.
#[derive(Debug, Serialize, JsonSchema)]
struct Figure {
    /// Its name, like requests_running_mean; docs/TELEMETRY.md lists them.
    name: String,
    /// Its unit, like requests, tokens, s, J or share.
    unit: &'static str,
    /// Null where it is not known.
    value: Option<f64>,
    /// Why it is not known; null where it is.
    absent: Option<String>,
}

/// A mean latency from the schedule, and what it is the sum of.
#[derive(Debug, Serialize, JsonSchema)]
struct Sum {
    /// ttft or e2e.
    of: &'static str,
    /// How many requests it is the mean of: those that ended in the window.
    requests: u64,
    /// The mean, in milliseconds.
    mean_ms: f64,
    /// The share that is neither unassigned nor unknown; null where the parts come to more than the whole.
    assigned_share: Option<f64>,
    /// What it is the sum of.
    parts: Vec<Part>,
}

/// One part of a mean latency.
#[derive(Debug, Serialize, JsonSchema)]
struct Part {
    /// client, connection, network, outside_server, queue, prefill, decode, server_unassigned or unknown; docs/TELEMETRY.md defines each.
    name: &'static str,
    /// Mean milliseconds of a request; null where they are not known.
    ms: Option<f64>,
    /// Why they are not known; null where they are.
    absent: Option<String>,
}

/// Whether the server of an open loop kept up.
#[derive(Debug, Serialize, JsonSchema)]
struct Saturation {
    /// kept_up, saturated or not_shown.
    state: &'static str,
    /// Whether the server kept up with what came; null where the window is too short to tell.
    kept_up: Option<bool>,
    /// Requests per second that really came in the window, by the schedule that was kept.
    arrived_rate: f64,
    /// Requests per second that were done in the window: what came less what the number in flight rose by.
    completion_rate: f64,
    /// Lower end of its 95 % interval.
    completion_rate_low: f64,
    /// Upper end of its 95 % interval.
    completion_rate_high: f64,
    /// Requests in flight or waiting at the window's end less those at its begin.
    growth: f64,
    /// Seconds of a window that would tell, as far as can be known; null unless it is not_shown, and where no request
    /// came.
    would_do_s: Option<f64>,
}

impl<'a> Document<'a> {
    /// The answer on a run that was read.
    pub(crate) fn of(run: &'a RunRecord, answered: Answered) -> Document<'a> {
        Document {
            run,
            verdict: answered.verdict.clone(),
            failures: answered.metrics.failures.0.clone(),
            slo: answered.slo.iter().map(limit).collect(),
            saturation: answered.metrics.saturation.map(saturated),
            load: answered.pulse.clone(),
            server: answered.metrics.server.iter().map(figure).collect(),
            parts: answered.metrics.wholes.iter().map(sum).collect(),
            classes: tables(&class_rows((None, None), run, &answered)),
            metrics: tables(&[run_row((None, None), run, answered)]).pop().unwrap_or_default(),
        }
    }
}

fn limit(test: &slo::SloTest) -> Limit {
    let slo::SloTest { metric, percentile, limit, above, n, alike_needed, evidence, answer, would_do } = *test;
    let (limit_ms, worth, answer) = (limit.millis(), evidence.worth.requests, answer.name());
    Limit { metric, percentile, limit_ms, above, n, need: alike_needed, worth, answer, would_do_s: would_do }
}

fn figure(figure: &ServerFigure) -> Figure {
    let (name, unit) = (figure.name.clone(), figure.unit.symbol());
    let value = figure.value.as_ref().ok().copied();
    Figure { name, unit, value, absent: figure.value.as_ref().err().cloned() }
}

fn sum(whole: &Whole) -> Sum {
    let part = |part: &crate::analysis::Part| {
        let (ms, absent) = (part.ms.as_ref().ok().copied(), part.ms.as_ref().err().cloned());
        Part { name: part.name, ms, absent }
    };
    let Whole { name, requests, mean_ms, parts } = whole;
    let assigned_share = whole.assigned_share();
    let parts = parts.iter().map(part).collect();
    Sum { of: name, requests: *requests, mean_ms: *mean_ms, assigned_share, parts }
}

fn saturated(evidence: saturation::Evidence) -> Saturation {
    let state = evidence.state();
    let (completion_rate, [completion_rate_low, completion_rate_high]) = evidence.completion_rate();
    Saturation {
        state: state.name(),
        kept_up: match state {
            saturation::State::KeptUp => Some(true),
            saturation::State::Saturated => Some(false),
            saturation::State::NotShown => None,
        },
        arrived_rate: evidence.rate(),
        completion_rate,
        completion_rate_low,
        completion_rate_high,
        growth: evidence.growth,
        would_do_s: (state == saturation::State::NotShown).then(|| undecided::keeps_up(&evidence)).flatten(),
    }
}

/// Each row as a table of its columns.
fn tables(rows: &[RunRow]) -> Vec<Map<String, Value>> {
    let sheet = runs::sheet(rows, &Further::of(rows, &[]), rows.iter().any(|row| row.class.is_some()));
    let names: Vec<String> = sheet.columns.iter().map(|column| column.name.clone()).collect();
    let table = |cells: Vec<Cell>| names.iter().cloned().zip(cells.into_iter().map(Cell::json)).collect();
    sheet.rows.map(table).collect()
}
