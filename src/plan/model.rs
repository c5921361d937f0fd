//! The plan as the user writes it: one Rust type per table of the file. The doc comments here are the descriptions in
//! `schemas/plan.schema.json`. Defaults that depend on nothing else are filled in while reading; those that depend on
//! the sweep, the engine or the scenario are filled in by `expand`.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Decimal, Seed};

use super::extra::Json;
use super::mix::MixPart;

pub use super::allow::{Allow, LintCode};
pub use super::arrivals::Arrivals;
pub use super::client::{Connections, LoadEnginePatch, Timeouts, Timer};
pub use super::compare::{Compare, MetricName};
pub use super::data::{
    Corpus, DataFile, DataNote, Dialogue, Means as DataMeans, Order as DataOrder, Source as DataSource, data_notes,
};
pub use super::endpoint::{Api, Endpoint, Engine, Hardware};
pub use super::error_policy::ErrorPolicy;
pub use super::lengths::WrittenLengths;
pub use super::matrix::{Axis, Condition, Extend, Filter, Item, Pick, What};
pub use super::mock_figures::MockFigures;
pub use super::nonce::NonceMode;
pub use super::objective::{Defaults, Goodput, Limits, Percentile, Slo, Validity};
pub use super::phases::{Between, PhasesPatch};
pub use super::prefix::{Cache, Prefix, PrefixOrder};
pub use super::price::Owned;
pub use super::process::{Gamma, Process};
pub use super::profile::{Bursts, Point, Profile, Ramp, Rate, Shape, Step as StepOfProfile};
pub use super::profiled::ProfileFile;
pub use super::ready::Ready;
pub use super::record::RecordPatch;
pub use super::retries::Retries;
pub use super::scalar::{Fact, ModelId, Scalar};
pub use super::shorthand::{Drain, DrainMode, Fill, Measure, OneOrMany, SecretRef};
pub use super::talk::{ContextCut, History, Sessions, Think};
pub use super::tokenizer::TokenizerPath;
pub use super::trace::{Replay, TraceFile, TraceRequest, TraceRequests};
pub use super::under_test::{Model, ModelShape};

/// A table whose order is the file's order.
pub type Table<T> = IndexMap<String, T>;

/// A sweepline plan: which endpoints, models and scenarios are measured under which load, and how the results are judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "sweepline plan")]
pub struct Plan {
    /// Version of the plan format: 1.
    #[schemars(range(min = 1, max = 1))]
    #[schemars(extend("const" = 1))]
    pub sweepline: u32,
    /// Name of the plan, shown in tables and reports.
    #[schemars(regex(pattern = r"\S"))]
    #[schemars(example = "chat-70b")]
    pub name: String,
    /// What you expect to see, before you look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "Prefix caching halves p99 TTFT at equal goodput.")]
    pub hypothesis: Option<String>,
    /// Anything a reader of the results should know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "shared node, nightly batch may run")]
    pub notes: Option<String>,
    /// Fragments: files with parts of a plan, relative to this file. This file's values win over theirs, later fragments'
    /// over earlier ones'; tables are merged key by key.
    #[serde(rename = "use", default, skip_serializing_if = "OneOrMany::is_empty")]
    #[schemars(example = serde_json::json!(["fragments/h100.yaml"]))]
    pub uses: OneOrMany<String>,
    /// Variables for expressions in values, like "{{ measure }}" or "{{ n * 2 }}s"; they may name each other.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub vars: Table<serde_json::Value>,
    /// Seed of arrival times, prompt texts and run order.
    #[serde(default)]
    #[schemars(example = 42)]
    pub seed: Seed,
    /// The servers under test, by name.
    #[schemars(schema_with = "super::schema::named::<Endpoint>")]
    pub endpoints: Table<Endpoint>,
    /// The models, by name.
    #[schemars(schema_with = "super::schema::named::<Model>")]
    pub models: Table<Model>,
    /// Your scenarios, by name. The built-ins A1, A2, B1, B2, C and D need no entry.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(schema_with = "super::schema::own_scenarios")]
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
    /// How requests get their connections. Also per sweep, or an axis.
    #[serde(default)]
    pub connections: Connections,
    /// How the load generator is built; decides how much load this machine can make, not what a run is.
    #[serde(default, skip_serializing_if = "LoadEnginePatch::is_empty")]
    pub engine: LoadEnginePatch,
    /// What runs keep besides their numbers. Decides no number: results stay.
    #[serde(default, skip_serializing_if = "RecordPatch::is_empty")]
    pub record: RecordPatch,
    /// Ask for answers token by token. Also per scenario, or an axis.
    #[serde(default = "yes")]
    pub stream: bool,
    /// Open every prompt with a few tokens that no other run used, so that no run meets a cache another one warmed: `on`, or
    /// `run` with the same ones for all prompts of an attempt, so that what recorded texts share stays shared. Also per
    /// scenario, or an axis.
    #[serde(default)]
    pub nonce: NonceMode,
    /// What to do when the server that is found differs from the one measured before. The environment is recorded with
    /// every run; comparing it comes with a later version.
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
    /// The most cells that all sweeps may have together, each counted as often as it is repeated, before `when` and
    /// `exclude`. A plan with more is refused. Default 1000000.
    #[serde(default = "max_cells", skip_serializing_if = "is_max_cells")]
    #[schemars(range(min = 1, max = 10_000_000), example = 5_000)]
    pub max_cells: u32,
    /// Which cells will be compared, in every sweep that has the axis and the baseline. Also per sweep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare: Option<Compare>,
    /// Rules of the methodology lint that do not hold for this plan. Also per sweep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Allow>,
    /// The sweeps, by name, in the order in which they run.
    #[schemars(schema_with = "super::schema::named::<Sweep>")]
    pub sweeps: Table<Sweep>,
}

