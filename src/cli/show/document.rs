//! The document of `show RUN --format json`. Its types define the schema (schemas/show.schema.json).

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::super::answers::Answered;
use crate::analysis::{Failure, FinishCount, Pulse, ServerFigure, Verdict, Whole, saturation, slo, undecided};
use crate::cli::export::source::{class_rows, run_row};
use crate::export::Cell;
use crate::export::further::Further;
use crate::export::run_row::RunRow;
use crate::export::runs;
use crate::store::RunRecord;

/// A run with its verdict and all of its metrics.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document<'a> {
    /// The run's `run.json`: the specification with every default, the circumstances, the facts, and the
    /// digests of the files.
    #[schemars(with = "Map<String, Value>")]
    run: &'a RunRecord,
    /// The run's verdict.
    verdict: Verdict,
    /// How the failed requests of the window ended, the most frequent outcome first; absent if none failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<Failure>,
    /// Why the server ended the completed responses, the most frequent reason first.
    finish_reasons: Vec<FinishCount>,
    /// Each limit of the plan's objective, tested on the run; empty if there is no plan or no
    /// objective.
    slo: Vec<Limit>,
    /// Whether the server kept up with the arrivals; null for a closed loop, or if the window has no length.
    saturation: Option<Saturation>,
    /// The run over time, from its start to the end of drain; absent if nothing was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<Pulse>,
    /// The server's own metrics over the window; absent if nothing was scraped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    server: Vec<Figure>,
    /// How the time was spent: mean latencies, measured from the scheduled time, as sums of parts; absent if
    /// nothing was scraped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Sum>,
    /// The run's labels and every metric: the columns of `export`, described by `schema export`.
    metrics: Map<String, Value>,
    /// The labels and metrics of each class of a mix; absent if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    classes: Vec<Map<String, Value>>,
}

/// One limit of the objective and its test.
#[derive(Debug, Serialize, JsonSchema)]
struct Limit {
    /// The latency, like ttft_from_schedule.
    metric: &'static str,
    /// The percentile to which the limit applies.
    #[schemars(with = "String")]
    percentile: crate::plan::Percentile,
    /// The limit, in milliseconds.
    limit_ms: f64,
    /// Number of the n samples above the limit.
    above: u64,
    /// Number of tested samples.
    n: u64,
    /// The number of samples that would show that the limit holds, if none were above the limit and they
    /// depended on each other as much as these samples do.
    need: u64,
    /// The equivalent number of independent samples. Requests that wait for each other count less.
    worth: f64,
    /// The result: holds, misses or undecided.
    answer: &'static str,
    /// holds or misses: the outcome in what was seen, whether or not it is shown; null if no sample was tested.
    observed: Option<&'static str>,
    /// Length of a window, in seconds, that would be enough to decide if the share above the limit stayed
    /// the same; null if the outcome is decided, or if even a window a hundred times as long would not be
    /// enough.
    would_do_s: Option<f64>,
}

/// One figure of a server over the window.
#[derive(Debug, Serialize, JsonSchema)]
struct Figure {
    /// The name of the figure, like requests_running_mean; docs/TELEMETRY.md lists them.
    name: String,
    /// The unit of the figure, like requests, tokens, s, J or share.
    unit: &'static str,
    /// The value; null if unknown.
    value: Option<f64>,
    /// Why the value is unknown; null if it is known.
    absent: Option<String>,
}

/// A mean latency, measured from the scheduled time, and its parts.
#[derive(Debug, Serialize, JsonSchema)]
struct Sum {
    /// The latency: ttft or e2e.
    of: &'static str,
    /// Number of requests that the mean covers, which are those that ended in the window.
    requests: u64,
    /// The mean, in milliseconds.
    mean_ms: f64,
    /// The share of the mean that belongs to parts other than unassigned and unknown ones; null if the
    /// parts exceed the mean.
    assigned_share: Option<f64>,
    /// The parts of the mean.
    parts: Vec<Part>,
}

/// One part of a mean latency.
#[derive(Debug, Serialize, JsonSchema)]
struct Part {
    /// client, connection, network, outside_server, queue, prefill, decode, server_unassigned or unknown,
    /// as defined in docs/TELEMETRY.md.
    name: &'static str,
    /// Mean time per request, in milliseconds; null if unknown.
    ms: Option<f64>,
    /// Why the part is unknown; null if it is known.
    absent: Option<String>,
}

/// Whether the server of an open loop kept up.
#[derive(Debug, Serialize, JsonSchema)]
struct Saturation {
    /// The state of the server: kept_up, saturated or not_shown.
    state: &'static str,
    /// Whether the server kept up with the arrivals; null if the window is too short to decide.
    kept_up: Option<bool>,
    /// Requests per second that actually arrived in the window, according to the actual schedule.
    arrived_rate: f64,
    /// Requests per second that were completed in the window: arrivals minus the growth of the number in flight.
    completion_rate: f64,
    /// Lower end of the 95 % interval of `completion_rate`.
    completion_rate_low: f64,
    /// Upper end of the 95 % interval of `completion_rate`.
    completion_rate_high: f64,
    /// Requests in flight or waiting at the end of the window minus those at its beginning.
    growth: f64,
    /// Length of a window, in seconds, that would be enough to show whether the server kept up; null unless
    /// the state is not_shown, and null if no request arrived.
    would_do_s: Option<f64>,
}

impl<'a> Document<'a> {
    /// Builds the document from a run that was read.
    pub(crate) fn of(run: &'a RunRecord, answered: Answered) -> Document<'a> {
        Document {
            run,
            verdict: answered.verdict.clone(),
            failures: answered.metrics.failures.0.clone(),
            finish_reasons: answered.metrics.finish_reasons.0.clone(),
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
    let observed = test.met().map(|met| slo::Answer::observed(met).name());
    Limit { metric, percentile, limit_ms, above, n, need: alike_needed, worth, answer, observed, would_do_s: would_do }
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

/// Returns each row as a map from its column names to its values.
fn tables(rows: &[RunRow]) -> Vec<Map<String, Value>> {
    let sheet = runs::sheet(rows, &Further::of(rows, &[]), rows.iter().any(|row| row.class.is_some()));
    let names: Vec<String> = sheet.columns.iter().map(|column| column.name.clone()).collect();
    let table = |cells: Vec<Cell>| names.iter().cloned().zip(cells.into_iter().map(Cell::json)).collect();
    sheet.rows.map(table).collect()
}
