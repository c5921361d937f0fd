//! Token counts of a response, as reported by the server.

use serde::Deserialize;
use serde_json::Value;

/// Token counts as reported by the server, under the names of the chat API, of the Responses API, or of the Messages
/// API.
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
    /// Prompt tokens that were taken from a cache, as gateways to the Messages API report them.
    cache_read_input_tokens: Option<Count>,
    /// Prompt tokens that were written to a cache, as gateways to the Messages API report them.
    cache_creation_input_tokens: Option<Count>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
struct PromptDetails {
    cached_tokens: Option<Count>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<Count>,
}

/// Largest number of tokens that any response can have; a larger count of hidden reasoning is not believed.
const MOST_TOKENS: u32 = 16_000_000;

/// A number that the server reports as a token count. If it is invalid, the usage is discarded, but the
/// response still succeeds.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(from = "f64")]
enum Count {
    Tokens(u32),
    /// The number is below zero, fractional, or too large for any response.
    Impossible(f64),
    /// Two names of the same count have different numbers.
    Contradictory(u32, u32),
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
            Count::Impossible(_) | Count::Contradictory(..) => None,
        }
    }

    /// Reads a number, or a text that contains one. `None` for everything else.
    fn of(value: &Value) -> Option<Count> {
        match value {
            Value::Number(number) => number.as_f64().map(Count::from),
            Value::String(text) => text.trim().parse::<f64>().ok().map(Count::from),
            _ => None,
        }
    }

    /// Returns the count that two names state together: the one that is not zero, if the other is.
    fn with(self, other: Count) -> Count {
        match (self, other) {
            (Count::Tokens(0), other) => other,
            (count, Count::Tokens(0)) => count,
            (Count::Tokens(one), Count::Tokens(two)) if one != two => Count::Contradictory(one, two),
            (Count::Tokens(_), other) => other,
            (count, _) => count,
        }
    }
}

/// Reads the count that `names` state in an object, or in a list of objects.
fn count_in(value: &Value, names: &[&str]) -> Option<Count> {
    let nodes = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    let counts = nodes.iter().flat_map(|node| names.iter().filter_map(|name| Count::of(node.get(*name)?)));
    counts.reduce(Count::with)
}

impl Usage {
    /// Reads the counts from a JSON value, in any shape that is known: with the names of several APIs side by side,
    /// numbers as texts, and lists of details. Counts that cannot be read are missing.
    pub fn of(json: &Value) -> Usage {
        let details = |names: &[&str], count: &[&str]| {
            names.iter().filter_map(|name| count_in(json.get(*name)?, count)).reduce(Count::with)
        };
        Usage {
            prompt_tokens: count_in(json, &["prompt_tokens", "input_tokens"]),
            completion_tokens: count_in(json, &["completion_tokens", "output_tokens"]),
            total_tokens: count_in(json, &["total_tokens"]),
            prompt_tokens_details: Some(PromptDetails {
                cached_tokens: details(&["prompt_tokens_details", "input_tokens_details"], &["cached_tokens"]),
            }),
            completion_tokens_details: Some(CompletionDetails {
                reasoning_tokens: details(
                    &["completion_tokens_details", "output_tokens_details"],
                    &["reasoning_tokens"],
                )
                .or(count_in(json, &["reasoning_tokens"])),
            }),
            cache_read_input_tokens: count_in(json, &["cache_read_input_tokens"]),
            cache_creation_input_tokens: count_in(json, &["cache_creation_input_tokens"]),
        }
    }

    /// Whether no count was reported.
    pub(super) fn is_empty(&self) -> bool {
        self.prompt_tokens.is_none() && self.completion_tokens.is_none() && self.total_tokens.is_none()
    }

    /// Returns the number of prompt tokens, including those from a cache, if it is a valid count. In the Messages API,
    /// cached tokens are counted apart from the others, and gateways pass that on under the names of the chat API.
    pub fn prompt_tokens(&self) -> Option<u32> {
        let told = self.prompt_tokens?.tokens()?;
        let cached = self.cached_tokens().unwrap_or(0);
        if cached <= told {
            return Some(told);
        }
        let written = self.cache_creation_input_tokens.and_then(Count::tokens).unwrap_or(0);
        told.checked_add(cached)?.checked_add(written)
    }

    /// Returns the counts of a response without output tokens. If the number of prompt tokens is missing, the
    /// total is used.
    pub(super) fn of_a_prompt_alone(self) -> Usage {
        Usage { prompt_tokens: self.prompt_tokens.or(self.total_tokens), completion_tokens: None, ..self }
    }

    /// Returns the number of output tokens, including reasoning, if it is a valid count.
    pub fn completion_tokens(&self) -> Option<u32> {
        let told = self.completion_tokens?.tokens()?;
        if self.counts_reasoning_apart() { told.checked_add(self.reasoning_tokens()?) } else { Some(told) }
    }

    /// Whether reasoning is not part of the completion's tokens (as with Gemini's and xAI's APIs): the total, or the
    /// number itself, shows it.
    fn counts_reasoning_apart(&self) -> bool {
        let counts = (self.completion_tokens.and_then(Count::tokens), self.reasoning_tokens());
        let (Some(completion), Some(reasoning @ 1..)) = counts else { return false };
        let prompt = self.prompt_tokens.and_then(Count::tokens);
        let total = self.total_tokens.and_then(Count::tokens).filter(|total| *total > 0);
        match prompt.zip(total) {
            Some((prompt, total)) => {
                u64::from(total) == u64::from(prompt) + u64::from(completion) + u64::from(reasoning)
            }
            None => reasoning > completion,
        }
    }

    /// Returns the number of prompt tokens that were taken from the prefix cache, if it is a valid count.
    pub fn cached_tokens(&self) -> Option<u32> {
        let told =
            self.prompt_tokens_details.and_then(|details| details.cached_tokens).or(self.cache_read_input_tokens);
        told?.tokens()
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
            Count::Contradictory(one, two) => Some(format!("{one} and {two} {what} tokens")),
            Count::Tokens(tokens) if what == "reasoning" && tokens > MOST_TOKENS => {
                Some(format!("{tokens} reasoning tokens"))
            }
            Count::Tokens(_) => None,
        })
    }

    /// Describes reasoning tokens that exceed the completion of which they should be a part; `None` if they fit.
    pub(crate) fn excess_reasoning(&self) -> Option<String> {
        let (completion, reasoning) = (self.completion_tokens()?, self.reasoning_tokens()?);
        (reasoning > completion).then(|| format!("{reasoning} reasoning tokens of {completion} completion tokens"))
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
            prompt_tokens_details: match (later.prompt_tokens_details, self.prompt_tokens_details) {
                (Some(PromptDetails { cached_tokens: None }), earlier) => earlier,
                (later, earlier) => later.or(earlier),
            },
            completion_tokens_details: match (later.completion_tokens_details, self.completion_tokens_details) {
                (Some(CompletionDetails { reasoning_tokens: None }), earlier) => earlier,
                (later, earlier) => later.or(earlier),
            },
            cache_read_input_tokens: later.cache_read_input_tokens.or(self.cache_read_input_tokens),
            cache_creation_input_tokens: later.cache_creation_input_tokens.or(self.cache_creation_input_tokens),
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
