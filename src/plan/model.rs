//! The plan as the user writes it: one Rust type per table of the file. The doc comments here are the descriptions in
//! `schemas/plan.schema.json`. Defaults that depend on nothing else are filled in while reading; those that depend on
//! the sweep, the engine or the scenario are filled in by `expand`.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Decimal, Nanos, PerToken, Seed, Share};

use super::shorthand::{OneOrMany, SecretRef};

/// A table whose order is the file's order.
pub type Table<T> = IndexMap<String, T>;

/// A sweepline plan: which endpoints, models and scenarios are measured under which load, and how the results are judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "sweepline plan")]
pub struct Plan {
    /// Version of the plan format: 1.
    #[schemars(range(min = 1, max = 1))]
    pub sweepline: u32,
    /// Name of the plan, shown in tables and reports.
    pub name: String,
    /// What you expect to see, before you look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hypothesis: Option<String>,
    /// Anything a reader of the results should know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Seed of arrival times, prompt texts and run order.
    #[serde(default)]
    pub seed: Seed,
    /// The servers under test, by name.
    pub endpoints: Table<Endpoint>,
    /// The models, by name.
    pub models: Table<Model>,
    /// Your scenarios, by name. The built-ins A1, A2, B1, B2, C and D need no entry.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub scenarios: Table<Scenario>,
    /// How long each phase of a run lasts.
    #[serde(default)]
    pub phases: PhasesPatch,
    /// The pause between two runs on the same resource.
    #[serde(default)]
    pub between: Between,
    /// When a request is given up.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// Ask for answers token by token. Also per scenario, or an axis.
    #[serde(default = "yes")]
    pub stream: bool,
    /// Open every prompt with a few tokens that no other run used, so that no run meets a cache another one warmed.
    #[serde(default)]
    pub nonce: Switch,
    /// What to do when the server that is found differs from the one measured before.
    #[serde(default)]
    pub environment: EnvironmentPolicy,
    /// Thresholds of the verdict's reasons.
    #[serde(default)]
    pub validity: Validity,
    /// The service level objective: limits on percentiles of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slo: Option<Slo>,
    /// Limits a single request must meet to count as good. Default: the thresholds of `slo`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput: Option<Goodput>,
    /// The sweeps, by name, in the order in which they run.
    pub sweeps: Table<Sweep>,
}

fn yes() -> bool {
    true
}

/// A server under test: a `url`, or the embedded mock (`engine: mock`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// Base address of the OpenAI-compatible API, like http://127.0.0.1:8000/v1. Absent for the embedded mock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Which inference engine answers; decides which extensions are sent (such as ignore_eos).
    #[serde(default)]
    pub engine: Engine,
    /// Which API is called.
    #[serde(default)]
    pub api: Api,
    /// The API key, as a reference: { secret: env:VLLM_API_KEY } or { secret: file:key.txt }. Never the key itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<SecretRef>,
    /// The hardware the server runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<Hardware>,
    /// Facts about the running server that decide its speed: version, parallelism, flags.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub server: Table<Fact>,
    /// What the endpoint shares with others: runs on one resource never overlap. Default: the endpoint itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The embedded mock's behaviour; only with `engine: mock` and without `url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mock: Option<MockFigures>,
    /// Set to true to accept any TLS certificate of this endpoint. Say why in `notes`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub insecure_tls: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// The inference engine behind an endpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// vLLM.
    Vllm,
    /// SGLang.
    Sglang,
    /// NVIDIA NIM.
    Nim,
    /// Hugging Face Text Generation Inference.
    Tgi,
    /// llama.cpp's server.
    Llamacpp,
    /// Any other OpenAI-compatible server.
    #[default]
    Openai,
    /// sweepline's own mock; embedded when the endpoint has no `url`.
    Mock,
}

impl Engine {
    /// The name in plans and rows.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Vllm => "vllm",
            Engine::Sglang => "sglang",
            Engine::Nim => "nim",
            Engine::Tgi => "tgi",
            Engine::Llamacpp => "llamacpp",
            Engine::Openai => "openai",
            Engine::Mock => "mock",
        }
    }

    /// Whether the engine knows the request field `ignore_eos` (vLLM and SGLang do; others may reject it).
    pub fn takes_ignore_eos(self) -> bool {
        matches!(self, Engine::Vllm | Engine::Sglang | Engine::Mock)
    }
}

/// Which of the two OpenAI APIs is called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// POST /chat/completions.
    #[default]
    Chat,
    /// POST /completions.
    Completions,
}

