//! One line of `run --events`.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::state::LivePhase;
use crate::report::format::plain;
use crate::sweep::event::{RunView, load_name};

/// Version of the format of the lines. It is increased when a program that reads the old format would misread
/// the new one.
const FORMAT: u32 = 1;

/// One line of the file of `run --events`: an event.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct EventLine {
    /// Format of this line: 1.
    format: u32,
    /// Time of the event, in UTC: `2026-11-24T14:05:12.123Z`.
    time: String,
    /// The id of the process that runs the sweep. Several processes may append to one file.
    pid: u32,
    /// The plan's name.
    plan: String,
    /// The kind of event.
    event: EventKind,
    /// The run of the event; null if the event concerns no run.
    run: Option<EventRun>,
    /// The endpoint of the event; null if the event concerns no endpoint. For events of a run, the endpoint
    /// is in `run`.
    endpoint: Option<String>,
    /// The phase that began; null except for `phase`.
    phase: Option<LivePhase>,
    /// How the run ended; null except for `run_ended`.
    result: Option<EventResult>,
    /// The numbers of runs to execute and of settled runs; null except for `stage_started`.
    runs: Option<EventCounts>,
    /// Details in words that the other fields do not contain, such as the reason, a finding or the next
    /// step; null if there are none.
    text: Option<String>,
}

/// The kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EventKind {
    /// A stage of the sweep begins. It consists of all runs that need no further results.
    StageStarted,
    /// The stage has ended.
    StageEnded,
    /// An endpoint responds; is slow, busy or far away; or cannot be used.
    Endpoint,
    /// A server is being started, is ready, or is restarted.
    Server,
    /// The sweep waits for an endpoint.
    Waiting,
    /// A search, a ladder or a cell whose repeats may end early has decided on its next step, or ended.
    Decided,
    /// A run starts.
    RunStarted,
    /// A phase of a run begins.
    Phase,
    /// The environment spoiled an attempt at a run; the run is retried.
    RunSpoiled,
    /// A run has ended; `result` contains its outcome.
    RunEnded,
    /// A stop of the sweep was requested.
    Stopping,
}

/// The run of an event.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct EventRun {
    /// The number of the run among the runs of the stage, from 1.
    number: usize,
    /// The id of the run.
    id: String,
    /// The name of the run for human readers.
    name: String,
    /// The sweep of the run.
    sweep: String,
    /// The endpoint of the run.
    endpoint: String,
    /// The plan's name for the model.
    model: String,
    /// The plan's name for the scenario.
    scenario: String,
    /// The load of the run: `batch 8`, `5 qps`.
    load: String,
}

/// The numbers of runs of a stage.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
struct EventCounts {
    /// Runs to execute.
    todo: usize,
    /// Runs that are not executed, because they have results or are skipped.
    settled: usize,
}

/// How a run ended.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct EventResult {
    /// The outcome.
    outcome: Outcome,
    /// The main numbers; null if the run was not committed, or if its files could not be read.
    headline: Option<Headline>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// The run has a result.
    Committed,
    /// The run failed.
    Failed,
    /// The environment spoiled every attempt that `retries` allows.
    GivenUp,
    /// The run was skipped for now.
    Skipped,
    /// The run is not needed, because its cell ended before all repeats were executed.
    Pruned,
}

/// The main numbers of a committed run; docs/METRICS.md defines them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Headline {
    /// The verdict: `valid`, `suspect` or `invalid`.
    pub(crate) verdict: &'static str,
    /// The names of the reasons for the verdict; empty for a valid run.
    pub(crate) reasons: Vec<&'static str>,
    /// Number of requests in the window.
    pub(crate) requests: u64,
    /// Number of failed requests among `requests`.
    pub(crate) failed: u64,
    /// Median time to first token, in milliseconds; null if there is none.
    pub(crate) ttft_p50_ms: Option<f64>,
    /// 99th percentile of the time to first token, in milliseconds; null if there is none, or if it lies
    /// beyond the observed values.
    pub(crate) ttft_p99_ms: Option<f64>,
    /// Median time per output token, in milliseconds; null if there is none.
    pub(crate) tpot_p50_ms: Option<f64>,
    /// Output tokens per second; null if there is none.
    pub(crate) output_throughput_tokens_per_s: Option<f64>,
}

impl EventLine {
    /// Creates a line for an event of a plan's sweep at the current time, with all other fields empty.
    pub(super) fn new(plan: &str, event: EventKind) -> EventLine {
        EventLine {
            format: FORMAT,
            time: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string(),
            pid: std::process::id(),
            plan: plan.to_owned(),
            event,
            run: None,
            endpoint: None,
            phase: None,
            result: None,
            runs: None,
            text: None,
        }
    }

    /// Sets the run.
    pub(super) fn run(self, run: &RunView) -> EventLine {
        let group = &run.group;
        let run = EventRun {
            number: run.number,
            id: run.id.to_string(),
            name: plain(&run.name),
            sweep: group.sweep.to_string(),
            endpoint: group.endpoint.to_string(),
            model: group.model.to_string(),
            scenario: group.scenario.to_string(),
            load: load_name(&run.load),
        };
        EventLine { run: Some(run), ..self }
    }

    /// Sets the endpoint.
    pub(super) fn endpoint(self, endpoint: &str) -> EventLine {
        EventLine { endpoint: Some(endpoint.to_owned()), ..self }
    }

    /// Sets the phase.
    pub(super) fn phase(self, phase: LivePhase) -> EventLine {
        EventLine { phase: Some(phase), ..self }
    }

    /// Sets how the run ended.
    pub(super) fn result(self, outcome: Outcome, headline: Option<Headline>) -> EventLine {
        EventLine { result: Some(EventResult { outcome, headline }), ..self }
    }

    /// Sets the numbers of runs.
    pub(super) fn runs(self, todo: usize, settled: usize) -> EventLine {
        EventLine { runs: Some(EventCounts { todo, settled }), ..self }
    }

    /// Sets the text.
    pub(super) fn text(self, text: &str) -> EventLine {
        EventLine { text: Some(plain(text)), ..self }
    }

    /// Returns the line as bytes, including its line end.
    pub(super) fn bytes(&self) -> Vec<u8> {
        // Serialization cannot fail, because every field of the line can be represented in JSON.
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}
