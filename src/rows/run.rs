//! What is known of a run as a whole: its windows and the facts that its verdict is computed from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fingerprint::Fingerprint;
use super::hook::HookRun;
use super::idle_before::Began;
use super::observed::{Observed, Pauses};
use super::server_start::ServerStart;
use super::telemetry::Telemetry;

/// The borders of the phases as they really were, in nanoseconds since the run's start (fill starts at 0).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows {
    /// End of fill, start of stabilize.
    pub stabilize_ns: u64,
    /// End of stabilize, start of measure.
    pub measure_start_ns: u64,
    /// End of measure, start of drain.
    pub measure_end_ns: u64,
    /// End of drain: nothing was in flight or what was has been cut.
    pub end_ns: u64,
}

impl Windows {
    /// Length of the measure window in seconds.
    pub fn measure_secs(&self) -> f64 {
        self.measure_end_ns.saturating_sub(self.measure_start_ns) as f64 / 1e9
    }
}

/// The facts a verdict is computed from, with what rows do not say.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Borders of the phases.
    pub windows: Windows,
    /// The run's start on the client machine's monotonic clock, in nanoseconds: what instants in rows count from.
    pub start_monotonic_ns: u64,
    /// Whether the load was an open loop.
    pub open_loop: bool,
    /// The in-flight cap of an open loop, or the batch size of a closed one.
    pub batch_size: Option<u32>,
    /// Declared arrivals per second of an open loop.
    pub qps: Option<f64>,
    /// Arrivals per second that a profile declares for the window, on average; none where the rate stays what `qps` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_qps: Option<f64>,
    /// Whether answers were streamed.
    pub stream: bool,
    /// Whether `ignore_eos` was sent: then every answer should have the asked length.
    pub ignore_eos: bool,
    /// How long the server was left alone before the load began, in nanoseconds; none where the plan asked for no pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ns: Option<u64>,
    /// Whether the server had finished what came before when the load began; none where it was not asked: in runs of versions that
    /// did not ask, after a run that left nothing behind on a server without a gauge, and where it could not be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<Began>,
    /// How the server started, where that is what the run measures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<ServerStart>,
    /// What the plan's hooks did beside the run, and the reset of its server, in the order in which they happened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookRun>,
    /// Why the client cannot be near the server, as `near: true` of the plan says; none where it can, or the plan does not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_near: Option<String>,
    /// Declared accelerators of the endpoint.
    pub gpus: Option<u32>,
    /// Whether users think between the turns of conversations: the slots of a closed loop are then not always in flight.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub thinks: bool,
    /// Requests the schedule wanted from start to the end of drain, and of these in the window.
    pub scheduled: u64,
    /// Requests of the window that the schedule wanted.
    pub scheduled_in_window: u64,
    /// Requests of the window that were scheduled and never sent, although nothing but the generator held them back.
    pub never_sent: u64,
    /// Time passed on the monotonic clock, in nanoseconds.
    pub monotonic_ns: u64,
    /// Time passed on the wall clock, in nanoseconds; negative when it was set back.
    pub wall_ns: i64,
    /// Time passed on the clock that goes on in suspend, in nanoseconds, where the platform has one.
    pub boottime_ns: Option<u64>,
    /// CPU time of sweepline itself during the run, in nanoseconds, where known.
    pub client_cpu_ns: Option<u64>,
    /// Cores this process may use.
    pub client_cores: u32,
    /// Most requests in flight at once.
    pub max_in_flight: u64,
    /// What the generator saw of itself; none in runs of versions that did not look, and where the window was too short
    /// to be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
    /// The times in which nothing of sweepline ran; none in runs of versions that did not tell them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pauses: Option<Pauses>,
    /// Threads of the load generator that sent and received.
    #[serde(default = "one")]
    pub client_threads: u32,
    /// What the load generator waited with for its schedule: timerfd or spin.
    #[serde(default = "timerfd")]
    pub client_timer: String,
    /// Who counted the prompt tokens that were meant to be sent; none in runs of versions that did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_count: Option<PromptCount>,
    /// What `reusable_tokens` of the rows says; none in runs of versions that took it from what the scenario declares, without
    /// looking at what was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reuse_count: Option<ReuseCount>,
    /// Whether prompts have texts of a data set, whose lengths nobody declared; false in runs of versions that did not say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recorded_texts: bool,
    /// The prompt of the probe, counted by us and by the server, where both counted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_prompt: Option<ProbePrompt>,
    /// Tokens of the shortest prompt that the chat template leaves room for, where the scenario asks for shorter ones too:
    /// those have as many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortest_prompt: Option<u32>,
    /// Nothing that the server did could end the run: the plan says `errors: measured`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub errors_measured: bool,
    /// What was scraped of the server beside the run; none where the plan asks for no telemetry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<Telemetry>,
}

/// Who counted the prompt tokens that were meant to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptCount {
    /// The model's own tokenizer: the count is exact.
    Tokenizer,
    /// The server, by its `/tokenize`, word by word before the run: the count is a sum over words.
    Server,
    /// Nobody: it is an estimate from characters.
    Estimate,
}

/// How it was found what prompts have in common with earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReuseCount {
    /// All that was sent was compared, in the order in which requests started.
    Sent,
}

/// Tokens of one prompt, the probe's, by two counts. What the server finds beyond ours is what it adds to every prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbePrompt {
    /// Ours, by the tokenizer of the run.
    pub ours: u64,
    /// The server's (`usage.prompt_tokens`).
    pub server: u64,
}

/// Runs from before this was a fact had one thread.
fn one() -> u32 {
    1
}

/// Runs from before this was a fact waited by timerfd.
fn timerfd() -> String {
    "timerfd".to_owned()
}

/// The circumstances of a run: recorded and compared, never hashed.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Host and port of the endpoint's URL; none for the embedded mock.
    pub host: Option<String>,
    /// The `Server` header or version the server gave of itself.
    pub server: Option<String>,
    /// Model ids the server lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// The TCP handshake of the probe's connection, in nanoseconds: one round trip to what answers it.
    pub connect_ns: Option<u64>,
    /// The TLS handshake of the probe's connection, in nanoseconds; none without TLS.
    pub tls_ns: Option<u64>,
    /// The shortest of the probe's small exchanges on an open connection, in nanoseconds.
    pub round_trip_ns: Option<u64>,
    /// What the server said of itself; nothing in runs of versions that did not ask, and of the embedded mock.
    #[serde(default, skip_serializing_if = "Fingerprint::is_empty")]
    pub fingerprint: Fingerprint,
    /// Version of sweepline.
    pub sweepline: String,
    /// Name of the machine sweepline ran on.
    pub client_host: String,
    /// Operating system and kernel release of that machine.
    pub client_os: String,
    /// Processor of that machine.
    pub client_cpu: Option<String>,
    /// Cores sweepline could use.
    pub client_cores: u32,
    /// How the server was started; none where sweepline did not launch it.
    pub server_start: Option<ServerStart>,
    /// The GPUs of that machine, where `nvidia-smi` lists them: name and memory each. They are the server's only where it stands
    /// there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_gpus: Vec<String>,
    /// The version of their driver.
    pub client_gpu_driver: Option<String>,
}
