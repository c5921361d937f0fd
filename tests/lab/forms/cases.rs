//! The streams of `shared/cases`, which are not part of the repository: each with what its author says is
//! true of it.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::{Api, Form, Output, Role, Truth};

/// Returns the file of the cases. It is beside the repository, and may be missing.
fn file() -> PathBuf {
    crate::root().join("../shared/cases/streams/streams.jsonl")
}

/// Returns the cases; empty, with a line on stdout, if the file is missing.
pub fn cases() -> Vec<Form> {
    let file = file();
    let Ok(text) = std::fs::read_to_string(&file) else {
        println!("skipped: {} is missing", file.display());
        return Vec::new();
    };
    text.lines().map(|line| case(&serde_json::from_str(line).unwrap())).collect()
}

/// Reads one case: its events are pairs of a wait in milliseconds and a text.
fn case(case: &Value) -> Form {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut form = Form::of(Api::Chat, format!("case_{}", text(&case["name"])));
    form.fields = vec![format!("content-type: {}", text(&case["content_type"]))];
    for event in case["events"].as_array().unwrap() {
        let (wait, text) = (Duration::from_millis(event[0].as_u64().unwrap()), text(&event[1]));
        let role = role(&text);
        form = form.piece(wait, text, role);
    }
    form.truth = truth(&case["truth"], form.text_events());
    form
}

/// What an event is to a user.
fn role(event: &str) -> Role {
    if event.contains("[DONE]") {
        return Role::Done;
    }
    let data = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or("null");
    let chunk: Value = serde_json::from_str(data).unwrap();
    let is_text = match &chunk["choices"][0]["delta"]["content"] {
        Value::String(text) => !text.is_empty(),
        Value::Array(parts) => !parts.is_empty(),
        _ => false,
    };
    if is_text { Role::Output } else { Role::Other }
}

/// Reads the truth of a case. Whatever it does not state is not checked. The times that it states are those
/// of its events, which the server's log states more exactly.
fn truth(stated: &Value, events: u32) -> Truth {
    let number = |name: &str| stated[name].as_u64().map(|number| number as u32);
    // Names of outcomes and reasons live as long as the test.
    let name = |name: &str| stated[name].as_str().map(|name| &*name.to_owned().leak());
    let is_null = stated.get("tokens").is_some_and(Value::is_null);
    Truth {
        outcomes: name("outcome").into_iter().collect(),
        output: match number("tokens") {
            Some(tokens) => Output::Exactly(tokens),
            None if is_null => Output::Null,
            None => Output::Any,
        },
        unknown: name("reason").into_iter().collect(),
        streamed: number("streamed_tokens"),
        has_known_text: false,
        has_known_events: number("output_events").is_some_and(|stated| {
            assert_eq!(stated, events, "the events that are text");
            true
        }),
        ..Truth::default()
    }
}
