//! A scenario as written by the user.

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plan::model::axis;
use crate::plan::model::data::data_file::DataFile;
use crate::plan::model::error_policy::ErrorPolicy;
use crate::plan::model::extra::json::Json;
use crate::plan::model::length_field::LengthField;
use crate::plan::model::lengths::lengths_field::WrittenLengths;
use crate::plan::model::mix::MixPart;
use crate::plan::model::nonce::NonceMode;
use crate::plan::model::parameter_value::ParameterValue;
use crate::plan::model::prefix::{Cache, Prefix};
use crate::plan::model::profiled::file::ProfileFile;
use crate::plan::model::sampling;
use crate::plan::model::shorthand::OneOrMany;
use crate::plan::model::table::Table;
use crate::plan::model::talk::{ContextCut, History, Sessions};
use crate::plan::model::text_or_secret::TextOrSecret;
use crate::plan::model::think::Think;
use crate::plan::model::trace::TraceFile;

/// The content of requests: a built-in scenario, or another scenario of the plan, with changes. Every field
/// is also an axis that a matrix may vary, except `base`, `description`, `trace`, `data`, `profile`,
/// `prefix`, `mix`, `model`, `headers`, `stop`, `errors` and `extra`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = crate::plan::model::scenario::ranges_of_axes)]
pub struct Scenario {
    /// The scenario that this one starts from: a built-in (A1, A2, B1, B2, C, D) or another one of this
    /// plan. Default: B1. The base `lengths` is B1 with the lengths from `preset` or `lengths`.
    #[schemars(extend("default" = "B1"))]
    #[schemars(example = &"C")]
    pub base: Option<String>,
    /// A description for readers.
    #[schemars(example = "questions over one long document")]
    pub description: Option<String>,
    /// Number of tokens in the user's text of one request, or of one turn in a conversation.
    #[schemars(range(min = 16))]
    #[schemars(example = 512)]
    pub prompt_tokens: Option<u32>,
    /// Requested output tokens (`max_tokens`).
    #[schemars(range(min = 1))]
    #[schemars(example = 256)]
    pub output_tokens: Option<u32>,
    /// Requested output tokens, sent as `max_completion_tokens` instead of `max_tokens`, as OpenAI's
    /// newer models require. Replaces `output_tokens`.
    #[schemars(range(min = 1))]
    #[schemars(example = 256)]
    pub max_completion_tokens: Option<u32>,
    /// Lengths that vary between requests: a preset, `prompt` and `output` separately, or a table of
    /// both. Replaces `prompt_tokens` and `output_tokens`.
    #[schemars(example = serde_json::json!({ "preset": "chat" }))]
    pub lengths: Option<WrittenLengths>,
    /// Number of tokens in the system prompt that all requests share.
    #[schemars(example = 2000)]
    pub system_tokens: Option<u32>,
    /// Number of turns in each conversation.
    #[schemars(range(min = 1))]
    #[schemars(example = 5)]
    pub turns: Option<u32>,
    /// Think time of a user between a response and the next turn of the conversation: a duration, or a
    /// distribution from which each turn draws. Default: no think time.
    #[schemars(example = &"5s")]
    pub think: Option<Think>,
    /// The responses in the history of a conversation: those of the server (real), or scripted ones
    /// (scripted). Default: real.
    #[schemars(extend("default" = "real"))]
    pub history: Option<History>,
    /// What arrives in an open loop: one request of any conversation (pooled), or a new conversation whose
    /// later turns follow automatically (open). With open, `qps` counts conversations. Default: pooled.
    #[schemars(extend("default" = "pooled"))]
    pub sessions: Option<Sessions>,
    /// Maximum number of tokens of a conversation's prompt, including the history, and the requested output
    /// together. Default: no limit.
    #[schemars(range(min = 17))]
    #[schemars(example = 8192)]
    pub context_limit: Option<u32>,
    /// How a conversation is truncated if the next turn would exceed `context_limit`: the oldest turns are
    /// dropped, or the conversation ends. Default: oldest_turns.
    #[schemars(extend("default" = "oldest_turns"))]
    pub context_cut: Option<ContextCut>,
    /// A trace to replay, instead of a rate and lengths: it determines arrival times, lengths, and the text that
    /// prompts share. Not an axis.
    #[schemars(example = serde_json::json!({ "file": "data/mooncake.jsonl", "speed": 2, "window": ["0s", "10m"] }))]
    pub trace: Option<TraceFile>,
    /// A data set that provides the texts: each record's first question, or with `base: D` its whole
    /// conversation. Not an axis.
    #[schemars(example = serde_json::json!({ "file": "data/sharegpt.json", "filter": { "prompt_tokens": { "max": 4000 } } }))]
    pub data: Option<DataFile>,
    /// An anonymous profile written by `sweepline dataset profile`, instead of lengths, shared prefixes,
    /// turns and, if the sweep sets none, a rate. Other fields of the scenario override it. Not an axis.
    #[schemars(example = &"data/profile.json")]
    pub profile: Option<ProfileFile>,
    /// Texts that prompts share. Not an axis.
    #[schemars(example = serde_json::json!({ "share": 0.6, "tokens": 2048, "groups": 8, "order": "zipf" }))]
    pub prefix: Option<Prefix>,
    /// `cold` sends the same prompts, each with its own nonce at the very beginning, so that none of them can
    /// be reused. Default warm: prompts share the text that the scenario declares.
    #[schemars(extend("default" = "warm"))]
    pub cache: Option<Cache>,
    /// Scope of the nonce that opens a prompt; `run` preserves the prefixes that recorded prompts share.
    /// Default: the plan's.
    #[schemars(example = &"run")]
    pub nonce: Option<NonceMode>,
    /// Stream responses token by token.
    #[schemars(example = false)]
    pub stream: Option<bool>,
    /// Continue past the model's end-of-sequence token until `output_tokens` is reached; sent only to
    /// engines that support it.
    #[schemars(extend("default" = true))]
    pub ignore_eos: Option<bool>,
    /// Sampling temperature; `omit` sends none, and the server's default applies. Default 0.
    #[schemars(extend("default" = 0))]
    #[schemars(example = 0.7)]
    pub temperature: Option<ParameterValue>,
    /// Nucleus sampling. Default: not sent.
    #[schemars(example = 0.95)]
    pub top_p: Option<ParameterValue>,
    /// Presence penalty. Default: not sent.
    #[schemars(example = 0.5)]
    pub presence_penalty: Option<ParameterValue>,
    /// Frequency penalty. Default: not sent.
    #[schemars(example = 0.5)]
    pub frequency_penalty: Option<ParameterValue>,
    /// Scenarios whose requests are mixed, each with its share: [{ scenario: chat, share: 0.8 }, {
    /// scenario: B2, share: 0.2 }]. Other fields of this scenario apply to all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = serde_json::json!([{ "scenario": "B1", "share": 0.8 }, { "scenario": "B2", "share": 0.2 }]))]
    pub mix: Vec<MixPart>,
    /// The model id that the scenario's requests send instead of the model's own, like the name of a LoRA
    /// adapter; a mix can thus send requests to several models. Default: the model's `id`. Not an axis.
    #[schemars(example = &"sql-lora")]
    pub model: Option<String>,
    /// Number of texts in one request to an endpoint with `api: embeddings`, each with `prompt_tokens`
    /// tokens. Default 1.
    #[schemars(range(min = 1))]
    #[schemars(extend("default" = 1), example = 16)]
    pub inputs: Option<u32>,
    /// Number of documents in one request to an endpoint with `api: rerank`, each with `prompt_tokens`
    /// tokens. Default 10.
    #[schemars(range(min = 1))]
    #[schemars(extend("default" = 10), example = 100)]
    pub documents: Option<u32>,
    /// Number of tokens in the query against which the documents are ranked. Default 32.
    #[schemars(range(min = 16))]
    #[schemars(extend("default" = 32), example = 64)]
    pub query_tokens: Option<u32>,
    /// Headers that the scenario's requests carry, by name: a string, or { secret: env:NAME }. They override
    /// the endpoint's headers. Not an axis.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(with = "IndexMap<String, TextOrSecret>")]
    #[schemars(example = serde_json::json!({ "X-Tenant": "bench", "X-Gateway-Key": { "secret": "env:GATEWAY_KEY" } }))]
    pub headers: Table<TextOrSecret>,
    /// Texts at which a response ends. Default: not sent.
    #[serde(default, skip_serializing_if = "OneOrMany::is_empty")]
    #[schemars(example = serde_json::json!(["###", "\n\n"]))]
    pub stop: OneOrMany<String>,
    /// How runs of this scenario treat a server that is unavailable or rejects load with 429, regardless
    /// of the endpoint's setting: `environment` ends the attempt, `measured` counts every error as a
    /// measurement. Default: the endpoint's. Not an axis.
    #[schemars(example = &"measured")]
    pub errors: Option<ErrorPolicy>,
    /// Additional fields of the request's body, such as the engine's own sampling parameters: { top_k:
    /// 20, min_p: 0.05 }. Fields in a table under the name of an engine are sent to that engine only: {
    /// vllm: { top_k: 20 } }.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(schema_with = "crate::plan::model::extra::schema::of_scenario")]
    pub extra: Table<Json>,
}

