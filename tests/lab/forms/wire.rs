//! Events of chat completions, as they are written to the wire.

use serde_json::{Value, json};

/// Returns an event with this data.
pub(super) fn data(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// Returns an event with a name.
pub(super) fn named(name: &str, json: &Value) -> String {
    format!("event: {name}\n{}", data(json))
}

/// Returns a chunk with these choices.
pub(super) fn chunk(choices: Value) -> Value {
    json!({ "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices })
}

/// Returns a chunk with this choice.
pub(super) fn choice(choice: Value) -> Value {
    chunk(json!([choice]))
}

/// Returns a chunk with this delta.
pub(super) fn delta(delta: Value) -> Value {
    choice(json!({ "index": 0, "delta": delta, "finish_reason": null }))
}

/// Returns a chunk with a further field beside its choices.
pub(super) fn beside(mut chunk: Value, name: &str, field: Value) -> Value {
    chunk[name] = field;
    chunk
}

/// Returns an event with text.
pub(super) fn token(text: &str) -> String {
    data(&delta(json!({ "content": text })))
}

/// Returns an event with reasoning.
pub(super) fn thought(text: &str) -> String {
    data(&delta(json!({ "reasoning_content": text })))
}

/// Returns an event with a finish reason and an empty delta.
pub(super) fn finish(reason: &Value) -> String {
    data(&choice(json!({ "index": 0, "delta": {}, "finish_reason": reason })))
}

/// Returns an event with a usage and no choices.
pub(super) fn usage(usage: &Value) -> String {
    data(&beside(chunk(json!([])), "usage", usage.clone()))
}

/// Returns the usage of the chat API.
pub(super) fn counts(prompt: u32, completion: u32) -> Value {
    json!({ "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion })
}

/// Returns a whole response of the chat API.
pub(super) fn completion(message: Value) -> Value {
    json!({
        "id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }],
        "usage": counts(30, 10),
    })
}
