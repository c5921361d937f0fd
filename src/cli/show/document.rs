//! `show RUN --format json`: its types are its schema (schemas/show.schema.json).

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::analysis::verdict::Reason as Found;
use crate::analysis::{Failure, Pulse, slo};
use crate::export::Cell;
use crate::export::runs::{self, RunRow};
use crate::store::RunRecord;

use super::super::answers::Answered;
use super::super::export::{class_rows, run_row};
use super::super::schema::text_of;

/// One run in full.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Document<'a> {
    /// The run's `run.json`: its specification with every default, the circumstances, the facts, the digests of its files.
    #[schemars(with = "Map<String, Value>")]
    run: &'a RunRecord,
    /// What the run is worth.
    verdict: Verdict,
    /// How the failed requests of the window ended, the most frequent way first; absent where none failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<Failed>,
    /// Each limit of the plan's objective, tested on the run; empty without a plan or an objective.
    slo: Vec<Limit>,
    /// The load over the run, from its start to the end of drain; absent where nothing was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<Load>,
    /// What names the run, and every metric: the columns of `export`, of which `schema export` has the meaning.
    metrics: Map<String, Value>,
    /// The same for each class of a mix; absent where there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    classes: Vec<Map<String, Value>>,
}

/// A verdict.
#[derive(Debug, Serialize, JsonSchema)]
struct Verdict {
    /// valid, suspect or invalid: the worst of the reasons.
    state: &'static str,
    /// What speaks against the run.
    reasons: Vec<Reason>,
    /// What describes a run without speaking against it, like saturated.
    labels: Vec<Reason>,
    /// Reasons that could not be looked at, by name, and why.
    not_checked: Map<String, Value>,
}

/// One thing that was found.
#[derive(Debug, Serialize, JsonSchema)]
struct Reason {
    /// Its name in docs/METRICS.md, like client_late.
    name: &'static str,
    /// What it makes of the run: valid, suspect or invalid.
    state: &'static str,
    /// The figures, in a sentence.
    text: String,
}

/// The failed requests that ended in one way.
#[derive(Debug, Serialize, JsonSchema)]
struct Failed {
    /// How they ended, as in the rows: http_500, reset, …
    outcome: String,
    /// How many.
    count: u64,
    /// What was said of the first of them, by the server where it said anything; null where nobody did.
    message: Option<String>,
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
    /// How many without one above it would show that it holds.
    need: u64,
    /// holds, misses or undecided.
    answer: &'static str,
}

/// The load over a run, in parts of equal length.
#[derive(Debug, Serialize, JsonSchema)]
struct Load {
    /// Length of a part, in seconds.
    part_s: f64,
    /// The first part that holds some of the measure window, and the first behind it.
    window: [usize; 2],
    /// Requests in flight, the mean over each part.
    in_flight: Vec<f64>,
    /// Requests sent per second in each part.
    sent_per_s: Vec<f64>,
}

/// The schema, as text.
pub fn schema_text() -> String {
    text_of::<Document>("sweepline show --format json")
}

impl<'a> Document<'a> {
    /// The answer on a run that was read.
    pub fn of(run: &'a RunRecord, answered: Answered) -> Document<'a> {
        let verdict = &answered.verdict;
        let reasons = |found: &[Found]| found.iter().map(reason).collect();
        let not_checked = verdict.not_checked.iter().map(|(name, why)| ((*name).to_owned(), why.as_str().into()));
        Document {
            run,
            verdict: Verdict {
                state: verdict.state.name(),
                reasons: reasons(&verdict.reasons),
                labels: reasons(&verdict.labels),
                not_checked: not_checked.collect(),
            },
            failures: answered.metrics.failures.0.iter().map(failed).collect(),
            slo: answered.slo.iter().map(limit).collect(),
            load: answered.pulse.as_ref().map(load),
            classes: tables(&class_rows(None, None, run, &answered)),
            metrics: tables(&[run_row(None, None, run, answered)]).pop().unwrap_or_default(),
        }
    }
}

fn reason(found: &Found) -> Reason {
    Reason { name: found.name, state: found.state.name(), text: found.text.clone() }
}

fn failed(failure: &Failure) -> Failed {
    let Failure { outcome, count, message } = failure.clone();
    Failed { outcome: outcome.to_string(), count, message }
}

fn limit(test: &slo::SloTest) -> Limit {
    let slo::SloTest { metric, percentile, limit, above, n, need, answer } = *test;
    Limit { metric, percentile, limit_ms: limit.millis(), above, n, need, answer: answer.name() }
}

fn load(pulse: &Pulse) -> Load {
    let Pulse { part_s, window, in_flight, sent_per_s } = pulse.clone();
    Load { part_s, window: [window.start, window.end], in_flight, sent_per_s }
}

/// Each row as a table of its columns.
fn tables(rows: &[RunRow]) -> Vec<Map<String, Value>> {
    let axes = runs::axes(rows.iter().map(|row| &row.labels));
    let sheet = runs::sheet(rows, &axes, rows.iter().any(|row| row.class.is_some()));
    let names: Vec<String> = sheet.columns.iter().map(|column| column.name.clone()).collect();
    let table = |cells: Vec<Cell>| names.iter().cloned().zip(cells.into_iter().map(Cell::json)).collect();
    sheet.rows.map(table).collect()
}
