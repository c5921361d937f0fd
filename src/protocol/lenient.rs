//! Reads events and whole responses with `choices` whose shape differs from the common one. What cannot be read is
//! left out, and costs nothing beside it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use super::answer::{Part, Wrong, refuse_error, server_words};
use super::timings::Timings;
use super::usage::Usage;

/// The first of the private-use characters that stand for halves of surrogate pairs: U+D800 to U+DFFF in order.
const HALVES: u32 = 0xF_0000;

/// The texts of a delta or a message.
#[derive(Debug, Default)]
struct Texts {
    content: String,
    reasoning: String,
    call_bytes: usize,
}

impl Texts {
    fn is_empty(&self) -> bool {
        self.content.is_empty() && self.reasoning.is_empty() && self.call_bytes == 0
    }
}

/// Reads an event or a whole response of any shape.
///
/// # Errors
/// Fails if the text is not JSON, or if it reports an error.
pub(super) fn part(text: &str) -> Result<Part<'static>, Wrong> {
    let json = value(text)?;
    refuse_error(json.get("error"))?;
    let choices = json["choices"].as_array().map(Vec::as_slice);
    let states_error = json["object"] == "error" || json["type"] == "error";
    if states_error && choices.is_none() {
        return Err(Wrong::Error(server_words(text.as_bytes())));
    }
    let told = [&json["usage"], &json["x_groq"]["usage"]].map(Usage::of);
    let usage = told.into_iter().find(|usage| !usage.is_empty());
    let timings = Timings::deserialize(&json["timings"]).ok().filter(|timings| *timings != Timings::default());
    let choices = match choices {
        Some(choices) => choices,
        None if usage.is_some() || timings.is_some() => &[],
        None => return Ok(Part::unread()),
    };
    let index = |choice: &Value| choice["index"].as_u64().unwrap_or(0);
    let first = choices.iter().find(|choice| index(choice) == 0).unwrap_or(&Value::Null);
    let others = choices.iter().filter(|choice| index(choice) != 0).chain(choices.iter().skip(1));
    let has_other_choice = others.into_iter().any(|choice| !texts_of_choice(choice).0.is_empty());
    let (Texts { content, reasoning, call_bytes }, is_whole_message) = texts_of_choice(first);
    let has_unread = ["delta", "message"].iter().any(|name| !is_text(&first[*name]["content"]));
    Ok(Part {
        content: content.into(),
        reasoning: reasoning.into(),
        call_bytes,
        usage,
        timings,
        finish_reason: finish_reason(&first["finish_reason"]),
        is_usage_alone: choices.is_empty() && usage.is_some(),
        is_whole_message,
        has_other_choice,
        has_unread,
        ..Part::default()
    })
}

/// Whether a content has a shape that texts can have.
fn is_text(content: &Value) -> bool {
    !matches!(content, Value::Bool(_) | Value::Number(_))
}

/// Returns the texts of a choice, and whether they are those of a whole message.
fn texts_of_choice(choice: &Value) -> (Texts, bool) {
    let piece = texts(&choice["delta"]);
    if !piece.is_empty() {
        return (piece, false);
    }
    let message = texts(&choice["message"]);
    if !message.is_empty() {
        return (message, true);
    }
    (Texts { content: text(&choice["text"]), ..Texts::default() }, false)
}

/// Returns the texts of a delta or a message. What a user sees is content, a refusal too.
fn texts(node: &Value) -> Texts {
    let mut texts = Texts::default();
    match &node["content"] {
        Value::Array(parts) => parts.iter().for_each(|part| add_part(&mut texts, part)),
        other => texts.content = text(other),
    }
    if texts.content.is_empty() {
        texts.content = text(&node["refusal"]);
    }
    if let Value::String(whole) = node {
        texts.content.clone_from(whole);
    }
    // Servers that send the same reasoning in several fields are read once.
    const REASONING: [&str; 6] =
        ["reasoning_content", "reasoning", "reasoning_text", "thinking", "reasoning_details", "thinking_blocks"];
    if texts.reasoning.is_empty() {
        let found = REASONING.iter().map(|name| text(&node[*name])).find(|text| !text.is_empty());
        texts.reasoning = found.unwrap_or_default();
    }
    let calls = node["tool_calls"].as_array().into_iter().flatten();
    let functions = calls.map(|call| if call["function"].is_object() { &call["function"] } else { call });
    texts.call_bytes = functions.chain([&node["function_call"]]).map(call_bytes).sum();
    texts
}

/// Adds one part of a content that is a list: text, reasoning, or a refusal.
fn add_part(texts: &mut Texts, part: &Value) {
    match part["type"].as_str() {
        Some("thinking" | "reasoning" | "reasoning_text" | "redacted_thinking") => {
            texts.reasoning.push_str(&text(part))
        }
        _ => texts.content.push_str(&text(part)),
    }
}

/// Returns the text of a value: a string, an object with a text, or a list of both.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(text).collect(),
        Value::Object(fields) => {
            const NAMES: [&str; 8] =
                ["text", "value", "content", "thinking", "reasoning", "reasoning_text", "summary", "refusal"];
            NAMES
                .iter()
                .filter_map(|name| fields.get(*name))
                .map(text)
                .find(|text| !text.is_empty())
                .unwrap_or_default()
        }
        _ => String::new(),
    }
}

