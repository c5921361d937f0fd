//! Facts about a run as a whole: its windows, and the facts from which its verdict is computed.

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
    /// End of drain: nothing was in flight, or the remaining requests were cancelled.
    pub end_ns: u64,
}

impl Windows {
    /// Length of the measure window in seconds.
    pub fn measure_secs(&self) -> f64 {
        self.measure_end_ns.saturating_sub(self.measure_start_ns) as f64 / 1e9
    }
}

/// The facts from which a verdict is computed, in addition to rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Bounds of the phases.
    pub windows: Windows,
    /// The run's start on the client machine's monotonic clock, in nanoseconds; the origin of times in
    /// rows.
    pub start_monotonic_ns: u64,
    /// Whether the load was an open loop.
    pub open_loop: bool,
    /// The in-flight cap of an open loop, or the batch size of a closed one.
    pub batch_size: Option<u32>,
    /// Declared arrivals per second of an open loop.
    pub qps: Option<f64>,
    /// Average arrivals per second that a profile declares for the window; null if the rate is constantly
    /// `qps`.
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
    /// Why the client cannot be near the server, although the plan has `near: true`; null if it can be
    /// near, or if the plan does not set `near`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_near: Option<String>,
    /// Declared accelerators of the endpoint.
    pub gpus: Option<u32>,
    /// Whether users think between the turns of conversations. If so, the slots of a closed loop are
    /// not always in flight.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub thinks: bool,
    /// Requests that were scheduled from the start to the end of drain, including those in the window.
    pub scheduled: u64,
    /// Requests that were scheduled in the window.
    pub scheduled_in_window: u64,
    /// Requests of the window that were scheduled but never sent, with only the generator to blame.
    pub never_sent: u64,
    /// Time passed on the monotonic clock, in nanoseconds.
    pub monotonic_ns: u64,
    /// Time passed on the wall clock, in nanoseconds; negative if the clock was set back.
    pub wall_ns: i64,
    /// Time passed on the clock that continues during suspend, in nanoseconds, if the platform has one.
    pub boottime_ns: Option<u64>,
    /// CPU time of sweepline itself during the run, in nanoseconds, if known.
    pub client_cpu_ns: Option<u64>,
    /// Number of cores that this process may use.
    pub client_cores: u32,
    /// Maximum number of requests in flight at once.
    pub max_in_flight: u64,
    /// The generator's observations of itself; null in runs of versions that did not record them, or if the
    /// window was too short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
    /// The times in which no part of sweepline ran; null in runs of versions that did not record them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pauses: Option<Pauses>,
    /// Threads of the load generator that sent and received.
    #[serde(default = "one")]
    pub client_threads: u32,
    /// The timer that paces the load generator: timerfd or spin.
    #[serde(default = "timerfd")]
    pub client_timer: String,
    /// Source of the count of intended prompt tokens; null in runs of versions that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_count: Option<PromptCount>,
    /// The basis of `reusable_tokens` in the rows; null in runs of versions that computed it from the
    /// declared scenario, without the sent prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reuse_count: Option<ReuseCount>,
    /// Whether prompts have texts of a data set, so that their lengths are not declared; false in runs of
    /// versions that did not record it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recorded_texts: bool,
    /// The prompt of the probe, counted by us and by the server, if both counted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_prompt: Option<ProbePrompt>,
    /// Tokens of the shortest prompt that the chat template leaves room for, if the scenario also requests
    /// shorter ones: these are sent with this length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortest_prompt: Option<u32>,
    /// Whether no behavior of the server could end the run, because the plan sets `errors:
    /// measured`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub errors_measured: bool,
    /// The data scraped from the server during the run; null if the plan requests no telemetry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<Telemetry>,
    /// The processes that sent the load, if there were several; in this case they contain the facts about the
    /// generator.
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

/// Source of the count of intended prompt tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptCount {
    /// The model's own tokenizer: the count is exact.
    Tokenizer,
    /// The server's `/tokenize`, called word by word before the run; the count is a sum over words.
    Server,
    /// Neither of these: the count is an estimate from characters.
    Estimate,
}

/// How the prompt tokens shared with earlier requests were determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReuseCount {
    /// All sent prompts were compared, in the order in which requests started.
    Sent,
}

/// Tokens of one prompt, that of the probe, by two counts. The difference between the server's count and
/// ours is the number of tokens that the server adds to every prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbePrompt {
    /// Our count, by the tokenizer of the run.
    pub ours: u64,
    /// The server's count (`usage.prompt_tokens`).
    pub server: u64,
}

/// Runs that do not record this fact had one thread.
fn one() -> u32 {
    1
}

/// Runs that do not record this fact waited by timerfd.
fn timerfd() -> String {
    "timerfd".to_owned()
}

/// The circumstances of a run: recorded and compared, never hashed.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Host and port of the endpoint's URL; null for the embedded mock.
    pub host: Option<String>,
    /// The `Server` header or version that the server reported.
    pub server: Option<String>,
    /// Model ids that the server lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// The TCP handshake of the probe's connection, in nanoseconds: one round trip to the host that accepts
    /// it.
    pub connect_ns: Option<u64>,
    /// The TLS handshake of the probe's connection, in nanoseconds; null without TLS.
    pub tls_ns: Option<u64>,
    /// The shortest of the probe's small exchanges on an open connection, in nanoseconds.
    pub round_trip_ns: Option<u64>,
    /// The server's description of itself; empty in runs of versions that did not request it, and for the
    /// embedded mock.
    #[serde(default, skip_serializing_if = "Fingerprint::is_empty")]
    pub fingerprint: Fingerprint,
    /// Version of sweepline.
    pub sweepline: String,
    /// Name of the machine that sweepline ran on.
    pub client_host: String,
    /// Operating system and kernel release of that machine.
    pub client_os: String,
    /// Processor of that machine.
    pub client_cpu: Option<String>,
    /// Number of cores that sweepline could use.
    pub client_cores: u32,
    /// How the server was started; null if sweepline did not launch it.
    pub server_start: Option<ServerStart>,
    /// The GPUs of that machine, if `nvidia-smi` lists them: name and memory each. They belong to the
    /// server only if the server runs on that machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_gpus: Vec<String>,
    /// The version of the GPUs' driver.
    pub client_gpu_driver: Option<String>,
}
