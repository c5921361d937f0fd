//! The APIs that sweepline supports, by name.

use std::cmp::Reverse;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::chat::Chat;
use super::completions::Completions;
use super::contract::{Protocol, Task};
use super::embeddings::Embeddings;
use super::messages::Messages;
use super::rerank::Rerank;
use super::responses::Responses;

/// The API that requests use.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "snake_case")]
pub enum Api {
    /// POST /chat/completions.
    #[default]
    Chat,
    /// POST /completions.
    Completions,
    /// POST /responses.
    Responses,
    /// POST /messages (Anthropic's Messages).
    Messages,
    /// POST /embeddings: texts become vectors; responses have no tokens.
    Embeddings,
    /// POST /rerank: documents are scored for a query; responses have no tokens.
    Rerank,
}

impl Api {
    /// All APIs.
    pub const ALL: [Api; 6] =
        [Api::Chat, Api::Completions, Api::Responses, Api::Messages, Api::Embeddings, Api::Rerank];

    /// Returns the name in plans and rows.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the API called `name`.
    ///
    /// # Errors
    /// Fails if the name is unknown; the error lists the known names.
    pub fn named(name: &str) -> Result<Api, String> {
        let found = Api::ALL.into_iter().find(|api| api.name() == name);
        found.ok_or_else(|| format!("`{name}` is not one of {}", Api::ALL.map(Api::name).join(", ")))
    }

    /// Returns the protocol of the API.
    pub fn protocol(self) -> &'static dyn Protocol {
        match self {
            Api::Chat => &Chat,
            Api::Completions => &Completions,
            Api::Responses => &Responses,
            Api::Messages => &Messages,
            Api::Embeddings => &Embeddings,
            Api::Rerank => &Rerank,
        }
    }

    /// Whether responses consist of tokens. Only then are there token latencies and token rates.
    pub fn generates(self) -> bool {
        self.protocol().task() == Task::Generate
    }

    /// Returns the fields of a body that contain the prompt, which plans must not set.
    pub(crate) fn prompt_fields(self) -> &'static [&'static str] {
        self.protocol().prompt_fields()
    }

    /// Whether requests may have a parameter of plans, such as `ignore_eos`.
    pub fn has(self, parameter: &str) -> bool {
        !self.protocol().lacks().contains(&parameter)
    }

    /// Returns the names of the APIs whose responses consist of tokens, or of those whose responses consist
    /// of vectors or scores.
    pub fn names(generates: bool) -> Vec<&'static str> {
        Api::ALL.into_iter().filter(|api| api.generates() == generates).map(Api::name).collect()
    }

    /// Returns the prompt in a request body of any protocol: each prompt field as text, or as JSON if it is
    /// not a string. The protocol is the first of those that share the most prompt fields with the body.
    pub(crate) fn said_in(body: &Value) -> String {
        let is_there = |field: &&&str| !body[**field].is_null();
        let fields = Api::ALL.into_iter().map(Api::prompt_fields);
        let found = fields.min_by_key(|fields| Reverse(fields.iter().filter(is_there).count()));
        let said = |field: &&str| match &body[*field] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        found.into_iter().flatten().filter(is_there).map(said).collect::<Vec<_>>().join("\n\n")
    }
}
