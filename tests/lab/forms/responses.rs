//! Forms of the Responses API.

use serde_json::{Value, json};

use super::wire::data;
use super::{Api, Form, Output, Role, WORDS};

/// Reasoning that the server summarizes.
const SUMMARY: [&str; 2] = ["I compare", " the two."];

pub(super) fn forms() -> Vec<Form> {
    let form = |name: &str| Form::of(Api::Responses, name).sends(event(json!({ "type": "response.created" })));
    let words = |name: &str| form(name).each(&WORDS, word);
    let four = |name: &str| form(name).each(&WORDS[..4], word);
    let hidden = json!({
        "input_tokens": 30, "output_tokens": 64, "total_tokens": 94,
        "output_tokens_details": { "reasoning_tokens": 54 },
    });
    let summed = SUMMARY.iter().fold(form("hidden_reasoning_under_a_summary"), |form, text| {
        form.thinks(text, piece("response.reasoning_summary_text.delta", text))
    });
    let incomplete = |reason: &str| {
        json!({
            "type": "response.incomplete",
            "response": { "status": "incomplete", "incomplete_details": { "reason": reason }, "usage": counts() },
        })
    };
    let message = json!({ "type": "message", "content": [{ "type": "output_text", "text": "Yes." }] });
    let whole = json!({ "object": "response", "status": "completed", "output": [message], "usage": counts() });
    let whole = whole.to_string();
    let failed = json!({ "type": "response.failed", "response": { "error": { "message": "the worker died" } } });
    vec![
        words("plain").over(completed(&counts())).finish_is(Some("stop")).counted(10, "usage"),
        four("cut").outcome("reset"),
        four("cut_after_the_text_was_done")
            .sends(event(json!({ "type": "response.output_text.done", "text": WORDS[..4].concat() })))
            .outcome("reset"),
        words("done_behind_the_end").over(completed(&counts())).sends("data: [DONE]\n\n").counted(10, "usage"),
        words("held").over(completed(&counts())).waits(600).counted(10, "usage"),
        words("incomplete").over(incomplete("max_output_tokens")).finish_is(Some("length")).counted(10, "usage"),
        words("filtered").over(incomplete("content_filter")).finish_is(Some("content_filter")).counted(10, "usage"),
        four("failed").over(failed).outcome("stream_error").told(&["the worker died"]),
        four("error")
            .sends(event(json!({ "type": "error", "message": "out of memory" })))
            .outcome("stream_error")
            .told(&["out of memory"]),
        words("without_usage").over(completed(&Value::Null)),
        words("hidden_reasoning").over(completed(&hidden)).streamed(Output::Exactly(64), 10),
        summed
            .each(&WORDS, word)
            .over(completed(&hidden))
            .per_token_unknown(Output::Exactly(64), &["hidden_reasoning"]),
        form("five_tokens_an_event")
            .each(&[" one two three four five"; 5], word)
            .over(completed(&Value::Null))
            .unknown("tokens_by_events"),
        form("refusal")
            .each(&WORDS, |text| piece("response.refusal.delta", text))
            .over(completed(&counts()))
            .counted(10, "usage"),
        words("events_of_unknown_shapes")
            .sends(event(json!({ "type": "response.rate_limits", "delta": 3 })))
            .sends(data(&json!({})))
            .sends(data(&json!([1])))
            .over(completed(&counts()))
            .counted(10, "usage"),
        Form::whole(Api::Responses, "whole_json", "application/json", whole).outcome("not_streamed").any_events(),
    ]
}

impl Form {
    /// Appends the last event of the protocol.
    fn over(self, last: Value) -> Form {
        self.piece(std::time::Duration::ZERO, event(last), Role::Done)
    }
}

/// The usual counts: 30 tokens and 10.
fn counts() -> Value {
    json!({ "input_tokens": 30, "output_tokens": 10, "total_tokens": 40 })
}

/// The last event of a response that is complete.
fn completed(usage: &Value) -> Value {
    json!({ "type": "response.completed", "response": { "id": "r", "status": "completed", "usage": usage } })
}

/// An event, which is named by its type.
fn event(json: Value) -> String {
    format!("event: {}\n{}", json["type"].as_str().unwrap(), data(&json))
}

/// A piece of text.
fn piece(kind: &str, text: &str) -> String {
    event(json!({ "type": kind, "item_id": "i", "output_index": 0, "content_index": 0, "delta": text }))
}

/// A piece of the response's text.
fn word(text: &str) -> String {
    piece("response.output_text.delta", text)
}
