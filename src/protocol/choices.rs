//! The common part of chat and completions: responses with a list of `choices`, streamed or not. Supports the
//! variants of all engines: vLLM and OpenAI (`reasoning`), SGLang and others (`reasoning_content`), llama.cpp
//! (content null in the first chunk), and `usage` in the last content chunk, in a separate chunk, or in both.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, json};

use super::answer::{CallPiece, Part, Text, Wrong, text_of, utf8};
use super::lenient;
use super::request::{Object, Request};
use super::timings::Timings;
use super::usage::Usage;

/// The measured fields of an event or of a whole response, in the shape that nearly all servers send. Anything else is
/// read by [`lenient`], which is slower. Every event is read into this type in place: values that are built on the way
/// from nested objects would be copied several times.
#[derive(Debug, Default)]
struct Body<'a> {
    /// Number of choices that were read, 0 or 1; `None` if there is no list of them.
    choices: Option<usize>,
    content: Option<Text<'a>>,
    /// The text of a choice of the completions API.
    text: Option<Text<'a>>,
    reasoning_content: Option<Text<'a>>,
    reasoning: Option<Text<'a>>,
    finish_reason: Option<Text<'a>>,
    call_bytes: Option<usize>,
    has_delta: bool,
    has_message: bool,
    usage: Option<Usage>,
    timings: Option<Timings>,
    /// Whether there is more to read than this type contains.
    has_more: bool,
}

/// The fields of a JSON object, which are read in place.
trait Fields<'de> {
    /// Reads the value of the field `name`.
    fn read<A: MapAccess<'de>>(&mut self, name: &str, object: &mut A) -> Result<(), A::Error>;
}

/// Reads a JSON object or null. Returns whether it was an object.
struct ObjectReader<T>(T);

impl<'de, T: Fields<'de>> DeserializeSeed<'de> for ObjectReader<T> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de, T: Fields<'de>> Visitor<'de> for ObjectReader<T> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_none<E: Error>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut object: A) -> Result<bool, A::Error> {
        while let Some(name) = object.next_key::<&str>()? {
            self.0.read(name, &mut object)?;
        }
        Ok(true)
    }
}

/// The fields of an event or of a whole response.
struct Event<'b, 'a>(&'b mut Body<'a>);

impl<'de> Fields<'de> for Event<'_, 'de> {
    fn read<A: MapAccess<'de>>(&mut self, name: &str, object: &mut A) -> Result<(), A::Error> {
        let body = &mut *self.0;
        match name {
            "choices" => object.next_value_seed(Choices(body))?,
            "usage" => set(&mut body.usage, object.next_value()?, &mut body.has_more),
            "timings" => set(&mut body.timings, object.next_value()?, &mut body.has_more),
            "error" | "x_groq" => body.has_more |= object.next_value::<Option<IgnoredAny>>()?.is_some(),
            _ => drop(object.next_value::<IgnoredAny>()?),
        }
        Ok(())
    }
}

/// A list of choices, of which the first is read.
struct Choices<'b, 'a>(&'b mut Body<'a>);

impl<'de> DeserializeSeed<'de> for Choices<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Choices<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a list of choices")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let body = self.0;
        let first = list.next_element_seed(ObjectReader(Choice(body)))?;
        set(&mut body.choices, Some(usize::from(first.is_some())), &mut body.has_more);
        body.has_more |= first == Some(false);
        while list.next_element::<IgnoredAny>()?.is_some() {
            body.has_more = true;
        }
        Ok(())
    }
}

/// The fields of a choice.
struct Choice<'b, 'a>(&'b mut Body<'a>);

impl<'de> Fields<'de> for Choice<'_, 'de> {
    fn read<A: MapAccess<'de>>(&mut self, name: &str, object: &mut A) -> Result<(), A::Error> {
        let body = &mut *self.0;
        match name {
            "index" => body.has_more |= object.next_value::<Option<u64>>()?.is_some_and(|index| index > 0),
            "delta" => body.has_delta |= object.next_value_seed(ObjectReader(Message(body)))?,
            "message" => body.has_message |= object.next_value_seed(ObjectReader(Message(body)))?,
            "text" => set(&mut body.text, object.next_value()?, &mut body.has_more),
            "finish_reason" => set(&mut body.finish_reason, object.next_value()?, &mut body.has_more),
            _ => drop(object.next_value::<IgnoredAny>()?),
        }
        Ok(())
    }
}

/// The fields of `delta` or `message`.
struct Message<'b, 'a>(&'b mut Body<'a>);

impl<'de> Fields<'de> for Message<'_, 'de> {
    fn read<A: MapAccess<'de>>(&mut self, name: &str, object: &mut A) -> Result<(), A::Error> {
        let body = &mut *self.0;
        match name {
            "content" => set(&mut body.content, object.next_value()?, &mut body.has_more),
            "reasoning_content" => set(&mut body.reasoning_content, object.next_value()?, &mut body.has_more),
            "reasoning" => set(&mut body.reasoning, object.next_value()?, &mut body.has_more),
            "tool_calls" => {
                let calls = object.next_value::<Option<Vec<ToolCall>>>()?;
                let bytes = calls.map(|calls| calls.iter().map(ToolCall::bytes).sum());
                set(&mut body.call_bytes, bytes, &mut body.has_more);
            }
            // Fields of some servers that contain text of their own shapes.
            "function_call" | "refusal" | "reasoning_details" | "reasoning_text" | "thinking" | "thinking_blocks" => {
                body.has_more |= object.next_value::<Option<IgnoredAny>>()?.is_some();
            }
            _ => drop(object.next_value::<IgnoredAny>()?),
        }
        Ok(())
    }
}