/// Returns the number of bytes of the name and the arguments of a function call.
fn call_bytes(function: &Value) -> usize {
    let name = function["name"].as_str().unwrap_or_default();
    name.len() + arguments(&function["arguments"]).map_or(0, |arguments| arguments.len())
}

/// Returns the arguments of a function call as text: most servers send a string, some an object. `None` without
/// arguments.
pub(super) fn arguments(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Object(_) | Value::Array(_) => Some(Cow::Owned(value.to_string())),
        _ => None,
    }
}

/// Returns the finish reason: a string, or an object that names it.
fn finish_reason(value: &Value) -> Option<Cow<'static, str>> {
    let named =
        |value: &Value| value.as_str().filter(|reason| !reason.is_empty()).map(|reason| Cow::Owned(reason.to_owned()));
    match value {
        Value::Object(fields) => {
            ["type", "reason", "name", "finish_reason"].iter().find_map(|name| named(fields.get(*name)?))
        }
        other => named(other),
    }
}

/// Parses JSON, with two deviations that servers are known for: `NaN` and infinities in place of numbers, and surrogate
/// pairs whose halves are in different events.
fn value(text: &str) -> Result<Value, Wrong> {
    serde_json::from_str(text).or_else(|error| {
        let malformed = || Wrong::Malformed(format!("{error}: {text}"));
        serde_json::from_str(&repaired(text).ok_or_else(malformed)?).map_err(|_| malformed())
    })
}

/// Returns the text with `null` in place of `NaN` and infinities, and with characters of the private use in place of
/// escaped halves of surrogate pairs; `None` if it has neither.
fn repaired(text: &str) -> Option<String> {
    let (mut out, mut rest, mut in_string, mut is_changed) = (String::with_capacity(text.len()), text, false, false);
    while let Some(next) = rest.chars().next() {
        let (taken, put): (usize, Cow<str>) = match next {
            '"' => {
                in_string = !in_string;
                (1, "\"".into())
            }
            '\\' if in_string => escape(rest),
            '-' | 'N' | 'I' if !in_string => {
                match ["NaN", "Infinity", "-Infinity"].iter().find(|name| rest.starts_with(**name)) {
                    Some(name) => (name.len(), "null".into()),
                    None => (1, rest[..1].into()),
                }
            }
            other => (other.len_utf8(), rest[..other.len_utf8()].into()),
        };
        is_changed |= *put != rest[..taken];
        out.push_str(&put);
        rest = &rest[taken..];
    }
    is_changed.then_some(out)
}

/// Returns the length of the escape at the start of `text`, and what replaces it.
fn escape(text: &str) -> (usize, Cow<'_, str>) {
    let unit = |at: usize| {
        let digits = text.get(at..).filter(|rest| rest.starts_with("\\u"))?.get(2..6)?;
        u32::from_str_radix(digits, 16).ok()
    };
    match (unit(0), unit(6)) {
        (Some(0xD800..0xDC00), Some(0xDC00..0xE000)) => (12, text[..12].into()),
        (Some(half @ 0xD800..0xE000), _) => {
            let stands = char::from_u32(HALVES + half - 0xD800).unwrap_or(char::REPLACEMENT_CHARACTER);
            (6, stands.to_string().into())
        }
        _ => {
            let length = 1 + text[1..].chars().next().map_or(0, char::len_utf8);
            (length, text[..length].into())
        }
    }
}

