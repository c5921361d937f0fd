//! The common part of chat and completions: responses with a list of `choices`, streamed or not. Supports
//! the variants of every engine: vLLM and OpenAI (`reasoning`), SGLang and others (`reasoning_content`),
//! llama.cpp (content null in the first chunk), and usage in the last content chunk, alone, or in both.

use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{CallPiece, Part, Text, Wrong, read, refuse_error, text_of};
use super::request::{Object, Request};
use super::timings::Timings;
use super::usage::Usage;

/// The part of a response that is measured.
#[derive(Debug, Default, Deserialize)]
struct Body<'a> {
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    usage: Option<Usage>,
    timings: Option<Timings>,
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

impl ToolCall<'_> {
    fn has_arguments(&self) -> bool {
        self.function.as_ref().and_then(|function| function.arguments.as_ref()).is_some_and(|text| !text.is_empty())
    }
}

/// Reads an event or a whole response, which differ only in whether a text is called a delta.
pub(super) fn part(data: &[u8]) -> Result<Part<'_>, Wrong> {
    let (Body { choices, usage, timings, error }, text) = read(data)?;
    refuse_error(error.as_ref())?;
    if choices.is_none() && usage.is_none() {
        return Err(Wrong::Malformed(format!("neither choices nor usage nor error: {text}")));
    }
    let first = choices.unwrap_or_default().into_iter().next().unwrap_or_default();
    let Choice { delta, text, finish_reason } = first;
    let Delta { content, reasoning_content, reasoning, tool_calls } = delta.unwrap_or_default();
    let named = reasoning_content.filter(|text| !text.is_empty());
    Ok(Part {
        content: text_of(content.or(text)),
        reasoning: text_of(named.or(reasoning)),
        has_tool_call: tool_calls.is_some_and(|calls| calls.iter().any(ToolCall::has_arguments)),
        usage,
        timings,
        finish_reason: finish_reason.map(|reason| reason.0),
        ..Part::default()
    })
}

/// Writes the fields that follow the prompt, in bodies of requests whose responses have `choices`.
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

/// Returns the tool calls in a part of the response: a stream first sends the name of a call and then its
/// arguments in pieces, by number.
pub(super) fn calls(data: &Value) -> Vec<CallPiece> {
    let choice = &data["choices"][0];
    let calls =
        [&choice["delta"]["tool_calls"], &choice["message"]["tool_calls"]].into_iter().find_map(Value::as_array);
    let piece = |call: &Value| CallPiece {
        index: call["index"].as_u64(),
        name: call["function"]["name"].as_str().map(str::to_owned),
        arguments: call["function"]["arguments"].as_str().map(str::to_owned),
    };
    calls.into_iter().flatten().map(piece).collect()
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
        assert!(matches!(part(b"[1]"), Err(Wrong::Malformed(_))));
        assert!(matches!(part(b"{\"foo\":1}"), Err(Wrong::Malformed(_))));
        assert!(matches!(part(b"{\"choices\":[{\"text\":\"\xff\"}]}"), Err(Wrong::Malformed(_))));
        assert_eq!(
            part(br#"{"error":{"message":"out of memory","code":500}}"#).err(),
            Some(Wrong::Error("out of memory".into()))
        );
        assert_eq!(part(br#"{"error":"plain"}"#).err(), Some(Wrong::Error("plain".into())));
    }
}
