//! The common part of chat and completions: responses with a list of `choices`, streamed or not. Supports the
//! variants of all engines: vLLM and OpenAI (`reasoning`), SGLang and others (`reasoning_content`), llama.cpp
//! (content null in the first chunk), and `usage` in the last content chunk, in a separate chunk, or in both.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::answer::{CallPiece, Part, Text, Wrong, text_of, utf8};
use super::lenient;
use super::request::{Object, Request};
use super::timings::Timings;
use super::usage::Usage;

/// The measured fields of an event or of a whole response, in the shape that nearly all servers send. Anything else is
/// read by [`lenient`], which is slower.
#[derive(Debug, Default, Deserialize)]
struct Body<'a> {
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    usage: Option<Usage>,
    timings: Option<Timings>,
    error: Option<IgnoredAny>,
    x_groq: Option<IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
struct Choice<'a> {
    index: Option<u64>,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    message: Option<Delta<'a>>,
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
    // Fields of some servers that contain text of their own shapes.
    function_call: Option<IgnoredAny>,
    refusal: Option<IgnoredAny>,
    reasoning_details: Option<IgnoredAny>,
    reasoning_text: Option<IgnoredAny>,
    thinking: Option<IgnoredAny>,
    thinking_blocks: Option<IgnoredAny>,
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

impl Body<'_> {
    /// Whether this type contains everything that is to be read.
    fn is_complete(&self) -> bool {
        let Some(choices) = &self.choices else { return false };
        let is_silent = self.error.is_none() && self.x_groq.is_none();
        is_silent && choices.len() <= 1 && choices.iter().all(Choice::is_complete)
    }
}

impl Choice<'_> {
    fn is_complete(&self) -> bool {
        let is_only = self.index.is_none_or(|index| index == 0) && (self.delta.is_none() || self.message.is_none());
        is_only && [&self.delta, &self.message].into_iter().flatten().all(Delta::is_complete)
    }
}

impl Delta<'_> {
    fn is_complete(&self) -> bool {
        let others = [
            &self.function_call,
            &self.refusal,
            &self.reasoning_details,
            &self.reasoning_text,
            &self.thinking,
            &self.thinking_blocks,
        ];
        others.iter().all(|other| other.is_none())
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
    match serde_json::from_str::<Body>(text) {
        Ok(body) if body.is_complete() => Ok(part_of(body)),
        _ => lenient::part(text),
    }
}

fn part_of(body: Body<'_>) -> Part<'_> {
    let Body { choices, usage, timings, .. } = body;
    let choices = choices.unwrap_or_default();
    let is_usage_alone = choices.is_empty() && usage.is_some();
    let Choice { delta, message, text, finish_reason, .. } = choices.into_iter().next().unwrap_or_default();
    let is_whole_message = message.is_some();
    let Delta { content, reasoning_content, reasoning, tool_calls, .. } = delta.or(message).unwrap_or_default();
    let named = reasoning_content.filter(|text| !text.is_empty());
    Part {
        content: text_of(content.or(text)),
        reasoning: text_of(named.or(reasoning)),
        call_bytes: tool_calls.iter().flatten().map(ToolCall::bytes).sum(),
        usage,
        timings,
        finish_reason: finish_reason.map(|reason| reason.0).filter(|reason| !reason.is_empty()),
        is_usage_alone,
        is_whole_message,
        ..Part::default()
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
