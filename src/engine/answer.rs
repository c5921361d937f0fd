//! What the data of one event, or a whole JSON answer, says: text, usage, finish reason, error.
//!
//! One shape serves chat and completions, streamed and not, of every engine: vLLM and OpenAI (`reasoning`), SGLang and
//! others (`reasoning_content`), llama.cpp (content null in the first chunk), usage in the last content chunk, alone,
//! or in both.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

use crate::units::text::is_unseen;

/// The part of a JSON object of the OpenAI API that is measured.
#[derive(Debug, Default, Deserialize)]
pub struct Body<'a> {
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    error: Option<serde_json::Value>,
}

#[derive(Debug, Default, Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default, alias = "message")]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Option<Text<'a>>,
    #[serde(borrow, default)]
    reasoning_content: Option<Text<'a>>,
    #[serde(borrow, default)]
    reasoning: Option<Text<'a>>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<ToolCall<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
struct ToolCall<'a> {
    #[serde(borrow, default)]
    function: Option<Function<'a>>,
}

#[derive(Debug, Default, Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    arguments: Option<Text<'a>>,
}

/// A text, borrowed from the JSON unless it had to be decoded. serde borrows no `Cow` inside an `Option` by itself.
#[derive(Debug)]
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Reader)
    }
}

impl std::ops::Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

/// Where a text belongs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Channel {
    /// The answer.
    #[default]
    Content,
    /// Reasoning before it.
    Reasoning,
}

/// Token counts as the server gives them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub struct Usage {
    #[serde(default)]
    prompt_tokens: Option<Count>,
    #[serde(default)]
    completion_tokens: Option<Count>,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Option<Count>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Option<Count>,
}

/// A number where a count belongs. One that is none costs the server its usage, not the answer its success.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(from = "f64")]
enum Count {
    Tokens(u32),
    /// Below zero, broken, or too large for any answer.
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
    /// Tokens of the prompt.
    pub fn prompt_tokens(&self) -> Option<u32> {
        self.prompt_tokens?.tokens()
    }

    /// Tokens of the answer.
    pub fn completion_tokens(&self) -> Option<u32> {
        self.completion_tokens?.tokens()
    }

    /// Prompt tokens taken from the prefix cache.
    pub fn cached_tokens(&self) -> Option<u32> {
        self.prompt_tokens_details?.cached_tokens?.tokens()
    }

    /// Output tokens that were reasoning.
    pub fn reasoning_tokens(&self) -> Option<u32> {
        self.completion_tokens_details?.reasoning_tokens?.tokens()
    }

    /// The first of its numbers that can be no count, in words.
    pub fn no_count(&self) -> Option<String> {
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

/// Why the data of an event is not an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// Not JSON, not UTF-8, or JSON of another shape.
    Malformed(String),
    /// The server reports an error.
    Error(String),
}

impl<'a> Body<'a> {
    /// Reads one JSON text.
    pub fn parse(data: &'a [u8]) -> Result<Body<'a>, Wrong> {
        let text = std::str::from_utf8(data).map_err(|e| Wrong::Malformed(format!("invalid UTF-8: {e}")))?;
        let body: Body = serde_json::from_str(text).map_err(|e| Wrong::Malformed(format!("{e}: {text}")))?;
        if let Some(error) = body.error.as_ref().filter(|error| !error.is_null()) {
            return Err(Wrong::Error(error_text(error)));
        }
        if body.choices.is_none() && body.usage.is_none() {
            return Err(Wrong::Malformed(format!("neither choices nor usage nor error: {text}")));
        }
        Ok(body)
    }

    /// The server's token counts, if this part carries them.
    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn choice(&self) -> Option<&Choice<'a>> {
        self.choices.as_ref()?.first()
    }

    /// Answer text, empty where there is none.
    pub fn content(&self) -> &str {
        let choice = self.choice();
        let from_delta = choice.and_then(|c| c.delta.as_ref()?.content.as_deref());
        from_delta.or(choice.and_then(|c| c.text.as_deref())).unwrap_or("")
    }

    /// Reasoning text, empty where there is none.
    pub fn reasoning(&self) -> &str {
        let Some(delta) = self.choice().and_then(|choice| choice.delta.as_ref()) else { return "" };
        let named = delta.reasoning_content.as_deref().filter(|text| !text.is_empty());
        named.or(delta.reasoning.as_deref()).unwrap_or("")
    }

    /// Whether a tool call's arguments come with this part.
    pub fn has_tool_call(&self) -> bool {
        let calls = self.choice().and_then(|c| c.delta.as_ref()?.tool_calls.as_ref());
        let arguments =
            |call: &ToolCall| call.function.as_ref().and_then(|f| f.arguments.as_ref()).is_some_and(|a| !a.is_empty());
        calls.is_some_and(|calls| calls.iter().any(arguments))
    }

