//! How a stream ends: `[DONE]`, a finish reason, or usage in an event without choices after which no text
//! follows. Every other end is a broken connection, however politely it was closed.

use serde_json::{Value, json};

use super::wire::{beside, choice, chunk, counts, data, delta, token, usage};
use super::{Ending, Form, WORDS};

/// The words after which the server breaks off.
const FOUR: [&str; 4] = [WORDS[0], WORDS[1], WORDS[2], WORDS[3]];

pub(super) fn forms() -> Vec<Form> {
    let empty_finish = |word: &str| with_finish(word, "".into());
    let prompt_only = usage(&counts(30, 0));
    let half = usage(&counts(30, 4));
    vec![
        Form::chat("one_word").sends(token("")).says("Yes.", token("Yes.")).finish("stop").usage(2).done(),
        Form::chat("plain").words().ends().unread(0),
        // Usage in each chunk.
        usage_in_each("usage_in_each_then_cut", &FOUR).outcome("reset"),
        usage_in_each("usage_in_each_then_finish", &WORDS).finish("stop").counted(10, "usage"),
        usage_in_each("usage_in_each_then_done", &WORDS).done().finish_is(None).counted(10, "usage"),
        usage_in_each("usage_in_each_then_usage", &WORDS).usage(10).finish_is(None),
        Form::chat("usage_with_the_last_word_then_cut")
            .tokens(&FOUR[..3])
            .says(FOUR[3], data(&beside(delta(json!({ "content": FOUR[3] })), "usage", counts(30, 4))))
            .outcome("reset"),
        // Finish reasons that are empty.
        Form::chat("empty_finish_then_cut").each(&FOUR, empty_finish).outcome("reset"),
        Form::chat("empty_finish_then_stop").each(&WORDS, empty_finish).finish("stop"),
        Form::chat("empty_finish_then_done").each(&WORDS, empty_finish).done().finish_is(None),
        Form::chat("empty_finish_alone_then_cut").tokens(&FOUR).finish("").outcome("reset").finish_is(None),
        Form::chat("empty_finish_and_usage_in_each_then_cut")
            .each(&FOUR, |word| {
                let choice = json!({ "index": 0, "delta": { "content": word }, "finish_reason": "" });
                data(&beside(chunk(json!([choice])), "usage", counts(30, 4)))
            })
            .outcome("reset"),
        Form::chat("no_finish_then_done").words().done().finish_is(None),
        Form::chat("finish_without_done").words().finish("length"),
        Form::chat("finish_with_the_last_word")
            .tokens(&WORDS[..9])
            .says(WORDS[9], with_finish(WORDS[9], "stop".into()))
            .finish_is(Some("stop")),
        Form::chat("finish_then_keys_of_nothing").words().finish("stop").sends(data(&choice(json!({})))).done(),
        // Usage in an event without choices.
        Form::chat("usage_ends_it").words().usage(10).finish_is(None),
        Form::chat("usage_without_the_key_choices_ends_it")
            .words()
            .sends(data(&json!({ "id": "c", "usage": counts(30, 10) })))
            .counted(10, "usage"),
        Form::chat("usage_with_null_choices_ends_it")
            .words()
            .sends(data(&json!({ "id": "c", "choices": null, "usage": counts(30, 10) })))
            .counted(10, "usage"),
        Form::chat("usage_then_text_then_cut").tokens(&FOUR).sends(half.clone()).tokens(&WORDS[4..6]).outcome("reset"),
        Form::chat("usage_in_the_middle").tokens(&FOUR).sends(half).tokens(&WORDS[4..]).usage(10).done(),
        Form::chat("usage_of_the_prompt_then_cut").sends(prompt_only.clone()).tokens(&FOUR).outcome("reset"),
        Form::chat("usage_of_the_prompt_first").sends(prompt_only).words().ends(),
        Form::chat("null_usage_then_cut").tokens(&FOUR).sends(usage(&Value::Null)).outcome("reset"),
        // Connections that are closed politely.
        Form::chat("cut").tokens(&FOUR).outcome("reset"),
        Form::chat("cut_after_the_last_chunk").tokens(&FOUR).in_chunks().outcome("reset"),
        Form::chat("cut_within_chunks").tokens(&FOUR).in_chunks().ending(Ending::Cut).outcome("reset"),
        Form::chat("cut_after_comments").tokens(&FOUR).sends(": ping\n\n").sends(": bye\n\n").outcome("reset"),
        Form::chat("cut_after_the_role")
            .sends(data(&delta(json!({ "role": "assistant", "content": "" }))))
            .outcome("reset"),
        Form::chat("cut_after_a_named_end").tokens(&FOUR).sends("event: end\ndata: {}\n\n").outcome("reset"),
        Form::chat("complete_in_chunks").words().ends().in_chunks(),
        Form::chat("done_before_the_last_chunk").words().ends().in_chunks().ending(Ending::Cut),
        // Spellings of the end.
        Form::chat("done_without_a_space").words().sends("data:[DONE]\n\n"),
        Form::chat("done_without_a_blank_line").words().sends("data: [DONE]"),
        Form::chat("done_in_a_named_event").words().sends("event: done\ndata: [DONE]\n\n"),
        Form::chat("done_twice").words().ends().sends("data: [DONE]\n\n"),
    ]
}

/// A stream with a usage in each chunk, as vLLM sends it with `continuous_usage_stats`.
fn usage_in_each(name: &str, words: &[&str]) -> Form {
    let events = words.iter().zip(1..);
    events.fold(Form::chat(name), |form, (word, tokens)| {
        let chunk = delta(json!({ "content": word }));
        form.says(word, data(&beside(chunk, "usage", counts(30, tokens))))
    })
}

/// An event with text and a finish reason.
fn with_finish(word: &str, reason: Value) -> String {
    data(&choice(json!({ "index": 0, "delta": { "content": word }, "finish_reason": reason })))
}