impl Api {
    /// The name in plans and rows.
    pub fn name(self) -> &'static str {
        match self {
            Api::Chat => "chat",
            Api::Completions => "completions",
        }
    }
}

/// The declared hardware of an endpoint.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hardware {
    /// The accelerator, like H100-SXM-80GB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// How many of them serve this endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub gpus: Option<u32>,
    /// Memory bandwidth of one accelerator, like 3.35TB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bandwidth: Option<String>,
    /// How the accelerators are connected, like nvlink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interconnect: Option<String>,
    /// Price of the whole endpoint per hour, in your currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_per_hour: Option<Decimal>,
}

/// One declared fact about a server: a scalar, or a table of scalars such as `flags`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Fact {
    /// One value.
    One(Scalar),
    /// A table of values.
    Many(Table<Scalar>),
}

/// One value of a matrix axis or of a server fact.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Scalar {
    /// true or false.
    Bool(bool),
    /// A number, exact.
    Number(Decimal),
    /// A text.
    Text(String),
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Scalar::Bool(value) => f.pad(if *value { "true" } else { "false" }),
            Scalar::Number(value) => std::fmt::Display::fmt(value, f),
            Scalar::Text(value) => f.pad(value),
        }
    }
}

/// A model under test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The model id as the servers know it: one text, or one per engine with a `default`.
    pub id: ModelId,
    /// Number of weights, like 70.6e9.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Decimal>,
    /// Number format of the weights, like bf16 or fp8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<String>,
}

/// A model id, the same everywhere or by engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ModelId {
    /// The same for every engine.
    Same(String),
    /// By engine name; `default` serves the others.
    ByEngine(Table<String>),
}

/// What is sent: a built-in adjusted, or another scenario of the plan adjusted. Every field but `base` and
/// `description` is also an axis that a matrix may vary.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The scenario this one starts from: a built-in (A1, A2, B1, B2, C, D) or another of this plan. Default: B1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// For readers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Tokens of the user's text in one request (of one turn in a conversation).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 16))]
    pub prompt_tokens: Option<u32>,
    /// Tokens asked for (`max_tokens`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub output_tokens: Option<u32>,
    /// Tokens of the system prompt that all requests share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_tokens: Option<u32>,
    /// Turns of a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub turns: Option<u32>,
    /// Ask for answers token by token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// Go on past the model's end of answer until `output_tokens` is reached; sent only to engines that know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_eos: Option<bool>,
    /// Sampling temperature. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Decimal>,
    /// Nucleus sampling. Default: not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<Decimal>,
    /// Presence penalty. Default: not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<Decimal>,
    /// Frequency penalty. Default: not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<Decimal>,
}

/// How long each phase lasts, where the plan or a sweep says so; the rest keeps its default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PhasesPatch {
    /// Load rises: closed loops add one slot at a time, open loops ramp from 0. Default 30s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<Fill>,
    /// Full load, not measured. Default 60s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stabilize: Option<Nanos>,
    /// Full load, measured. Default 120s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<Measure>,
    /// Until every measured request has ended, at most this long. Default 30s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<Drain>,
}

pub use super::shorthand::{Drain, DrainMode, Fill, Measure};

/// The pause between two runs on the same resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Between {
    /// How long to wait after a run. Default 0s.
    pub cooldown: Nanos,
}

/// When a request is given up; the outcome is then `timeout`, `connect` or `stalled`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// For a connection to open. Default 10s.
    pub connect: Nanos,
    /// For the whole request. Default 10m.
    pub request: Nanos,
    /// For the time between two pieces of an answer, and until its first. Default 60s.
    pub stall: Nanos,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts { connect: Nanos::from_secs(10), request: Nanos::from_secs(600), stall: Nanos::from_secs(60) }
    }
}

pub use super::shorthand::Switch;

/// What to do when the server that is found differs from the one measured before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EnvironmentPolicy {
    /// Run again, and say so.
    #[default]
    Match,
    /// Refuse.
    Pin,
    /// Take the old result.
    Ignore,
}

/// Thresholds of the verdict, by reason. Absent fields keep the default of METRICS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Validity {
    /// Share of requests sent late. Default: suspect above 1%, invalid above 10%.
    pub client_late: Limits,
    /// Share of failed requests. Default: suspect above 1%, invalid above 10%.
    pub errors: Limits,
    /// Share of requests with another output length than asked for. Default: suspect above 1%.
    pub output_length: Limits,
    /// Difference of throughput (and, doubled, of median TTFT) between the halves of the window. Default: suspect above 5%.
    pub unsteady: Limits,
}

