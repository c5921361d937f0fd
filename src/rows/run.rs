//! Facts about a run as a whole: its phases, its circumstances, and the facts from which its verdict is
//! computed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fingerprint::Fingerprint;
use super::hook::HookRun;
use super::idle_before::Began;
use super::observed::{Observed, Pauses};
use super::server_start::ServerStart;
use super::telemetry::Telemetry;
use super::worker::Worker;

/// The actual bounds of the phases, in nanoseconds since the run's start (fill starts at 0).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows {
    /// End of fill, start of stabilize.
    pub stabilize_ns: u64,
    /// End of stabilize, start of measure.
    pub measure_start_ns: u64,
    /// End of measure, start of drain.
    pub measure_end_ns: u64,
    /// End of drain: the time when no request was in flight any more, or when the remaining requests were
    /// cancelled.
    pub end_ns: u64,
}

impl Windows {
    /// Returns the length of the measure window, in seconds.
    pub fn measure_secs(&self) -> f64 {
        self.measure_end_ns.saturating_sub(self.measure_start_ns) as f64 / 1e9
    }
}

/// The facts that, together with the run's rows, determine its verdict.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Bounds of the phases.
    pub windows: Windows,
    /// The run's start on the client machine's monotonic clock, in nanoseconds. Times in rows are counted
    /// from this start.
    pub start_monotonic_ns: u64,
    /// Whether the load was an open loop.
    pub open_loop: bool,
    /// The in-flight cap of an open loop, or the batch size of a closed loop.
    pub batch_size: Option<u32>,
    /// Declared arrivals per second of an open loop.
    pub qps: Option<f64>,
    /// Average arrivals per second that a rate profile declares for the measure window; null if the rate is
    /// always `qps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_qps: Option<f64>,
    /// Whether responses were streamed.
    pub stream: bool,
    /// Whether `ignore_eos` was sent. If so, every response should have the requested length.
    pub ignore_eos: bool,
    /// How long the server was idle before the load began, in nanoseconds; null if the plan requested no
    /// pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ns: Option<u64>,
    /// Whether the server had finished earlier work when the load began. Null if this was not checked:
    /// in runs of versions without the check, after a run that left no unfinished requests on a server
    /// without a gauge, or if the check was not possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<Began>,
    /// The start of the server, if the run measures it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<ServerStart>,
    /// The plan's hooks during the run, and the reset of its server, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookRun>,
    /// Why the client cannot be near the server, although the plan has `near: true`. Null if the client may
    /// be near the server, or if the plan does not set `near`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_near: Option<String>,
    /// Number of accelerators that the plan declares for the endpoint; null if it declares none.
    pub gpus: Option<u32>,
    /// Whether the simulated users think between the turns of conversations. If so, some slots of a closed
    /// loop have no request in flight at times.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub thinks: bool,
    /// Number of requests that were scheduled from the run's start to the end of drain, including those in
    /// the measure window.
    pub scheduled: u64,
    /// Number of requests that were scheduled in the measure window.
    pub scheduled_in_window: u64,
    /// Number of requests that were scheduled in the measure window but never sent. Requests that the
    /// in-flight cap held back are not counted, so only the generator can be the cause.
    pub never_sent: u64,
    /// Duration of the run on the monotonic clock, in nanoseconds.
    pub monotonic_ns: u64,
    /// Duration of the run on the wall clock, in nanoseconds; negative if the clock was set back.
    pub wall_ns: i64,
    /// Duration of the run on the clock that keeps running while the machine is suspended, in nanoseconds;
    /// null if the platform has no such clock.
    pub boottime_ns: Option<u64>,
    /// CPU time of sweepline itself during the run, in nanoseconds; null if unknown.
    pub client_cpu_ns: Option<u64>,
    /// Number of cores that this process may use.
    pub client_cores: u32,
    /// Maximum number of requests in flight at once.
    pub max_in_flight: u64,
    /// The generator's observations of itself; null in runs of versions that did not record them, or if the
    /// measure window was too short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
    /// The times in which no part of sweepline ran; null in runs of versions that did not record them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pauses: Option<Pauses>,
    /// Number of threads of the load generator that sent requests and received responses.
    #[serde(default = "one")]
    pub client_threads: u32,
    /// The timer that paces the load generator: timerfd or spin.
    #[serde(default = "timerfd")]
    pub client_timer: String,
    /// Source of the count of intended prompt tokens; null in runs of versions that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_count: Option<PromptCount>,
    /// How `reusable_tokens` in the rows was determined; null in runs of versions that computed it from the
    /// declared scenario instead of the sent prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reuse_count: Option<ReuseCount>,
    /// Whether prompts contain texts from a data set, whose lengths the plan does not declare; false in
    /// runs of versions that did not record this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recorded_texts: bool,
    /// The number of tokens of the probe's prompt, as counted by us and by the server; null unless both
    /// counts are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_prompt: Option<ProbePrompt>,
    /// Number of tokens of the shortest prompt that the chat template allows, if the scenario also requests
    /// shorter prompts. The shorter prompts are sent with this length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortest_prompt: Option<u32>,
    /// Whether the plan sets `errors: measured`. If so, no behavior of the server could end the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub errors_measured: bool,
    /// The streams that the server held open after `[DONE]`; null if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lingering: Option<Lingering>,
    /// Version of the reader of responses; 1 in runs of versions that did not record it.
    #[serde(default = "first_reader", skip_serializing_if = "is_first_reader")]
    pub reader: u32,
    /// The data scraped from the server during the run; null if the plan requests no telemetry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<Telemetry>,
    /// The processes that sent the load; empty if there was only one. If there were several, the facts
    /// about the generator are recorded here for each of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<Worker>,
}

