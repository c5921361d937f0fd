//! Messages (Anthropic API reference, "Messages" and "Streaming messages"), also implemented by vLLM, SGLang
//! and llama.cpp.
//!
//! A stream consists of named events. A response is a list of content blocks (text, thinking, tool calls), each
//! of which is announced, sent in deltas, and closed. The counts of the prompt come in the first event, those of
//! the output in the last but one; only `message_stop` marks the end.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use super::answer::{CallPiece, Part, Text, Wrong, read, read_event, refuse_error, text_of};
use super::contract::{Framing, Protocol};
use super::headers::KeyHeader;
use super::request::{Object, Request};
use super::usage::Usage;

/// The Messages protocol.
#[derive(Debug)]
pub(super) struct Messages;

/// The measured fields of one event of a stream.
#[derive(Debug, Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    /// The start of the message, in the first event.
    #[serde(borrow, default)]
    message: Option<Message<'a>>,
    /// The announced content block.
    #[serde(borrow, default)]
    content_block: Option<Block<'a>>,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    usage: Option<Value>,
    error: Option<Value>,
}

/// A part of a content block, or the end of the message.
#[derive(Debug, Default, Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    thinking: Option<Text<'a>>,
    #[serde(borrow, default)]
    partial_json: Option<Text<'a>>,
    #[serde(borrow, default)]
    stop_reason: Option<Text<'a>>,
}

/// A message. Without streaming, it is the whole body; in a stream, the first event contains it without content.
#[derive(Debug, Default, Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    content: Option<Vec<Block<'a>>>,
    #[serde(borrow, default)]
    stop_reason: Option<Text<'a>>,
    usage: Option<Value>,
    error: Option<Value>,
}

/// A content block: text, thinking, or a tool call.
#[derive(Debug, Default, Deserialize)]
struct Block<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    thinking: Option<Text<'a>>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    input: Option<Value>,
}

impl Block<'_> {
    /// Returns the length of the tool's name if the block is a call, whoever executes it (`tool_use`,
    /// `server_tool_use`, …), and otherwise 0.
    fn name_bytes(&self) -> usize {
        let is_call = self.kind.as_deref().is_some_and(is_call);
        self.name.as_ref().filter(|_| is_call).map_or(0, |name| name.len())
    }
}

fn is_call(kind: &str) -> bool {
    kind.ends_with("tool_use")
}