/// Gives each field in the schema of a scenario the range of the axis with the same name.
pub(super) fn ranges_of_axes(schema: &mut Schema) {
    let Some(Value::Object(fields)) = schema.get_mut("properties") else { return };
    for (name, field) in fields.iter_mut() {
        let range = axis::kind(name).map(axis::Kind::schema);
        if let (Some(Value::Object(range)), Value::Object(field)) = (range, field) {
            let is_range = |key: &str| key == "anyOf" || key.to_lowercase().ends_with("imum");
            field.extend(range.into_iter().filter(|(key, _)| is_range(key)));
        }
    }
    if let Some(mut other) = fields.get("output_tokens").cloned() {
        other["description"] = "Another name of `output_tokens`.".into();
        fields.insert("max_tokens".to_owned(), other);
    }
}

impl Scenario {
    /// The requested output tokens, under either name; `None` if the scenario does not set them.
    pub(crate) fn asked_tokens(&self) -> Option<u32> {
        self.tokens_under(self.asked_under()?)
    }

    /// The name under which output tokens are requested; `None` if the scenario does not set them.
    pub(crate) fn asked_under(&self) -> Option<LengthField> {
        LengthField::ALL.into_iter().rev().find(|field| self.tokens_under(*field).is_some())
    }

    /// Requested output tokens under this name.
    pub(crate) fn tokens_under(&self, field: LengthField) -> Option<u32> {
        match field {
            LengthField::MaxTokens => self.output_tokens,
            LengthField::MaxCompletionTokens => self.max_completion_tokens,
        }
    }

    /// Whether the scenario sets the field with this key.
    pub fn says(&self, field: &str) -> bool {
        let said = serde_json::to_value(self);
        said.is_ok_and(|said| said.get(field).is_some())
    }

    /// The scenario's value for each sampling parameter, in the order of the table of parameters; `None` for
    /// parameters that it does not set.
    pub fn sampling(&self) -> [Option<ParameterValue>; sampling::COUNT] {
        [self.temperature, self.top_p, self.presence_penalty, self.frequency_penalty]
    }

    /// The values of [`Scenario::sampling`], as mutable references.
    pub(crate) fn sampling_mut(&mut self) -> [&mut Option<ParameterValue>; sampling::COUNT] {
        [&mut self.temperature, &mut self.top_p, &mut self.presence_penalty, &mut self.frequency_penalty]
    }
}