/// Joins the halves of surrogate pairs that different events contained; a half that is alone becomes U+FFFD. `None` if
/// the text has no halves.
pub(crate) fn joined_halves(text: &str) -> Option<String> {
    // In UTF-8, the characters that stand for halves begin with this byte. Nearly all texts lack it.
    memchr::memchr(0xF3, text.as_bytes())?;
    let half = |c: char| u32::from(c).checked_sub(HALVES).filter(|unit| *unit < 0x800);
    if !text.contains(|c| half(c).is_some()) {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let low = characters.peek().copied().and_then(half).filter(|unit| *unit >= 0x400);
        match (half(c), low) {
            (None, _) => out.push(c),
            (Some(high @ 0..0x400), Some(low)) => {
                characters.next();
                out.extend(char::from_u32(0x1_0000 + (high << 10) + (low - 0x400)));
            }
            (Some(_), _) => out.push(char::REPLACEMENT_CHARACTER),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> (String, String, usize) {
        let part = part(json).unwrap();
        (part.content.into_owned(), part.reasoning.into_owned(), part.call_bytes)
    }

    fn delta(fields: &str) -> (String, String, usize) {
        read(&format!(r#"{{"choices":[{{"index":0,"delta":{{{fields}}}}}]}}"#))
    }

    #[test]
    fn text_in_every_place_is_read_once() {
        let content = |text: &str| (text.to_owned(), String::new(), 0);
        let reasoning = |text: &str| (String::new(), text.to_owned(), 0);
        assert_eq!(
            delta(
                r#""content":[{"type":"text","text":"a"},{"type":"thinking","thinking":[{"type":"text","text":"b"}]}]"#
            ),
            ("a".into(), "b".into(), 0)
        );
        assert_eq!(delta(r#""content":null,"refusal":"no""#), content("no"));
        assert_eq!(
            delta(r#""reasoning":"r","reasoning_details":[{"type":"reasoning.text","text":"r"}]"#),
            reasoning("r")
        );
        assert_eq!(delta(r#""reasoning_details":[{"type":"reasoning.text","text":"r"}]"#), reasoning("r"));
        assert_eq!(delta(r#""thinking":{"content":"t"}"#), reasoning("t"));
        assert_eq!(delta(r#""thinking_blocks":[{"type":"thinking","thinking":"t","signature":"s"}]"#), reasoning("t"));
        assert_eq!(delta(r#""reasoning_text":"t""#), reasoning("t"));
        assert_eq!(delta(r#""function_call":{"name":"f","arguments":"{}"}"#).2, 3);
        assert_eq!(delta(r#""tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]"#).2, 8);
        assert_eq!(delta(r#""content":7,"reasoning":true"#), content(""));
        assert_eq!(read(r#"{"choices":[{"delta":{"content":"a"},"message":{"content":"abc"}}]}"#), content("a"));
    }

    #[test]
    fn an_event_of_an_unknown_shape_is_skipped_and_an_error_is_not() {
        for unknown in ["{}", "7", "[1]", r#"{"choices":null}"#, r#"{"id":"x","error":{}}"#, r#"{"error":false}"#] {
            assert!(part(unknown).unwrap().is_unread, "{unknown}");
        }
        let error = |json: &str| part(json).err();
        let told = |text: &str| Some(Wrong::Error(text.to_owned()));
        assert_eq!(error(r#"{"object":"error","message":"out of memory","code":500}"#), told("out of memory"));
        assert_eq!(error(r#"{"type":"error","error":{"message":"busy"}}"#), told("busy"));
        assert!(matches!(error("{\"choices\":[{"), Some(Wrong::Malformed(_))));
    }

    #[test]
    fn a_second_choice_is_named_and_not_read() {
        let both = r#"{"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}]}"#;
        let other = r#"{"choices":[{"index":1,"delta":{"content":"b"}}]}"#;
        assert_eq!((read(both).0.as_str(), part(both).unwrap().has_other_choice), ("a", true));
        assert_eq!((read(other).0.as_str(), part(other).unwrap().has_other_choice), ("", true));
    }

    #[test]
    fn what_servers_write_in_place_of_numbers_costs_nothing() {
        let json =
            r#"{"choices":[{"delta":{"content":"NaN \"-Infinity\""},"logprobs":{"a":[NaN,-Infinity,Infinity,-1]}}]}"#;
        assert_eq!(read(json).0, "NaN \"-Infinity\"");
        assert!(matches!(part(r#"{"choices":[{"delta":{"content":NaM}}]}"#), Err(Wrong::Malformed(_))));
    }

    #[test]
    fn halves_of_a_character_are_joined() {
        let piece = |text: &str| delta(&format!(r#""content":"{text}""#)).0;
        let text = [piece(r"a\ud83d"), piece(r"\ude00b"), piece(r"\u0041\ud83d\ude00"), piece(r"\ude00")].concat();
        assert_eq!(joined_halves(&text).as_deref(), Some("a😀bA😀\u{FFFD}"));
        assert_eq!(joined_halves("plain 😀"), None);
    }

    #[test]
    fn usage_in_every_shape() {
        let usage = |json: &str| Usage::of(&serde_json::from_str(json).unwrap());
        let counts =
            |json: &str| (usage(json).prompt_tokens(), usage(json).completion_tokens(), usage(json).no_count());
        let both = r#"{"prompt_tokens":30,"input_tokens":30,"completion_tokens":10,"output_tokens":0}"#;
        assert_eq!(counts(both), (Some(30), Some(10), None));
        let differ = r#"{"prompt_tokens":30,"completion_tokens":10,"output_tokens":12}"#;
        assert_eq!(counts(differ).2.as_deref(), Some("10 and 12 completion tokens"));
        assert_eq!(counts(r#"{"prompt_tokens":"30","completion_tokens":"10"}"#), (Some(30), Some(10), None));
        let apart = usage(r#"{"prompt_tokens":5,"completion_tokens":10,"cache_read_input_tokens":1000}"#);
        assert_eq!((apart.prompt_tokens(), apart.cached_tokens()), (Some(1005), Some(1000)));
        let listed =
            usage(r#"{"prompt_tokens":5,"prompt_tokens_details":[{"cached_tokens":2}],"completion_tokens":1}"#);
        assert_eq!(listed.cached_tokens(), Some(2));
        let outside = usage(
            r#"{"prompt_tokens":5,"completion_tokens":10,"total_tokens":69,"completion_tokens_details":{"reasoning_tokens":54}}"#,
        );
        assert_eq!(outside.completion_tokens(), Some(64));
    }
}
