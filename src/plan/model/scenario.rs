//! A scenario as the user writes it.

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

/// What is sent: a built-in adjusted, or another scenario of the plan adjusted. Every field but `base`, `description`,
/// `errors`, `mix`, `model`, `headers`, `stop` and `extra` is also an axis that a matrix may vary.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = crate::plan::model::scenario::ranges_of_axes)]
pub struct Scenario {
    /// The scenario this one starts from: a built-in (A1, A2, B1, B2, C, D) or another of this plan. Default: B1. `lengths`
    /// is B1 with the lengths that `preset` or `lengths` gives.
    #[schemars(extend("default" = "B1"))]
    #[schemars(example = &"C")]
    pub base: Option<String>,
    /// For readers.
    #[schemars(example = "questions over one long document")]
    pub description: Option<String>,
    /// Tokens of the user's text in one request (of one turn in a conversation).
    #[schemars(range(min = 16))]
    #[schemars(example = 512)]
    pub prompt_tokens: Option<u32>,
    /// Tokens asked for (`max_tokens`).
    #[schemars(range(min = 1))]
    #[schemars(example = 256)]
    pub output_tokens: Option<u32>,
    /// Tokens asked for, sent as `max_completion_tokens` in the place of `max_tokens`: what OpenAI's newer models ask for. Takes the
    /// place of `output_tokens`.
    #[schemars(range(min = 1))]
    #[schemars(example = 256)]
    pub max_completion_tokens: Option<u32>,
    /// Lengths that differ from request to request: a preset, `prompt` and `output` apart, or a table of both. Takes the
    /// place of `prompt_tokens` and `output_tokens`.
    #[schemars(example = serde_json::json!({ "preset": "chat" }))]
    pub lengths: Option<WrittenLengths>,
    /// Tokens of the system prompt that all requests share.
    #[schemars(example = 2000)]
    pub system_tokens: Option<u32>,
    /// Turns of a conversation.
    #[schemars(range(min = 1))]
    #[schemars(example = 5)]
    pub turns: Option<u32>,
    /// How long a user thinks between an answer and the next turn of the conversation: a duration, or a distribution of
    /// which each turn draws its own. Default: not at all.
    #[schemars(example = &"5s")]
    pub think: Option<Think>,
    /// Whose answers a conversation's history holds: those that came, or written ones. Default: real.
    #[schemars(extend("default" = "real"))]
    pub history: Option<History>,
    /// What an arrival of an open loop is: one request of any conversation (pooled), or a new conversation whose later
    /// turns follow by themselves (open); then `qps` counts conversations. Default: pooled.
    #[schemars(extend("default" = "pooled"))]
    pub sessions: Option<Sessions>,
    /// The most tokens that a conversation's prompt, history and all, may have together with the output asked for.
    /// Default: no bound.
    #[schemars(range(min = 17))]
    #[schemars(example = 8192)]
    pub context_limit: Option<u32>,
    /// What happens where the next turn would be longer than `context_limit`: the oldest turns are left out, or the
    /// conversation ends. Default: oldest_turns.
    #[schemars(extend("default" = "oldest_turns"))]
    pub context_cut: Option<ContextCut>,
    /// Requests of a trace in the place of a rate and of lengths: when they came, how long they were, what their prompts share.
    /// No axis.
    #[schemars(example = serde_json::json!({ "file": "data/mooncake.jsonl", "speed": 2, "window": ["0s", "10m"] }))]
    pub trace: Option<TraceFile>,
    /// A data set whose texts are sent: each record's first question, or with `base: D` its whole conversation. No axis.
    #[schemars(example = serde_json::json!({ "file": "data/sharegpt.json", "filter": { "prompt_tokens": { "max": 4000 } } }))]
    pub data: Option<DataFile>,
    /// An anonymous profile in the place of lengths, of what prompts share, of turns and, where the sweep says none, of a rate:
    /// what `sweepline dataset profile` wrote. What is written beside it wins. No axis.
    #[schemars(example = &"data/profile.json")]
    pub profile: Option<ProfileFile>,
    /// Texts that prompts share. No axis.
    #[schemars(example = serde_json::json!({ "share": 0.6, "tokens": 2048, "groups": 8, "order": "zipf" }))]
    pub prefix: Option<Prefix>,
    /// `cold` sends the same prompts each with a nonce of its own at its very front: nothing of them can be reused. Default
    /// warm: they share what the scenario declares.
    #[schemars(extend("default" = "warm"))]
    pub cache: Option<Cache>,
    /// How far the nonce that opens a prompt reaches; `run` keeps what recorded traffic shares. Default: the plan's.
    #[schemars(example = &"run")]
    pub nonce: Option<NonceMode>,
    /// Ask for answers token by token.
    #[schemars(example = false)]
    pub stream: Option<bool>,
    /// Go on past the model's end of answer until `output_tokens` is reached; sent only to engines that know it.
    #[schemars(extend("default" = true))]
    pub ignore_eos: Option<bool>,
    /// Sampling temperature; `omit` sends none, and the server's default holds. Default 0.
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
    /// Scenarios whose requests are mixed, each with its share: [{ scenario: chat, share: 0.8 }, { scenario: B2, share: 0.2 }].
    /// What stands beside it holds for all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = serde_json::json!([{ "scenario": "B1", "share": 0.8 }, { "scenario": "B2", "share": 0.2 }]))]
    pub mix: Vec<MixPart>,
    /// The model id that its requests send in the place of the model's own, like that of a LoRA adapter: several models in one mix.
    /// Default: the model's `id`. No axis.
    #[schemars(example = &"sql-lora")]
    pub model: Option<String>,
    /// Texts of one request to an endpoint with `api: embeddings`, each with `prompt_tokens`. Default 1.
    #[schemars(range(min = 1))]
    #[schemars(extend("default" = 1), example = 16)]
    pub inputs: Option<u32>,
    /// Documents of one request to an endpoint with `api: rerank`, each with `prompt_tokens`. Default 10.
    #[schemars(range(min = 1))]
    #[schemars(extend("default" = 10), example = 100)]
    pub documents: Option<u32>,
    /// Tokens of the query that the documents are ranked for. Default 32.
    #[schemars(range(min = 16))]
    #[schemars(extend("default" = 32), example = 64)]
    pub query_tokens: Option<u32>,
    /// Headers that its requests carry, by name: a text, or { secret: env:NAME }. They lie over the endpoint's. No axis.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(with = "IndexMap<String, TextOrSecret>")]
    #[schemars(example = serde_json::json!({ "X-Tenant": "bench", "X-Gateway-Key": { "secret": "env:GATEWAY_KEY" } }))]
    pub headers: Table<TextOrSecret>,
    /// Texts at which an answer ends. Default: not sent.
    #[serde(default, skip_serializing_if = "OneOrMany::is_empty")]
    #[schemars(example = serde_json::json!(["###", "\n\n"]))]
    pub stop: OneOrMany<String>,
    /// What a server that is away, or turns the load away by 429, means for runs of this scenario, whatever its endpoint says:
    /// `environment` ends the attempt, `measured` makes every error a measurement. Default: the endpoint's. No axis.
    #[schemars(example = &"measured")]
    pub errors: Option<ErrorPolicy>,
    /// Further fields of the request's body, such as the engine's own sampling parameters: { top_k: 20, min_p: 0.05 }.
    /// A table under the name of an engine holds what is sent to that engine alone: { vllm: { top_k: 20 } }.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(schema_with = "crate::plan::model::extra::schema::of_scenario")]
    pub extra: Table<Json>,
}

