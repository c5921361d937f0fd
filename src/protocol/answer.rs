//! The protocol-independent content of one event of a stream, or of a whole response.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, Visitor};

use crate::units::text::is_unseen;

use super::timings::Timings;
use super::usage::Usage;

/// The content of one event of a stream, or of a whole response.
#[derive(Debug, Default)]
pub struct Part<'a> {
    /// Text of the response; empty if there is none.
    pub content: Cow<'a, str>,
    /// Reasoning that precedes the text; empty if there is none.
    pub reasoning: Cow<'a, str>,
    /// Number of bytes of names and arguments of tool calls in this part.
    pub(crate) call_bytes: usize,
    /// The server's token counts, if this part contains them.
    pub usage: Option<Usage>,
    /// The server's own times for the response, if this part contains them.
    pub timings: Option<Timings>,
    /// The reason why the server stopped, if this part contains it.
    pub finish_reason: Option<Cow<'a, str>>,
    /// Whether this is the last part of the response.
    pub(crate) is_last: bool,
    /// Whether this part contains token counts and nothing of the response's text, as the last event of a stream
    /// does.
    pub(crate) is_usage_alone: bool,
    /// Whether the text is that of a whole message. In a stream, it may repeat everything that was streamed.
    pub(crate) is_whole_message: bool,
    /// Whether the reasoning is a summary, which has fewer tokens than the server counts.
    pub(crate) is_summary: bool,
    /// Whether this part contains text of a second choice. That text is not part of `content`.
    pub(crate) has_other_choice: bool,
    /// Whether the data is valid JSON of an unknown shape, so that nothing was read from it.
    pub(crate) is_unread: bool,
    /// Whether a part of the data has an unknown shape, so that it was left out.
    pub(crate) has_unread: bool,
    /// Number of vectors or scores in this part; `None` for protocols whose responses consist of text.
    pub values: Option<usize>,
}

impl Part<'_> {
    /// Returns a part of which nothing was read.
    pub(super) fn unread() -> Part<'static> {
        Part { is_unread: true, ..Part::default() }
    }

    /// Whether this part contains a tool call, or a piece of one.
    pub(crate) fn has_tool_call(&self) -> bool {
        self.call_bytes > 0
    }

    /// Returns the text of this part if it contains nothing else: no counts, no finish reason and no tool
    /// call.
    pub(crate) fn only_text(&self) -> Option<(&str, Channel)> {
        let counts_none = self.usage.is_none() && self.timings.is_none();
        let is_marked = self.is_last || self.is_whole_message || self.is_summary || self.has_other_choice;
        let is_silent = counts_none && self.finish_reason.is_none() && !self.has_tool_call() && !is_marked;
        match (&*self.content, &*self.reasoning) {
            (content, "") if is_silent && !content.is_empty() => Some((content, Channel::Content)),
            ("", reasoning) if is_silent && !reasoning.is_empty() => Some((reasoning, Channel::Reasoning)),
            _ => None,
        }
    }
}

/// The channel of a text: response or reasoning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Channel {
    /// The response.
    #[default]
    Content,
    /// The reasoning that precedes the response.
    Reasoning,
}

/// A piece of a tool call.
#[derive(Debug, PartialEq, Eq)]
pub struct CallPiece {
    /// The index of the call in the response, if a stream reports it.
    pub index: Option<u64>,
    /// The function's name, or a part of it; `None` if this piece has none.
    pub name: Option<String>,
    /// The call's arguments, or a part of them; `None` if this piece has none.
    pub arguments: Option<String>,
}

/// The reason why the data of an event cannot be read as part of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// The data is not UTF-8, not JSON, or JSON with unexpected fields.
    Malformed(String),
    /// The server reports an error.
    Error(String),
}

/// A text that is borrowed from the JSON unless it had to be decoded. By default, serde does not borrow a
/// `Cow` inside an `Option`.
#[derive(Debug)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

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

/// Returns the text of a field; empty if the field is missing.
pub(super) fn text_of(field: Option<Text<'_>>) -> Cow<'_, str> {
    field.map(|text| text.0).unwrap_or_default()
}

/// Returns `data` as text.
pub(super) fn utf8(data: &[u8]) -> Result<&str, Wrong> {
    std::str::from_utf8(data).map_err(|e| Wrong::Malformed(format!("invalid UTF-8: {e}")))
}

/// Parses `data` as JSON, and returns the value together with the JSON text.
pub(super) fn read<'a, T: Deserialize<'a>>(data: &'a [u8]) -> Result<(T, &'a str), Wrong> {
    let text = utf8(data)?;
    let read = serde_json::from_str(text).map_err(|e| Wrong::Malformed(format!("{e}: {text}")))?;
    Ok((read, text))
}

/// Parses the data of an event as JSON. Returns `None` if it is JSON of another shape.
pub(super) fn read_event<'a, T: Deserialize<'a>>(data: &'a [u8]) -> Result<Option<T>, Wrong> {
    match read(data) {
        Ok((event, _)) => Ok(Some(event)),
        Err(Wrong::Malformed(_)) if serde_json::from_slice::<IgnoredAny>(data).is_ok() => Ok(None),
        Err(wrong) => Err(wrong),
    }
}

/// Fails with the server's error if the response reports one.
pub(super) fn refuse_error(error: Option<&serde_json::Value>) -> Result<(), Wrong> {
    match error.filter(|error| states_error(error)) {
        Some(error) => Err(Wrong::Error(error_text(error))),
        None => Ok(()),
    }
}

/// Whether the value of an `error` field states an error. Some servers send the field, empty, with every event.
pub(super) fn states_error(error: &serde_json::Value) -> bool {
    use serde_json::Value;
    match error {
        Value::Null => false,
        Value::Bool(failed) => *failed,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
    }
}

/// Returns the text of a server's error: the message if the text is JSON, otherwise the whole text. The text
/// is not truncated here, because truncation could split an API key, which could then no longer be found.
pub(crate) fn server_words(data: &[u8]) -> String {
    match serde_json::from_slice::<serde_json::Value>(data) {
        Ok(json) => error_text(json.get("error").filter(|error| states_error(error)).unwrap_or(&json)),
        Err(_) => String::from_utf8_lossy(data).into_owned(),
    }
}

/// Returns the message of an `error` value, which may be a text, an object with a message, or any other JSON
/// value.
fn error_text(error: &serde_json::Value) -> String {
    let message = ["message", "detail"].into_iter().find_map(|key| error.get(key)).unwrap_or(error);
    message.as_str().map_or_else(|| message.to_string(), str::to_owned)
}

/// Returns the first 200 characters of a server's text, with spaces in place of control and invisible
/// characters.
pub(crate) fn excerpt(text: &str) -> String {
    // Every request has a finish reason, and nearly all are of this kind.
    if text.len() <= 200 && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.to_owned();
    }
    let clean: String = text.chars().map(|c| if is_unseen(c) { ' ' } else { c }).take(200).collect();
    if text.chars().nth(200).is_some() { format!("{clean}…") } else { clean }
}