/// Translates a stop reason to the term of the chat API, so that runs with either API are judged alike. Reasons
/// without such a term keep their names.
fn finish_reason(reason: Text<'_>) -> Cow<'_, str> {
    match &*reason {
        "end_turn" | "stop_sequence" => Cow::Borrowed("stop"),
        "max_tokens" => Cow::Borrowed("length"),
        "tool_use" => Cow::Borrowed("tool_calls"),
        "refusal" => Cow::Borrowed("content_filter"),
        _ => reason.0,
    }
}

/// Returns the number in a field of a usage, which some servers write as a text.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

/// Returns the counts of a prompt and of the output, if `with_output` is set. Tokens of the prompt that were read
/// from the cache or written to it are counted apart from the others.
fn counts(usage: &Value, with_output: bool) -> Usage {
    let count = |name: &str| number(&usage[name]);
    let (read, written) = (count("cache_read_input_tokens"), count("cache_creation_input_tokens"));
    let prompt = count("input_tokens").map(|input| input + read.unwrap_or(0.0) + written.unwrap_or(0.0));
    // A server that does not know the number yet sends 0.
    let prompt = prompt.filter(|prompt| *prompt != 0.0);
    let cached = read.filter(|_| prompt.is_some());
    Usage::of_counts(prompt, cached, count("output_tokens").filter(|_| with_output))
}

/// Returns the error that a server reports in a stream.
fn failure(error: Option<Value>) -> Wrong {
    match refuse_error(error.as_ref()) {
        Err(wrong) => wrong,
        Ok(()) => Wrong::Error("an error event without a message".to_owned()),
    }
}

impl Protocol for Messages {
    fn path(&self) -> &'static str {
        "/messages"
    }

    fn framing(&self) -> Framing {
        Framing::Chat
    }

    fn prompt_fields(&self) -> &'static [&'static str] {
        &["system", "messages"]
    }

    fn answer_field(&self) -> &'static str {
        "content"
    }

    fn key_header(&self) -> KeyHeader {
        KeyHeader::X_API_KEY
    }

    fn version_header(&self) -> Option<(&'static str, &'static str)> {
        Some(("anthropic-version", "2023-06-01"))
    }

    /// Anthropic's servers reject these parameters, and other servers ignore them.
    fn lacks(&self) -> &'static [&'static str] {
        &["presence_penalty", "frequency_penalty", "ignore_eos"]
    }

    /// The fields of Anthropic's reference, and those that vLLM adds (`vllm/entrypoints/anthropic/protocol.py`).
    fn extra_fields(&self) -> Option<&'static [&'static str]> {
        Some(&[
            "top_k",
            "tools",
            "tool_choice",
            "thinking",
            "metadata",
            "output_config",
            "service_tier",
            "cache_control",
            "container",
            "context_management",
            "inference_geo",
            "mcp_servers",
            "chat_template_kwargs",
            "kv_transfer_params",
        ])
    }

    fn stop_field(&self) -> &'static str {
        "stop_sequences"
    }

    /// The system text is a field of its own, not a message.
    fn body(&self, request: &Request, body: &mut Object) {
        let mut messages = request.said.messages();
        body.put("model", request.model);
        if request.said.system.is_some() {
            body.put("system", &messages.remove(0).content);
        }
        body.put("messages", &messages);
        body.put("max_tokens", &request.output_tokens);
        body.put_all(request.sampling);
        body.put("stream", &request.stream);
        if !request.stop.is_empty() {
            body.put(self.stop_field(), request.stop);
        }
        body.put_all(request.extra);
    }

    fn takes_event(&self, name: &[u8]) -> bool {
        let is_block = name.starts_with(b"content_block_");
        name.is_empty() || name == b"message" || name.starts_with(b"message_") || is_block
    }

    fn event<'a>(&self, data: &'a [u8]) -> Result<Part<'a>, Wrong> {
        let Some(event) = read_event(data)? else { return Ok(Part::unread()) };
        let Event { kind, message, content_block, delta, usage, error } = event;
        let part = match &*kind {
            "message_start" => {
                // The output has not begun, so its count is not final.
                let usage = message.and_then(|message| message.usage).map(|usage| counts(&usage, false));
                Part { usage, ..Part::default() }
            }
            "content_block_start" => {
                let block = content_block.unwrap_or_default();
                // The name of a tool is the first output of its call.
                let call_bytes = block.name_bytes();
                let (content, reasoning) = (text_of(block.text), text_of(block.thinking));
                Part { content, reasoning, call_bytes, ..Part::default() }
            }
            "content_block_delta" => {
                let Delta { text, thinking, partial_json, .. } = delta.unwrap_or_default();
                let call_bytes = partial_json.map_or(0, |piece| piece.len());
                Part { content: text_of(text), reasoning: text_of(thinking), call_bytes, ..Part::default() }
            }
            "message_delta" => {
                let finish_reason = delta.and_then(|delta| delta.stop_reason).map(finish_reason);
                Part { finish_reason, usage: usage.map(|usage| counts(&usage, true)), ..Part::default() }
            }
            "message_stop" => Part { is_last: true, ..Part::default() },
            "error" => return Err(failure(error)),
            _ => Part::default(),
        };
        Ok(part)
    }

    fn whole<'a>(&self, data: &'a [u8]) -> Result<Part<'a>, Wrong> {
        let (Message { content, stop_reason, usage, error }, text) = read(data)?;
        refuse_error(error.as_ref())?;
        let Some(blocks) = content else {
            return Err(Wrong::Malformed(format!("neither content nor error: {text}")));
        };
        let input_bytes = |block: &Block| block.input.as_ref().map_or(0, |input| input.to_string().len());
        let call_bytes = blocks.iter().map(|block| block.name_bytes() + input_bytes(block)).sum();
        let mut said = [String::new(), String::new()];
        for Block { text, thinking, .. } in blocks {
            said[0].push_str(&text_of(text));
            said[1].push_str(&text_of(thinking));
        }
        let [content, reasoning] = said.map(Cow::Owned);
        let usage = usage.map(|usage| counts(&usage, true));
        let finish_reason = stop_reason.map(finish_reason);
        Ok(Part { content, reasoning, call_bytes, usage, finish_reason, is_last: true, ..Part::default() })
    }

    fn end_event(&self) -> Option<&'static str> {
        Some("message_stop")
    }

    fn usage(&self, usage: &Value) -> Usage {
        counts(usage, true)
    }

    /// In a stream, the block that is announced has the name, and deltas have the arguments. In a whole response,
    /// the arguments are an object.
    fn calls(&self, data: &Value) -> Vec<CallPiece> {
        let name = |block: &Value| block["name"].as_str().map(str::to_owned);
        let is_call = |block: &&Value| block["type"].as_str().is_some_and(is_call);
        if let Some(blocks) = data["content"].as_array() {
            let piece = |block: &Value| CallPiece {
                index: None,
                name: name(block),
                arguments: Some(block["input"].to_string()),
            };
            return blocks.iter().filter(is_call).map(piece).collect();
        }
        let announced = Some(&data["content_block"]).filter(is_call);
        let arguments = data["delta"]["partial_json"].as_str().map(str::to_owned);
        if announced.is_none() && arguments.is_none() {
            return Vec::new();
        }
        vec![CallPiece { index: data["index"].as_u64(), name: announced.and_then(name), arguments }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(json: &str) -> Part<'_> {
        Messages.event(json.as_bytes()).unwrap()
    }

    fn counts_of(usage: Option<Usage>) -> [Option<u32>; 3] {
        let usage = usage.unwrap();
        assert_eq!(usage.no_count(), None);
        [usage.prompt_tokens(), usage.cached_tokens(), usage.completion_tokens()]
    }

    /// Returns the body of a request as text.
    fn body(request: &Request) -> String {
        let mut body = Object::with_capacity(64);
        Messages.body(request, &mut body);
        String::from_utf8(body.end()).unwrap()
    }

    #[test]
    fn text_and_thinking_are_in_deltas_and_announcements_have_none() {
        let text = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" a\n"}}"#;
        assert_eq!((&*part(text).content, &*part(text).reasoning), (" a\n", ""));
        assert!(part(text).only_text().is_some(), "later events are read without parsing them");
        let thought = r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"so"}}"#;
        assert_eq!((&*part(thought).content, &*part(thought).reasoning), ("", "so"));
        for silent in [
            r#"{"type":"ping"}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQBCgIYAhIM"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":null}}"#,
            r#"{"type":"something_new","delta":{"text":null}}"#,
        ] {
            let part = part(silent);
            assert!(part.content.is_empty() && part.reasoning.is_empty() && !part.has_tool_call(), "{silent}");
            assert!(part.usage.is_none() && part.finish_reason.is_none() && !part.is_last, "{silent}");
        }
        assert!(part(r#"{"type":"message_stop"}"#).is_last);
    }

    #[test]
    fn the_counts_come_in_two_events() {
        let start = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":10,"cache_read_input_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":10},"output_tokens":1,"service_tier":"standard"}}}"#;
        assert_eq!(counts_of(part(start).usage), [Some(135), Some(100), None]);
        let end = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15}}"#;
        assert_eq!(counts_of(part(end).usage), [None, None, Some(15)]);
        assert_eq!(part(end).finish_reason.as_deref(), Some("stop"));
        assert!(!part(end).is_last, "only message_stop is the end");
        // vLLM without --enable-prompt-tokens-details: no counts of the cache.
        let vllm = r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"input_tokens":33,"output_tokens":16}}"#;
        assert_eq!(counts_of(part(vllm).usage), [Some(33), None, Some(16)]);
        let unknown = r#"{"type":"message_start","message":{"usage":{"input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}}"#;
        assert_eq!(counts_of(part(unknown).usage), [None, None, None]);
        assert_eq!(
            counts_of(Some(Messages.usage(&serde_json::json!({ "input_tokens": "7", "output_tokens": 2 })))),
            [Some(7), None, Some(2)]
        );
        let impossible = Messages.usage(&serde_json::json!({ "input_tokens": -7, "output_tokens": 2 }));
        assert!(impossible.no_count().is_some());
    }

    #[test]
    fn stop_reasons_have_the_terms_of_the_chat_api() {
        for (told, read) in [
            ("end_turn", "stop"),
            ("stop_sequence", "stop"),
            ("max_tokens", "length"),
            ("tool_use", "tool_calls"),
            ("refusal", "content_filter"),
            ("pause_turn", "pause_turn"),
            ("model_context_window_exceeded", "model_context_window_exceeded"),
        ] {
            let json = format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{told}"}}}}"#);
            assert_eq!(part(&json).finish_reason.as_deref(), Some(read));
        }
    }

    #[test]
    fn a_tool_call_begins_with_its_name() {
        let events = [
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{}}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":""}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"location\":"}}"#,
            r#"{"type":"content_block_stop","index":1}"#,
        ];
        assert_eq!(events.map(|event| part(event).has_tool_call()), [true, false, true, false]);
        let pieces = |event: &str| Messages.calls(&serde_json::from_str(event).unwrap());
        let (named, piece) = (&pieces(events[0])[0], &pieces(events[2])[0]);
        assert_eq!((named.index, named.name.as_deref(), &named.arguments), (Some(1), Some("get_weather"), &None));
        assert_eq!((piece.index, &piece.name, piece.arguments.as_deref()), (Some(1), &None, Some(r#"{"location":"#)));
        assert!(pieces(events[3]).is_empty());
    }

    #[test]
    fn a_failure_is_the_servers() {
        let error = br#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        assert_eq!(Messages.event(error).err(), Some(Wrong::Error("Overloaded".into())));
        assert_eq!(Messages.whole(error).err(), Some(Wrong::Error("Overloaded".into())));
        assert!(matches!(Messages.event(br#"{"type":"error"}"#), Err(Wrong::Error(_))));
        assert!(matches!(Messages.whole(br#"{"id":"m"}"#), Err(Wrong::Malformed(_))));
        assert!(matches!(Messages.event(b"{"), Err(Wrong::Malformed(_))));
    }

    #[test]
    fn a_whole_response() {
        let json = br#"{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[
            {"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"a"},{"type":"text","text":"b"},
            {"type":"tool_use","id":"toolu_1","name":"f","input":{"x":1}}],"stop_reason":"tool_use","stop_sequence":null,
            "usage":{"input_tokens":2,"cache_read_input_tokens":5,"output_tokens":9}}"#;
        let part = Messages.whole(json).unwrap();
        assert_eq!((&*part.content, &*part.reasoning, part.has_tool_call()), ("ab", "hm", true));
        assert_eq!(part.finish_reason.as_deref(), Some("tool_calls"));
        assert_eq!(counts_of(part.usage), [Some(7), Some(5), Some(9)]);
        let calls = Messages.calls(&serde_json::from_slice(json).unwrap());
        let wanted = CallPiece { index: None, name: Some("f".into()), arguments: Some(r#"{"x":1}"#.into()) };
        assert_eq!(calls, [wanted]);
    }

    #[test]
    fn a_request_says_the_system_text_apart() {
        let mut request = Request::plain("m", "hi", 5);
        assert_eq!(
            body(&request),
            r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":5,"stream":false}"#
        );
        request.said.system = Some("[ref 1 2] be brief");
        request.said.own_nonce = Some("[ref 3 4] ");
        request.said.history = vec![("a", "b")];
        (request.stream, request.ignore_eos, request.length_field) = (true, true, "max_completion_tokens");
        let stop = ["###".to_owned()];
        request.stop = &stop;
        assert_eq!(
            body(&request),
            concat!(
                r#"{"model":"m","system":"[ref 3 4] be brief","messages":[{"role":"user","content":"a"},"#,
                r#"{"role":"assistant","content":"b"},{"role":"user","content":"hi"}],"max_tokens":5,"stream":true,"#,
                r####""stop_sequences":["###"]}"####
            )
        );
    }
}
