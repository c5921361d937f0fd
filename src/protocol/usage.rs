//! Token counts of a response, as reported by the server.

use serde::Deserialize;
use serde_json::Value;

/// Token counts as reported by the server, under the names of the chat API or of the Responses API.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub struct Usage {
    #[serde(default, alias = "input_tokens")]
    prompt_tokens: Option<Count>,
    #[serde(default, alias = "output_tokens")]
    completion_tokens: Option<Count>,
    total_tokens: Option<Count>,
    #[serde(default, alias = "input_tokens_details")]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default, alias = "output_tokens_details")]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
struct PromptDetails {
    cached_tokens: Option<Count>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<Count>,
}

/// A number in the place of a count. If it is invalid, the usage is discarded, but the response still
/// succeeds.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(from = "f64")]
enum Count {
    Tokens(u32),
    /// The number is below zero, fractional, or too large for any response.
    Impossible(f64),
}

impl From<f64> for Count {
    fn from(number: f64) -> Count {
        let fits = number.fract() == 0.0 && (0.0..f64::from(u32::MAX)).contains(&number);
        if fits { Count::Tokens(number as u32) } else { Count::Impossible(number) }
    }
}

impl Count {
    fn tokens(self) -> Option<u32> {
        match self {
            Count::Tokens(tokens) => Some(tokens),
            Count::Impossible(_) => None,
        }
    }
}

impl Usage {
    /// Returns the counts in a JSON value; empty if it is not an object.
    pub fn of(json: &Value) -> Usage {
        Usage::deserialize(json).unwrap_or_default()
    }

    /// Returns the tokens of the prompt.
    pub fn prompt_tokens(&self) -> Option<u32> {
        self.prompt_tokens?.tokens()
    }

    /// Returns the counts of a response without tokens, in which the total is the number of prompt
    /// tokens.
    pub(super) fn of_a_prompt_alone(self) -> Usage {
        Usage { prompt_tokens: self.prompt_tokens.or(self.total_tokens), completion_tokens: None, ..self }
    }

    /// Returns the tokens of the response.
    pub fn completion_tokens(&self) -> Option<u32> {
        self.completion_tokens?.tokens()
    }

    /// Returns the prompt tokens that were taken from the prefix cache.
    pub fn cached_tokens(&self) -> Option<u32> {
        self.prompt_tokens_details?.cached_tokens?.tokens()
    }

    /// Returns the output tokens that were reasoning.
    pub fn reasoning_tokens(&self) -> Option<u32> {
        self.completion_tokens_details?.reasoning_tokens?.tokens()
    }

    /// Returns the first of its numbers that is not a valid count, in words.
    pub(crate) fn no_count(&self) -> Option<String> {
        let cached = self.prompt_tokens_details.and_then(|details| details.cached_tokens);
        let reasoning = self.completion_tokens_details.and_then(|details| details.reasoning_tokens);
        let counts = [
            (self.completion_tokens, "completion"),
            (self.prompt_tokens, "prompt"),
            (cached, "cached"),
            (reasoning, "reasoning"),
        ];
        counts.into_iter().find_map(|(count, what)| match count? {
            Count::Impossible(number) => Some(format!("{number} {what} tokens")),
            Count::Tokens(_) => None,
        })
    }
}