impl Facts {
    /// Returns the facts as `worker` alone would have recorded them.
    pub fn of_worker(&self, worker: &Worker) -> Facts {
        Facts {
            monotonic_ns: worker.monotonic_ns,
            wall_ns: worker.wall_ns,
            boottime_ns: worker.boottime_ns,
            client_cpu_ns: worker.cpu_ns,
            client_cores: worker.cores,
            observed: worker.observed.clone(),
            pauses: worker.pauses,
            workers: Vec::new(),
            ..self.clone()
        }
    }
}

/// Version of the reader of responses. Responses that a later version reads differently get the next number.
///
/// Since version 2, a stream ends with `[DONE]`, a finish reason or a last usage, finish reasons are judged, and tokens
/// that nobody counted are null.
pub const READER: u32 = 2;

/// The streams that a server held open after `[DONE]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lingering {
    /// Number of streams.
    pub responses: u64,
    /// Maximum number of these streams that were open at once.
    pub most: u64,
}

/// Source of the count of intended prompt tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptCount {
    /// The model's own tokenizer: the count is exact.
    Tokenizer,
    /// The server's `/tokenize`, which counted the tokens of each word before the run; the count is the
    /// sum over the words of the prompt.
    Server,
    /// Neither a tokenizer nor `/tokenize` was available: the count is an estimate from the number of
    /// characters.
    Estimate,
}

/// How the prompt tokens shared with earlier requests were determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReuseCount {
    /// All sent prompts were compared, in the order in which requests started.
    Sent,
}

/// The number of tokens of the probe's prompt, counted by us and by the server. If our count is exact, the
/// difference between the two counts is the number of tokens that the server adds to every prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbePrompt {
    /// Our count, from the tokenizer of the run, or an estimate if the run has none.
    pub ours: u64,
    /// The server's count (`usage.prompt_tokens`).
    pub server: u64,
}

/// Returns the default of `client_threads`: runs that did not record it had one thread.
fn one() -> u32 {
    1
}

/// Returns the default of `reader`.
fn first_reader() -> u32 {
    1
}

/// Whether the default of `reader` need not be written.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_first_reader(reader: &u32) -> bool {
    *reader == first_reader()
}

/// Returns the default of `client_timer`: runs that did not record it used timerfd.
fn timerfd() -> String {
    "timerfd".to_owned()
}

/// The circumstances of a run. They are recorded and compared, but are not part of the run's id.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Host and port of the endpoint's URL; null for the embedded mock.
    pub host: Option<String>,
    /// The value of the `Server` header, or the version, that the server reported.
    pub server: Option<String>,
    /// Model ids that the server lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// Duration of the TCP handshake of the probe's connection, in nanoseconds: one round trip to the host
    /// that accepts the connection.
    pub connect_ns: Option<u64>,
    /// Duration of the TLS handshake of the probe's connection, in nanoseconds; null without TLS.
    pub tls_ns: Option<u64>,
    /// Duration of the shortest of the probe's small exchanges on an open connection, in nanoseconds.
    pub round_trip_ns: Option<u64>,
    /// The server's description of itself; empty in runs of versions that did not request it, and for the
    /// embedded mock.
    #[serde(default, skip_serializing_if = "Fingerprint::is_empty")]
    pub fingerprint: Fingerprint,
    /// Version of sweepline.
    pub sweepline: String,
    /// Name of the machine that sweepline ran on.
    pub client_host: String,
    /// Operating system and kernel release of the machine that sweepline ran on.
    pub client_os: String,
    /// Processor of the machine that sweepline ran on.
    pub client_cpu: Option<String>,
    /// Number of cores that sweepline could use.
    pub client_cores: u32,
    /// How the server was started; null if sweepline did not launch it.
    pub server_start: Option<ServerStart>,
    /// Name and memory of each GPU of the machine that sweepline ran on, if `nvidia-smi` lists them. These
    /// GPUs belong to the server only if the server runs on the same machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_gpus: Vec<String>,
    /// Driver version of the GPUs in `client_gpus`.
    pub client_gpu_driver: Option<String>,
}