/// The two thresholds of one reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Above this the run is suspect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspect: Option<Share>,
    /// Above this the run is invalid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invalid: Option<Share>,
}

/// Limits on percentiles of a run's latencies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Slo {
    /// Time to first token, by percentile: { p99: 500ms }.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub ttft: IndexMap<Percentile, Nanos>,
    /// Inter-token latency, by percentile.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub itl: IndexMap<Percentile, Nanos>,
    /// Time per output token, by percentile.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub tpot: IndexMap<Percentile, Nanos>,
    /// End-to-end latency, by percentile.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub e2e: IndexMap<Percentile, Nanos>,
    /// The most that a million output tokens may cost, in the currency of `price_per_hour`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_million: Option<Decimal>,
}

/// The percentiles that are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Percentile {
    /// The median.
    #[serde(rename = "p50")]
    P50,
    /// 75 %.
    #[serde(rename = "p75")]
    P75,
    /// 90 %.
    #[serde(rename = "p90")]
    P90,
    /// 95 %.
    #[serde(rename = "p95")]
    P95,
    /// 99 %.
    #[serde(rename = "p99")]
    P99,
    /// 99.9 %.
    #[serde(rename = "p99.9")]
    P999,
}

/// Limits a single request must meet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Goodput {
    /// Time to first token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttft: Option<Nanos>,
    /// Time per output token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tpot: Option<Nanos>,
    /// End-to-end latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub e2e: Option<Nanos>,
}

/// One sweep: a matrix of cells, each run `repeats` times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// The axes, each a list of values. `endpoint`, `model` and `scenario` name tables of the plan; `batch_size` alone is
    /// a closed loop, `qps` alone an open loop, both an open loop with an in-flight cap; any field of a request is an
    /// axis too. Axes multiply in the order written, the last one fastest.
    pub matrix: Table<OneOrMany<Scalar>>,
    /// Cells to leave out: every field given must match. A list matches any of its values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<Table<OneOrMany<Scalar>>>,
    /// How often each cell is run. Default 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub repeats: u32,
    /// Sweeps that end before this one starts.
    #[serde(default, skip_serializing_if = "OneOrMany::is_empty")]
    pub after: OneOrMany<String>,
    /// How arrivals of an open loop are spaced. Default poisson.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Phases of this sweep, merged field by field over the plan's.
    #[serde(default)]
    pub phases: PhasesPatch,
    /// The pause between runs of this sweep; default: the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<Between>,
    /// Ask for answers token by token; default: the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// What you expect to see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hypothesis: Option<String>,
    /// Anything a reader of the results should know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

fn one() -> u32 {
    1
}

/// How the arrivals of an open loop are spaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// Exponential gaps: independent users.
    #[default]
    Poisson,
    /// Equal gaps.
    Constant,
}

impl Arrivals {
    /// The name in plans and rows.
    pub fn name(self) -> &'static str {
        match self {
            Arrivals::Poisson => "poisson",
            Arrivals::Constant => "constant",
        }
    }
}

/// What the embedded mock does; every field is part of the run's identity.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MockFigures {
    /// Time from a free slot to the first token, without prefill. Default 20ms.
    pub ttft: Nanos,
    /// Time between tokens of one stream when it is alone. Default 4ms.
    pub itl: Nanos,
    /// Streams served at once; others wait in a queue. Default 8.
    #[schemars(range(min = 1))]
    pub slots: u32,
    /// Extra time to first token per prompt token, like 0.1ms/token. Default 0s/token.
    pub prefill: PerToken,
    /// Growth of the inter-token time per further busy slot: itl × (1 + load × (busy − 1)). Default 0.
    pub load: Decimal,
    /// Spread of every time: each is multiplied by 1 ± jitter, uniformly, by seed. Default 0%.
    pub jitter: Share,
    /// Seed of the jitter. Default 0.
    pub seed: Seed,
}

impl Default for MockFigures {
    fn default() -> Self {
        MockFigures {
            ttft: Nanos::from_millis(20),
            itl: Nanos::from_millis(4),
            slots: 8,
            prefill: PerToken::default(),
            load: Decimal::new(0, 0),
            jitter: Share::percent(0),
            seed: Seed(0),
        }
    }
}