/// What expands in seconds and in memory that every machine has; more is a slip of the pen.
fn max_cells() -> u32 {
    1_000_000
}

fn is_max_cells(value: &u32) -> bool {
    *value == max_cells()
}

fn yes() -> bool {
    true
}

/// What is sent: a built-in adjusted, or another scenario of the plan adjusted. Every field but `base`, `description`,
/// `errors`, `mix`, `stop` and `extra` is also an axis that a matrix may vary.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = super::schema::ranges_of_axes)]
pub struct Scenario {
    /// The scenario this one starts from: a built-in (A1, A2, B1, B2, C, D) or another of this plan. Default: B1. `lengths`
    /// is B1 with the lengths that `preset` or `lengths` gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "B1"))]
    #[schemars(example = &"C")]
    pub base: Option<String>,
    /// For readers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "questions over one long document")]
    pub description: Option<String>,
    /// Tokens of the user's text in one request (of one turn in a conversation).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 16))]
    #[schemars(example = 512)]
    pub prompt_tokens: Option<u32>,
    /// Tokens asked for (`max_tokens`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    #[schemars(example = 256)]
    pub output_tokens: Option<u32>,
    /// Lengths that differ from request to request: a preset, `prompt` and `output` apart, or a table of both. Takes the
    /// place of `prompt_tokens` and `output_tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = serde_json::json!({ "preset": "chat" }))]
    pub lengths: Option<WrittenLengths>,
    /// Tokens of the system prompt that all requests share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = 2000)]
    pub system_tokens: Option<u32>,
    /// Turns of a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    #[schemars(example = 5)]
    pub turns: Option<u32>,
    /// How long a user thinks between an answer and the next turn of the conversation: a duration, or a distribution of
    /// which each turn draws its own. Default: not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"5s")]
    pub think: Option<Think>,
    /// Whose answers a conversation's history holds: those that came, or written ones. Default: real.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "real"))]
    pub history: Option<History>,
    /// What an arrival of an open loop is: one request of any conversation (pooled), or a new conversation whose later
    /// turns follow by themselves (open); then `qps` counts conversations. Default: pooled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "pooled"))]
    pub sessions: Option<Sessions>,
    /// The most tokens that a conversation's prompt, history and all, may have together with the output asked for.
    /// Default: no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 17))]
    #[schemars(example = 8192)]
    pub context_limit: Option<u32>,
    /// What happens where the next turn would be longer than `context_limit`: the oldest turns are left out, or the
    /// conversation ends. Default: oldest_turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "oldest_turns"))]
    pub context_cut: Option<ContextCut>,
    /// Requests of a trace in the place of a rate and of lengths: when they came, how long they were, what their prompts share.
    /// No axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = serde_json::json!({ "file": "data/mooncake.jsonl", "speed": 2, "window": ["0s", "10m"] }))]
    pub trace: Option<TraceFile>,
    /// A data set whose texts are sent: each record's first question, or with `base: D` its whole conversation. No axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = serde_json::json!({ "file": "data/sharegpt.json", "filter": { "prompt_tokens": { "max": 4000 } } }))]
    pub data: Option<DataFile>,
    /// An anonymous profile in the place of lengths, of what prompts share, of turns and, where the sweep says none, of a rate:
    /// what `sweepline dataset profile` wrote. What is written beside it wins. No axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"data/profile.json")]
    pub profile: Option<ProfileFile>,
    /// Texts that prompts share. No axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = serde_json::json!({ "share": 0.6, "tokens": 2048, "groups": 8, "order": "zipf" }))]
    pub prefix: Option<Prefix>,
    /// `cold` sends the same prompts each with a nonce of its own at its very front: nothing of them can be reused. Default
    /// warm: they share what the scenario declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "warm"))]
    pub cache: Option<Cache>,
    /// How far the nonce that opens a prompt reaches; `run` keeps what recorded traffic shares. Default: the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"run")]
    pub nonce: Option<NonceMode>,
    /// Ask for answers token by token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = false)]
    pub stream: Option<bool>,
    /// Go on past the model's end of answer until `output_tokens` is reached; sent only to engines that know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub ignore_eos: Option<bool>,
    /// Sampling temperature. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 0))]
    #[schemars(example = 0.7)]
    pub temperature: Option<Decimal>,
    /// Nucleus sampling. Default: not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = 0.95)]
    pub top_p: Option<Decimal>,
    /// Presence penalty. Default: not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = 0.5)]
    pub presence_penalty: Option<Decimal>,
    /// Frequency penalty. Default: not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = 0.5)]
    pub frequency_penalty: Option<Decimal>,
    /// Scenarios whose requests are mixed, each with its share: [{ scenario: chat, share: 0.8 }, { scenario: B2, share: 0.2 }].
    /// What stands beside it holds for all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = serde_json::json!([{ "scenario": "B1", "share": 0.8 }, { "scenario": "B2", "share": 0.2 }]))]
    pub mix: Vec<MixPart>,
    /// Texts at which an answer ends. Default: not sent.
    #[serde(default, skip_serializing_if = "OneOrMany::is_empty")]
    #[schemars(example = serde_json::json!(["###", "\n\n"]))]
    pub stop: OneOrMany<String>,
    /// What a server that is away, or turns the load away by 429, means for runs of this scenario, whatever its endpoint says:
    /// `environment` ends the attempt, `measured` makes every error a measurement. Default: the endpoint's. No axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"measured")]
    pub errors: Option<ErrorPolicy>,
    /// Further fields of the request's body, such as the engine's own sampling parameters: { top_k: 20, min_p: 0.05 }.
    /// A table under the name of an engine holds what is sent to that engine alone: { vllm: { top_k: 20 } }.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(schema_with = "super::extra::of_scenario")]
    pub extra: Table<Json>,
}

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

