//! Forms of text completions.

use serde_json::{Value, json};

use super::wire::{beside, counts, data};
use super::{Api, Form, WORDS};

pub(super) fn forms() -> Vec<Form> {
    let form = |name: &str| Form::of(Api::Completions, name);
    let text = |word: &str| chunk(word, Value::Null);
    let token = |word: &str| data(&text(word));
    let end = |reason: &'static str| data(&chunk("", reason.into()));
    let used = data(&beside(json!({ "id": "c", "object": "text_completion", "choices": [] }), "usage", counts(30, 10)));
    let usage_in_each = |name: &str, words: &[&str]| {
        let tokens = words.iter().zip(1..);
        tokens.fold(form(name), |form, (word, tokens)| {
            form.says(word, data(&beside(text(word), "usage", counts(30, tokens))))
        })
    };
    let whole = json!({ "object": "text_completion", "choices": [{ "text": "Yes." }] }).to_string();
    vec![
        form("plain")
            .each(&WORDS, token)
            .sends(end("length"))
            .sends(used.clone())
            .done()
            .finish_is(Some("length"))
            .counted(10, "usage"),
        usage_in_each("usage_in_each_then_cut", &WORDS[..4]).outcome("reset"),
        usage_in_each("usage_in_each_then_finish", &WORDS).sends(end("length")).counted(10, "usage"),
        form("empty_finish_then_cut").each(&WORDS[..4], |word| data(&chunk(word, "".into()))).outcome("reset"),
        form("usage_ends_it").each(&WORDS, token).sends(used).counted(10, "usage"),
        form("abort").each(&WORDS[..4], token).sends(end("abort")).done().outcome("aborted").finish_is(Some("abort")),
        form("five_tokens_an_event")
            .each(&[" one two three four five"; 5], token)
            .sends(end("stop"))
            .done()
            .unknown("tokens_by_events"),
        form("timings")
            .each(&WORDS, token)
            .sends(data(&beside(chunk("", "stop".into()), "timings", json!({ "prompt_n": 30, "predicted_n": 10 }))))
            .done()
            .counted(10, "timings"),
        form("text_is_null")
            .sends(data(&json!({ "choices": [{ "index": 0, "text": null }] })))
            .each(&WORDS, token)
            .done(),
        Form::whole(Api::Completions, "whole_json", "application/json", whole).outcome("not_streamed").any_events(),
    ]
}

/// A chunk with text.
fn chunk(word: &str, reason: Value) -> Value {
    let choice = json!({ "index": 0, "text": word, "logprobs": null, "finish_reason": reason });
    json!({ "id": "c", "object": "text_completion", "created": 1, "model": "m", "choices": [choice] })
}
