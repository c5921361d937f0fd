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

/// A number that the server reports as a token count. If it is invalid, the usage is discarded, but the
/// response still succeeds.
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
    /// Reads the counts from a JSON value; all counts are missing if the value cannot be read as usage.
    pub fn of(json: &Value) -> Usage {
        Usage::deserialize(json).unwrap_or_default()
    }

    /// Returns the number of prompt tokens, if it is a valid count.
    pub fn prompt_tokens(&self) -> Option<u32> {
        self.prompt_tokens?.tokens()
    }

    /// Returns the counts of a response without output tokens. If the number of prompt tokens is missing, the
    /// total is used.
    pub(super) fn of_a_prompt_alone(self) -> Usage {
        Usage { prompt_tokens: self.prompt_tokens.or(self.total_tokens), completion_tokens: None, ..self }
    }

    /// Returns the number of output tokens, if it is a valid count.
    pub fn completion_tokens(&self) -> Option<u32> {
        self.completion_tokens?.tokens()
    }

    /// Returns the number of prompt tokens that were taken from the prefix cache, if it is a valid count.
    pub fn cached_tokens(&self) -> Option<u32> {
        self.prompt_tokens_details?.cached_tokens?.tokens()
    }

    /// Returns the number of output tokens that were reasoning, if it is a valid count.
    pub fn reasoning_tokens(&self) -> Option<u32> {
        self.completion_tokens_details?.reasoning_tokens?.tokens()
    }

    /// Describes the first number that is not a valid count; `None` if all numbers are valid.
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

    /// Returns these counts, updated with those of a later part of the same response. A later count replaces an
    /// earlier one, except that the number of prompt tokens does not shrink: servers that count cached tokens apart
    /// repeat the number of the others alone.
    pub(crate) fn updated(self, later: Usage) -> Usage {
        let prompt_tokens = match (self.prompt_tokens(), later.prompt_tokens()) {
            (Some(before), Some(after)) if after < before => self.prompt_tokens,
            _ => later.prompt_tokens.or(self.prompt_tokens),
        };
        Usage {
            prompt_tokens,
            completion_tokens: later.completion_tokens.or(self.completion_tokens),
            total_tokens: later.total_tokens.or(self.total_tokens),
            prompt_tokens_details: later.prompt_tokens_details.or(self.prompt_tokens_details),
            completion_tokens_details: later.completion_tokens_details.or(self.completion_tokens_details),
        }
    }

    /// Creates the counts of a response from single numbers; `None` for a count that is not reported.
    pub(super) fn of_counts(prompt: Option<f64>, cached: Option<f64>, output: Option<f64>) -> Usage {
        Usage {
            prompt_tokens: prompt.map(Count::from),
            completion_tokens: output.map(Count::from),
            prompt_tokens_details: cached.map(|cached| PromptDetails { cached_tokens: Some(Count::from(cached)) }),
            ..Usage::default()
        }
    }
}
