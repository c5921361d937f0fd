//! The field names in which a request may specify the length of its response.

use serde::{Deserialize, Serialize};

/// The field name in which a request specifies the length of its response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum LengthField {
    /// `max_tokens`, which every OpenAI-compatible server accepts.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`, which OpenAI's newer models require.
    MaxCompletionTokens,
}

impl LengthField {
    /// All field names.
    pub const ALL: [LengthField; 2] = [LengthField::MaxTokens, LengthField::MaxCompletionTokens];
    /// The keys of scenarios and axes that set the length of a response.
    pub const KEYS: [&str; 2] = [LengthField::MaxTokens.key(), LengthField::MaxCompletionTokens.key()];

    /// The key of scenarios and axes that sets the length under this name.
    pub const fn key(self) -> &'static str {
        match self {
            LengthField::MaxTokens => "output_tokens",
            LengthField::MaxCompletionTokens => "max_completion_tokens",
        }
    }

    /// The name of the field in the body of a request.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
