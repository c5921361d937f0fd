//! Responses with status 200 that are no stream of events: the error says what came.

use serde_json::json;

use super::wire::{completion, delta};
use super::{Api, Form, WORDS};

const JSON: &str = "application/json";

pub(super) fn forms() -> Vec<Form> {
    let text = WORDS.concat();
    let whole = completion(json!({ "role": "assistant", "content": text }));
    let not_streamed = |name: &str, content_type: &str, body: String| {
        whole_body(name, content_type, body).outcome("not_streamed").any_events()
    };
    let call = json!({ "id": "t", "type": "function", "function": { "name": "weather", "arguments": "{}" } });
    let called = completion(json!({ "role": "assistant", "content": null, "tool_calls": [call] }));
    let thought = completion(json!({ "role": "assistant", "content": null, "reasoning_content": text }));
    let overloaded = json!({ "error": { "message": "the model is overloaded", "type": "server_error" } });
    let own_object = json!({ "object": "error", "message": "the model is overloaded", "code": 503 });
    let html = "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>\n";
    let lines: String = WORDS.iter().map(|word| format!("{}\n", delta(json!({ "content": word })))).collect();
    let ollama: String = WORDS.iter().map(|word| format!("{}\n", json!({ "response": word, "done": false }))).collect();
    let mut zipped = whole_body("gzip", "text/event-stream", GZIP);
    zipped.fields.push("content-encoding: gzip".to_owned());
    vec![
        not_streamed("whole_json", JSON, whole.to_string()).told(&[JSON]),
        not_streamed("whole_json_with_a_charset", "application/json; charset=utf-8", whole.to_string()),
        not_streamed("whole_json_on_many_lines", JSON, serde_json::to_string_pretty(&whole).unwrap()),
        not_streamed("whole_json_in_chunks", JSON, whole.to_string()).in_chunks(),
        not_streamed("whole_json_as_an_event_stream", "text/event-stream", whole.to_string()),
        not_streamed("whole_tool_call", JSON, called.to_string()),
        not_streamed("whole_reasoning", JSON, thought.to_string()),
        whole_body("json_error", JSON, overloaded.to_string())
            .outcome("stream_error")
            .told(&["the model is overloaded"]),
        whole_body("json_error_as_an_event_stream", "text/event-stream", overloaded.to_string())
            .outcome("stream_error")
            .told(&["the model is overloaded"]),
        whole_body("json_error_as_an_object_of_its_own", JSON, own_object.to_string())
            .outcome("stream_error")
            .told(&["the model is overloaded"]),
        whole_body("json_detail", JSON, json!({ "detail": "not allowed for this model" }).to_string())
            .one_of(&["malformed", "stream_error"])
            .told(&["not allowed for this model"]),
        whole_body("json_of_something_else", JSON, json!({ "status": "ok", "queue": 3 }).to_string())
            .outcome("malformed")
            .told(&[JSON, "queue"]),
        whole_body("html", "text/html", html).outcome("malformed").told(&["text/html", "502 Bad Gateway"]),
        whole_body("html_as_an_event_stream", "text/event-stream", html)
            .outcome("malformed")
            .told(&["502 Bad Gateway"]),
        whole_body("plain_text", "text/plain", "upstream connect error or disconnect/reset before headers")
            .outcome("malformed")
            .told(&["text/plain", "upstream connect error"]),
        whole_body("ndjson", "application/x-ndjson", lines)
            .one_of(&["malformed", "not_streamed"])
            .told(&["application/x-ndjson"]),
        whole_body("ndjson_of_another_api", "application/x-ndjson", ollama)
            .one_of(&["malformed", "not_streamed"])
            .told(&["application/x-ndjson"]),
        zipped.outcome("malformed").told(&["gzip"]),
        whole_body("gzip_without_a_field", "text/event-stream", GZIP).outcome("malformed"),
        whole_body("no_body", JSON, "").outcome("empty"),
    ]
}

/// A body of chat completions that is written at once.
fn whole_body(name: &str, content_type: &str, body: impl Into<Vec<u8>>) -> Form {
    Form::whole(Api::Chat, name, content_type, body)
}

/// A stream of one event, `[DONE]`, compressed.
#[rustfmt::skip]
const GZIP: [u8; 34] = [
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x4b, 0x49, 0x2c, 0x49, 0xb4, 0x52, 0x88,
    0x76, 0xf1, 0xf7, 0x73, 0x8d, 0xe5, 0xe2, 0x02, 0x00, 0x1c, 0xed, 0xc8, 0xaf, 0x0e, 0x00, 0x00, 0x00,
];