/// Sets a field. If it was set before, there is more to read.
fn set<T>(field: &mut Option<T>, value: Option<T>, has_more: &mut bool) {
    *has_more |= field.is_some();
    *field = value;
}

#[derive(Debug, Default, Deserialize)]
struct ToolCall<'a> {
    #[serde(borrow, default)]
    function: Option<Function<'a>>,
}

#[derive(Debug, Default, Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    arguments: Option<Text<'a>>,
}

impl<'a> Body<'a> {
    fn of(text: &'a str) -> serde_json::Result<Body<'a>> {
        let mut body = Body::default();
        let mut json = serde_json::Deserializer::from_str(text);
        ObjectReader(Event(&mut body)).deserialize(&mut json)?;
        json.end()?;
        Ok(body)
    }

    /// Whether this type contains everything that is to be read.
    fn is_complete(&self) -> bool {
        self.choices.is_some() && !self.has_more && !(self.has_delta && self.has_message)
    }

    fn into_part(self) -> Part<'a> {
        let named = self.reasoning_content.filter(|text| !text.is_empty());
        Part {
            content: text_of(self.content.or(self.text)),
            reasoning: text_of(named.or(self.reasoning)),
            call_bytes: self.call_bytes.unwrap_or_default(),
            is_usage_alone: self.choices == Some(0) && self.usage.is_some(),
            usage: self.usage,
            timings: self.timings,
            finish_reason: self.finish_reason.map(|reason| reason.0).filter(|reason| !reason.is_empty()),
            is_whole_message: self.has_message,
            ..Part::default()
        }
    }
}

impl ToolCall<'_> {
    fn bytes(&self) -> usize {
        let Some(function) = &self.function else { return 0 };
        [&function.name, &function.arguments].into_iter().flatten().map(|text| text.len()).sum()
    }
}

/// Reads an event or a whole response. They differ only in the field that contains the text: `delta` or
/// `message`.
pub(super) fn part(data: &[u8]) -> Result<Part<'_>, Wrong> {
    let text = utf8(data)?;
    match Body::of(text) {
        Ok(body) if body.is_complete() => Ok(body.into_part()),
        _ => lenient::part(text),
    }
}

/// Writes the fields after the prompt into the body of a request whose response has `choices`.
pub(super) fn put_rest(request: &Request, body: &mut Object) {
    body.put(request.length_field, &request.output_tokens);
    body.put_all(request.sampling);
    body.put("stream", &request.stream);
    if request.stream {
        body.put("stream_options", &json!({ "include_usage": true }));
    }
    if request.ignore_eos {
        body.put("ignore_eos", &true);
    }
    if !request.stop.is_empty() {
        body.put("stop", request.stop);
    }
    body.put_all(request.extra);
}

/// Returns the pieces of tool calls in an event or a whole response. A stream first sends the name of a call,
/// and then its arguments in pieces that have the call's index.
pub(super) fn calls(data: &Value) -> Vec<CallPiece> {
    let choice = &data["choices"][0];
    let nodes = [&choice["delta"], &choice["message"]];
    let piece = |call: &Value, function: &Value| CallPiece {
        index: call["index"].as_u64(),
        name: function["name"].as_str().map(str::to_owned),
        arguments: lenient::arguments(&function["arguments"]).map(Cow::into_owned),
    };
    if let Some(calls) = nodes.iter().find_map(|node| node["tool_calls"].as_array()) {
        return calls.iter().map(|call| piece(call, &call["function"])).collect();
    }
    let old = nodes.into_iter().map(|node| &node["function_call"]).find(|call| call.is_object());
    old.into_iter().map(|call| piece(call, call)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dialect_of_text() {
        let content =
            |json: &str| part(json.as_bytes()).map(|p| (p.content.into_owned(), p.reasoning.into_owned())).unwrap();
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
            part(body.as_bytes()).unwrap().usage.unwrap()
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
    fn times_of_llama_cpp_come_with_the_last_chunk() {
        let last =
            r#"{"choices":[],"usage":{"completion_tokens":3},"timings":{"prompt_ms":12.5,"predicted_ms":30.25}}"#;
        let part = part(last.as_bytes()).unwrap();
        let told = part.timings.map(|timings| (timings.prefill_ns, timings.decode_ns));
        assert_eq!(told, Some((Some(12_500_000), Some(30_250_000))));
        let each = br#"{"choices":[{"delta":{"content":"a"}}],"timings":{"prompt_ms":12.5}}"#;
        assert!(super::part(each).unwrap().only_text().is_none(), "no template: it contains more than its text");
    }

    #[test]
    fn what_is_not_an_answer() {
        assert!(matches!(part(b"{\"choices\":[{"), Err(Wrong::Malformed(_))));
        for unknown in ["[1]", "{\"foo\":1}", "{}", "7"] {
            assert!(part(unknown.as_bytes()).unwrap().is_unread, "{unknown}");
        }
        assert!(matches!(part(b"{\"choices\":[{\"text\":\"\xff\"}]}"), Err(Wrong::Malformed(_))));
        assert_eq!(
            part(br#"{"error":{"message":"out of memory","code":500}}"#).err(),
            Some(Wrong::Error("out of memory".into()))
        );
        assert_eq!(part(br#"{"error":"plain"}"#).err(), Some(Wrong::Error("plain".into())));
    }
}
