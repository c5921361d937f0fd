//! Responses (OpenAI API reference, "Responses" and "Streaming events"), also implemented by vLLM, SGLang
//! and llama.cpp.
//!
//! A stream consists of named events; those with a `delta` contain text. Each event has its own number, so
//! the bytes around the text differ between events and every event must be parsed completely. Only the
//! event with the whole response marks the end.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use super::answer::{CallPiece, Part, Text, Wrong, read, read_event, refuse_error, text_of};
use super::contract::{Framing, Protocol};
use super::request::{Object, Request};
use super::timings::Timings;
use super::usage::Usage;

/// The Responses protocol.
#[derive(Debug)]
pub(super) struct Responses;

/// The measured fields of one event of a stream.
#[derive(Debug, Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    delta: Option<Text<'a>>,
    #[serde(borrow, default)]
    response: Option<Response<'a>>,
    /// llama.cpp returns the timings next to the response.
    timings: Option<Timings>,
}

/// A response. Without streaming, it is the whole body; in a stream, it is part of the last event.
#[derive(Debug, Default, Deserialize)]
struct Response<'a> {
    #[serde(borrow, default)]
    status: Option<Text<'a>>,
    #[serde(borrow, default)]
    output: Option<Vec<Item<'a>>>,
    usage: Option<Usage>,
    timings: Option<Timings>,
    error: Option<Value>,
    #[serde(borrow, default)]
    incomplete_details: Option<Incomplete<'a>>,
}

#[derive(Debug, Deserialize)]
struct Incomplete<'a> {
    #[serde(borrow, default)]
    reason: Option<Text<'a>>,
}

/// An item of the output: a message, reasoning, or a function call.
#[derive(Debug, Deserialize)]
struct Item<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    content: Option<Vec<Piece<'a>>>,
    #[serde(borrow, default)]
    summary: Option<Vec<Piece<'a>>>,
    #[serde(borrow, default)]
    arguments: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
struct Piece<'a> {
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
}

/// Joins all pieces into one text.
fn joined(pieces: Option<Vec<Piece<'_>>>) -> String {
    pieces.into_iter().flatten().map(|piece| text_of(piece.text)).collect()
}

/// Returns the token counts, the server's times and the finish reason of a response. The finish reason is
/// translated to the terms of the chat API, so that runs with either API are judged alike.
fn ending<'a>(response: Response<'a>) -> Result<Part<'a>, Wrong> {
    let Response { status, usage, timings, error, incomplete_details, .. } = response;
    refuse_error(error.as_ref())?;
    let reason = incomplete_details.and_then(|details| details.reason).map(|reason| reason.0);
    let finish_reason = match (status.as_deref(), reason) {
        (_, Some(reason)) if reason == "max_output_tokens" => Some(Cow::Borrowed("length")),
        (_, Some(reason)) => Some(reason),
        (Some("completed"), None) => Some(Cow::Borrowed("stop")),
        (_, None) => status.map(|status| status.0),
    };
    Ok(Part { usage, timings, finish_reason, is_last: true, ..Part::default() })
}