/// One sweep: a matrix of cells, each run `repeats` times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// The axes, each a list of values, a range like { from: 1, to: 256, times: 2 }, or several axes that go together
    /// ({ zip: … } or a list of tables) under a name of your own. `endpoint`, `model` and `scenario` name tables of the
    /// plan; `batch_size` alone is a closed loop, `qps` alone an open loop, both an open loop with an in-flight cap; any
    /// field of a request is an axis too. Axes multiply in the order written, the last one fastest.
    #[schemars(schema_with = "super::matrix::schema::matrix_schema")]
    pub matrix: Table<Axis>,
    /// The cells to keep: every field given must match. A list matches any of its values, { from: 8, to: 64 } any
    /// number within. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::matrix::schema::condition_schema")]
    pub when: Option<Condition>,
    /// Cells to leave out: every field given must match. A list matches any of its values, { from: 8, to: 64 } any
    /// number within.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "super::matrix::schema::excludes_schema")]
    pub exclude: Vec<Condition>,
    /// Fields that matching cells get besides their own: { when: { endpoint: vllm }, with: { temperature: 0.7 } }. Makes
    /// no cell and changes no value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "super::matrix::schema::extends_schema")]
    pub extend: Vec<Extend>,
    /// Further cells, each written out: { endpoint: vllm, batch_size: 512 }. They come after those of the matrix, which
    /// they leave as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "super::matrix::schema::adds_schema")]
    pub add: Vec<Table<Scalar>>,
    /// How often each cell is run. Default 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    #[schemars(example = 3)]
    pub repeats: u32,
    /// Sweeps that end before this one starts.
    #[serde(default, skip_serializing_if = "OneOrMany::is_empty")]
    #[schemars(example = &"saturation")]
    pub after: OneOrMany<String>,
    /// How arrivals of an open loop are spaced: poisson, constant or { gamma: { cv: 2 } }; or how their rate changes over
    /// the run, by a ramp, steps, bursts or a curve. Default poisson.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "poisson"))]
    pub arrivals: Option<Arrivals>,
    /// Phases of this sweep, merged field by field over the plan's.
    #[serde(default)]
    pub phases: PhasesPatch,
    /// The pause between runs of this sweep; default: the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<Between>,
    /// How requests get their connections; default: the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"cold")]
    pub connections: Option<Connections>,
    /// How the load generator is built, merged field by field over the plan's.
    #[serde(default, skip_serializing_if = "LoadEnginePatch::is_empty")]
    pub engine: LoadEnginePatch,
    /// What runs keep besides their numbers, merged field by field over the plan's.
    #[serde(default, skip_serializing_if = "RecordPatch::is_empty")]
    pub record: RecordPatch,
    /// Ask for answers token by token; default: the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = false)]
    pub stream: Option<bool>,
    /// Which cells of this sweep will be compared; default: what the plan says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare: Option<Compare>,
    /// Rules of the methodology lint that do not hold for this sweep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Allow>,
    /// What you expect to see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "It bends at 20 requests per second.")]
    pub hypothesis: Option<String>,
    /// Anything a reader of the results should know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "run after the nightly deploy")]
    pub notes: Option<String>,
}

fn one() -> u32 {
    1
}