    /// The one text of this part, where a text is all that it says: no counts, no reason to stop, no tool call.
    pub fn only_text(&self) -> Option<(&str, Channel)> {
        let silent = self.usage.is_none() && self.finish_reason().is_none() && !self.has_tool_call();
        match (self.content(), self.reasoning()) {
            (content, "") if silent && !content.is_empty() => Some((content, Channel::Content)),
            ("", reasoning) if silent && !reasoning.is_empty() => Some((reasoning, Channel::Reasoning)),
            _ => None,
        }
    }

    /// Why the server stopped, if this part says so.
    pub fn finish_reason(&self) -> Option<&str> {
        self.choice()?.finish_reason.as_deref()
    }
}

/// What a server says in an error: the message of its JSON where it is JSON, else all of it. As long as it came: the key
/// that it may repeat must be found whole before the text is cut.
pub fn server_words(data: &[u8]) -> String {
    match serde_json::from_slice::<serde_json::Value>(data) {
        Ok(json) => error_text(json.get("error").unwrap_or(&json)),
        Err(_) => String::from_utf8_lossy(data).into_owned(),
    }
}

/// The message of an error object, which may be a text, an object with a message, or anything else.
fn error_text(error: &serde_json::Value) -> String {
    let message = error.get("message").unwrap_or(error);
    message.as_str().map_or_else(|| message.to_string(), str::to_owned)
}

/// The beginning of a text from a server, short enough for a row and without what a terminal obeys or hides.
pub fn excerpt(text: &str) -> String {
    let clean: String = text.chars().map(|c| if is_unseen(c) { ' ' } else { c }).take(200).collect();
    if text.chars().nth(200).is_some() { format!("{clean}…") } else { clean }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dialect_of_text() {
        let content = |json: &str| {
            Body::parse(json.as_bytes()).map(|b| (b.content().to_owned(), b.reasoning().to_owned())).unwrap()
        };
        assert_eq!(content(r#"{"choices":[{"delta":{"content":"a\n"}}]}"#), ("a\n".into(), "".into()));
        assert_eq!(content(r#"{"choices":[{"text":"b"}]}"#), ("b".into(), "".into()));
        assert_eq!(content(r#"{"choices":[{"delta":{"role":"assistant","content":null}}]}"#), ("".into(), "".into()));
        assert_eq!(
            content(r#"{"choices":[{"delta":{"reasoning_content":null,"reasoning":"r"}}]}"#),
            ("".into(), "r".into())
        );
        assert_eq!(content(r#"{"choices":[{"message":{"content":"whole"}}]}"#), ("whole".into(), "".into()));
        assert_eq!(content(r#"{"choices":[],"usage":{"completion_tokens":3}}"#), ("".into(), "".into()));
    }

    #[test]
    fn a_number_that_is_no_count_costs_only_the_usage() {
        let usage = |json: &str| {
            let body = format!(r#"{{"choices":[],"usage":{json}}}"#);
            Body::parse(body.as_bytes()).unwrap().usage().unwrap()
        };
        let good = usage(r#"{"prompt_tokens":7.0,"completion_tokens":3,"prompt_tokens_details":null}"#);
        assert_eq!((good.prompt_tokens(), good.completion_tokens(), good.no_count()), (Some(7), Some(3), None));
        let negative = usage(r#"{"prompt_tokens":-5,"completion_tokens":3}"#);
        assert_eq!((negative.prompt_tokens(), negative.no_count()), (None, Some("-5 prompt tokens".into())));
        let broken = usage(r#"{"completion_tokens":2.5}"#);
        assert_eq!(broken.no_count().as_deref(), Some("2.5 completion tokens"));
        let large = usage(r#"{"prompt_tokens_details":{"cached_tokens":5000000000}}"#);
        assert_eq!(large.no_count().as_deref(), Some("5000000000 cached tokens"));
    }

    #[test]
    fn what_is_not_an_answer() {
        assert!(matches!(Body::parse(b"{\"choices\":[{"), Err(Wrong::Malformed(_))));
        assert!(matches!(Body::parse(b"[1]"), Err(Wrong::Malformed(_))));
        assert!(matches!(Body::parse(b"{\"foo\":1}"), Err(Wrong::Malformed(_))));
        assert!(matches!(Body::parse(b"{\"choices\":[{\"text\":\"\xff\"}]}"), Err(Wrong::Malformed(_))));
        assert_eq!(
            Body::parse(br#"{"error":{"message":"out of memory","code":500}}"#).err(),
            Some(Wrong::Error("out of memory".into()))
        );
        assert_eq!(Body::parse(br#"{"error":"plain"}"#).err(), Some(Wrong::Error("plain".into())));
    }
}