impl Protocol for Responses {
    fn path(&self) -> &'static str {
        "/responses"
    }

    fn framing(&self) -> Framing {
        Framing::Chat
    }

    fn prompt_fields(&self) -> &'static [&'static str] {
        &["input"]
    }

    fn answer_field(&self) -> &'static str {
        "output"
    }

    /// This API has only one field for the output length. `store: false` ensures that a measurement leaves
    /// nothing stored on the server.
    fn body(&self, request: &Request, body: &mut Object) {
        body.put("model", request.model);
        body.put("input", &request.said.messages());
        body.put("max_output_tokens", &request.output_tokens);
        body.put_all(request.sampling);
        body.put("stream", &request.stream);
        body.put("store", &false);
        if request.ignore_eos {
            body.put("ignore_eos", &true);
        }
        if !request.stop.is_empty() {
            body.put("stop", request.stop);
        }
        body.put_all(request.extra);
    }

    fn takes_event(&self, name: &[u8]) -> bool {
        name.is_empty() || name == b"message" || name.starts_with(b"response.")
    }

    fn event<'a>(&self, data: &'a [u8]) -> Result<Part<'a>, Wrong> {
        let Some(event) = read_event(data)? else { return Ok(Part::unread()) };
        let Event { kind, delta, response, timings } = event;
        let part = match &*kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                Part { content: text_of(delta), ..Part::default() }
            }
            "response.reasoning_text.delta" => Part { reasoning: text_of(delta), ..Part::default() },
            "response.reasoning_summary_text.delta" => {
                Part { reasoning: text_of(delta), is_summary: true, ..Part::default() }
            }
            "response.function_call_arguments.delta" => {
                Part { call_bytes: delta.map_or(0, |text| text.len()), ..Part::default() }
            }
            "response.completed" | "response.incomplete" => {
                let part = ending(response.unwrap_or_default())?;
                Part { timings: part.timings.or(timings), ..part }
            }
            "response.failed" => {
                let error = response.and_then(|response| response.error).unwrap_or_else(|| "response.failed".into());
                return Err(refuse_error(Some(&error)).err().unwrap_or_else(|| Wrong::Error(kind.0.into_owned())));
            }
            "error" => return Err(Wrong::Error(super::answer::server_words(data))),
            // All other events are announcements, or repeat text that has already arrived in pieces.
            _ => Part::default(),
        };
        Ok(part)
    }

    fn whole<'a>(&self, data: &'a [u8]) -> Result<Part<'a>, Wrong> {
        let (mut response, text): (Response, _) = read(data)?;
        let Some(output) = response.output.take() else {
            refuse_error(response.error.as_ref())?;
            return Err(Wrong::Malformed(format!("neither output nor error: {text}")));
        };
        let mut part = ending(response)?;
        for Item { kind, content, summary, arguments } in output {
            match &*kind {
                "message" => part.content.to_mut().push_str(&joined(content)),
                "reasoning" => {
                    let thought = joined(content);
                    let thought = if thought.is_empty() { joined(summary) } else { thought };
                    part.reasoning.to_mut().push_str(&thought);
                }
                _ => part.call_bytes += arguments.map_or(0, |arguments| arguments.len()),
            }
        }
        Ok(part)
    }

    fn calls(&self, data: &Value) -> Vec<CallPiece> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let index = data["output_index"].as_u64();
        match data["type"].as_str() {
            Some("response.output_item.added") if data["item"]["type"] == "function_call" => {
                vec![CallPiece { index, name: text(&data["item"]["name"]), arguments: None }]
            }
            Some("response.function_call_arguments.delta") => {
                vec![CallPiece { index, name: None, arguments: text(&data["delta"]) }]
            }
            Some(_) => Vec::new(),
            // A whole response has no event type; its calls are in `output`.
            None => {
                let items = data["output"].as_array().into_iter().flatten();
                let calls = items.filter(|item| item["type"] == "function_call");
                let piece = |call: &Value| CallPiece {
                    index: None,
                    name: text(&call["name"]),
                    arguments: text(&call["arguments"]),
                };
                calls.map(piece).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(json: &str) -> (String, String, bool) {
        let part = Responses.event(json.as_bytes()).unwrap();
        (part.content.into_owned(), part.reasoning.into_owned(), part.is_last)
    }

    #[test]
    fn deltas_are_text_and_what_is_announced_or_repeated_is_none() {
        let delta = r#"{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":" a\n","sequence_number":4}"#;
        assert_eq!(event(delta), (" a\n".into(), String::new(), false));
        let thought = r#"{"type":"response.reasoning_text.delta","delta":"so","sequence_number":5}"#;
        assert_eq!(event(thought), (String::new(), "so".into(), false));
        for silent in [
            r#"{"type":"response.created","response":{"id":"r","status":"in_progress","output":[],"usage":null}}"#,
            r#"{"type":"response.output_text.done","text":" a\n"}"#,
            r#"{"type":"response.content_part.added","part":{"type":"output_text","text":""}}"#,
        ] {
            assert_eq!(event(silent), (String::new(), String::new(), false));
        }
    }

    #[test]
    fn the_last_event_says_why_and_how_much() {
        let last = |kind: &str, rest: &str| {
            let usage = r#""usage":{"input_tokens":7,"input_tokens_details":{"cached_tokens":2},"output_tokens":3,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":10}"#;
            let json = format!(r#"{{"type":"response.{kind}","response":{{{rest},"output":[],{usage}}}}}"#);
            let part = Responses.event(json.as_bytes()).unwrap();
            let usage = part.usage.unwrap();
            assert!(part.is_last);
            assert_eq!((usage.prompt_tokens(), usage.completion_tokens()), (Some(7), Some(3)));
            assert_eq!((usage.cached_tokens(), usage.reasoning_tokens()), (Some(2), Some(1)));
            part.finish_reason.unwrap().into_owned()
        };
        assert_eq!(last("completed", r#""status":"completed","incomplete_details":null"#), "stop");
        let short = r#""status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}"#;
        assert_eq!(last("incomplete", short), "length", "the term of the chat API");
        let filtered = r#""status":"incomplete","incomplete_details":{"reason":"content_filter"}"#;
        assert_eq!(last("incomplete", filtered), "content_filter");
    }

    #[test]
    fn a_failure_is_the_servers() {
        let failed = br#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"out of memory"}}}"#;
        assert_eq!(Responses.event(failed).err(), Some(Wrong::Error("out of memory".into())));
        let error = br#"{"type":"error","code":"x","message":"overloaded"}"#;
        assert_eq!(Responses.event(error).err(), Some(Wrong::Error("overloaded".into())));
        assert!(matches!(Responses.whole(br#"{"foo":1}"#), Err(Wrong::Malformed(_))));
    }

    #[test]
    fn a_whole_response() {
        let json = br#"{"object":"response","status":"completed","error":null,"output":[
            {"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},
            {"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]},
            {"type":"function_call","name":"f","arguments":"{}"}],"usage":{"input_tokens":1,"output_tokens":2}}"#;
        let part = Responses.whole(json).unwrap();
        assert_eq!((&*part.content, &*part.reasoning, part.has_tool_call()), ("ab", "hm", true));
        let calls = Responses.calls(&serde_json::from_slice(json).unwrap());
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0].name.as_deref(), Some("f"));
    }
}