/// A field of a scenario has the range of the axis that is called so.
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
    /// Tokens asked for, under whichever name.
    pub(crate) fn asked_tokens(&self) -> Option<u32> {
        self.tokens_under(self.asked_under()?)
    }

    /// The name under which tokens are asked for, if they are.
    pub(crate) fn asked_under(&self) -> Option<LengthField> {
        LengthField::ALL.into_iter().rev().find(|field| self.tokens_under(*field).is_some())
    }

    /// Tokens asked for under this name.
    pub(crate) fn tokens_under(&self, field: LengthField) -> Option<u32> {
        match field {
            LengthField::MaxTokens => self.output_tokens,
            LengthField::MaxCompletionTokens => self.max_completion_tokens,
        }
    }

    /// Whether it says a field, by the name of its key.
    pub fn says(&self, field: &str) -> bool {
        let said = serde_json::to_value(self);
        said.is_ok_and(|said| said.get(field).is_some())
    }

    /// What it says of each sampling parameter, in the order of their table.
    pub fn sampling(&self) -> [Option<ParameterValue>; sampling::COUNT] {
        [self.temperature, self.top_p, self.presence_penalty, self.frequency_penalty]
    }

    /// The same, to be written.
    pub(crate) fn sampling_mut(&mut self) -> [&mut Option<ParameterValue>; sampling::COUNT] {
        [&mut self.temperature, &mut self.top_p, &mut self.presence_penalty, &mut self.frequency_penalty]
    }
}
