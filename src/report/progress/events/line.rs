//! One line of `run --events`.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::state::LivePhase;
use crate::report::format::plain;
use crate::sweep::event::{RunView, load_name};

/// Format of the lines; raised when a reader of the old one would misread the new.
const FORMAT: u32 = 1;

/// One line of the file of `run --events`: something that happened.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct EventLine {
    /// Format of this line: 1.
    format: u32,
    /// When it was told, in UTC: `2026-11-24T14:05:12.123Z`.
    time: String,
    /// The process that runs the sweep: several may append to one file.
    pid: u32,
    /// The plan's name.
    plan: String,
    /// What happened.
    event: EventKind,
    /// The run that it is about; null where it is about none.
    run: Option<EventRun>,
    /// The endpoint that it is about; null where it is about none. Of a run's events it is in `run`.
    endpoint: Option<String>,
    /// The phase that began; null of all but `phase`.
    phase: Option<LivePhase>,
    /// How the run ended; null of all but `run_ended`.
    result: Option<EventResult>,
    /// Runs that are to do and runs that are settled already; null of all but `stage_started`.
    runs: Option<EventCounts>,
    /// In words, what the other fields do not say: why, what was found, what comes next; null where there is no more to say.
    text: Option<String>,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EventKind {
    /// A stage of the sweep begins: all that can be run before something must be known.
    StageStarted,
    /// Nothing more happens in the stage.
    StageEnded,
    /// An endpoint answers, is slow, busy or far, or cannot be used.
    Endpoint,
    /// A server is being started, is ready, or is started again.
    Server,
    /// An endpoint is waited for.
    Waiting,
    /// A search, a ladder or a cell whose repeats may end early has decided what comes next, or that nothing does.
    Decided,
    /// A run begins.
    RunStarted,
    /// A phase of a run begins.
    Phase,
    /// The environment spoiled an attempt at a run; it is tried again.
    RunSpoiled,
    /// A run has ended: `result` says how.
    RunEnded,
    /// The sweep was told to stop.
    Stopping,
}

/// A run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct EventRun {
    /// Its number among the runs of the stage, from 1.
    number: usize,
    /// Its id.
    id: String,
    /// What people call it.
    name: String,
    /// Its sweep.
    sweep: String,
    /// Its endpoint.
    endpoint: String,
    /// The plan's name of its model.
    model: String,
    /// The plan's name of its scenario.
    scenario: String,
    /// Its load: `batch 8`, `5 qps`.
    load: String,
}

/// Numbers of runs.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
struct EventCounts {
    /// To do.
    todo: usize,
    /// Not executed: their results are there, or they are left out.
    settled: usize,
}

/// How a run ended.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct EventResult {
    /// How.
    outcome: Outcome,
    /// What was measured; null unless it was committed, and where its files could not be read.
    headline: Option<Headline>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// It has its result.
    Committed,
    /// It failed.
    Failed,
    /// The environment spoiled every attempt that `retries` allows.
    GivenUp,
    /// It was left out for now.
    Skipped,
    /// It is not needed: its cell has ended before all of its repeats were made.
    Pruned,
}

/// The main numbers of a committed run; docs/METRICS.md defines them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Headline {
    /// The verdict: `valid`, `suspect` or `invalid`.
    pub(crate) verdict: &'static str,
    /// The names of its reasons; empty of a valid run.
    pub(crate) reasons: Vec<&'static str>,
    /// Requests of the window.
    pub(crate) requests: u64,
    /// Those of them that failed.
    pub(crate) failed: u64,
    /// Median time to first token, in milliseconds; null where there is none.
    pub(crate) ttft_p50_ms: Option<f64>,
    /// 99th percentile of the time to first token, in milliseconds; null where there is none, or it is not among what was observed.
    pub(crate) ttft_p99_ms: Option<f64>,
    /// Median time per output token, in milliseconds; null where there is none.
    pub(crate) tpot_p50_ms: Option<f64>,
    /// Output tokens per second; null where there is none.
    pub(crate) output_throughput_tokens_per_s: Option<f64>,
}

impl EventLine {
    /// A line of a plan's sweep, as of now, in which nothing more is said.
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

    /// About a run.
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

    /// About an endpoint.
    pub(super) fn endpoint(self, endpoint: &str) -> EventLine {
        EventLine { endpoint: Some(endpoint.to_owned()), ..self }
    }

    /// Of a phase.
    pub(super) fn phase(self, phase: LivePhase) -> EventLine {
        EventLine { phase: Some(phase), ..self }
    }

    /// How the run ended.
    pub(super) fn result(self, outcome: Outcome, headline: Option<Headline>) -> EventLine {
        EventLine { result: Some(EventResult { outcome, headline }), ..self }
    }

    /// How many runs there are.
    pub(super) fn runs(self, todo: usize, settled: usize) -> EventLine {
        EventLine { runs: Some(EventCounts { todo, settled }), ..self }
    }

    /// With words.
    pub(super) fn text(self, text: &str) -> EventLine {
        EventLine { text: Some(plain(text)), ..self }
    }

    /// The bytes, with the line's end.
    pub(super) fn bytes(&self) -> Vec<u8> {
        // Nothing in it can fail to be written as JSON.
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}
