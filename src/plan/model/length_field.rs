//! The names under which a request may ask for the length of its answer.

use serde::{Deserialize, Serialize};

/// The name under which a request asks for a length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum LengthField {
    /// `max_tokens`, which every server of this kind takes.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`, which OpenAI's newer models ask for.
    MaxCompletionTokens,
}

impl LengthField {
    /// Both.
    pub const ALL: [LengthField; 2] = [LengthField::MaxTokens, LengthField::MaxCompletionTokens];
    /// The keys of scenarios and axes that ask for a length.
    pub const KEYS: [&str; 2] = [LengthField::MaxTokens.key(), LengthField::MaxCompletionTokens.key()];

    /// The key of scenarios and axes that asks for the length under this name.
    pub const fn key(self) -> &'static str {
        match self {
            LengthField::MaxTokens => "output_tokens",
            LengthField::MaxCompletionTokens => "max_completion_tokens",
        }
    }

    /// Its name in a body.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
