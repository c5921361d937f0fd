//! Finish reasons: those of a response that ended, of one that was filtered, and of one that the server gave
//! up, which is no response.

use serde_json::{Value, json};

use super::wire::{beside, choice, data, finish};
use super::{Form, WORDS};

/// Reasons of servers that gave up.
const GAVE_UP: [&str; 3] = ["abort", "error", "insufficient_system_resource"];
/// Reasons of responses that ended, by servers of all kinds.
const ENDED: [&str; 10] = [
    "stop",
    "length",
    "eos",
    "eos_token",
    "stop_sequence",
    "max_tokens",
    "tool_calls",
    "function_call",
    "end_turn",
    "content_filter",
];
/// A reason that no server has given so far.
pub(super) const NEW: &str = "moon_in_the_way";

pub(super) fn forms() -> Vec<Form> {
    let mut forms = Vec::new();
    for reason in GAVE_UP {
        let named = |end: &str| Form::chat(format!("{reason}{end}"));
        let four = |end: &str| named(end).tokens(&WORDS[..4]).finish(reason).outcome("aborted");
        forms.push(four("").told(&[reason]));
        forms.push(four("_then_done").done());
        forms.push(four("_then_usage_and_done").usage(4).done());
        forms.push(named("_without_text").finish(reason).outcome("aborted"));
        forms.push(named("_without_text_then_done").finish(reason).done().outcome("aborted"));
        let last = choice(json!({ "index": 0, "delta": { "content": WORDS[1] }, "finish_reason": reason }));
        let with_text = named("_with_text").tokens(&WORDS[..1]).says(WORDS[1], data(&last)).done();
        forms.push(with_text.outcome("aborted").finish_is(Some(reason)));
    }
    for reason in ENDED {
        forms.push(Form::chat(format!("ended_by_{reason}")).words().finish(reason).usage(10).done());
    }
    let object = |name: &str, reason: Value| Form::chat(name).words().sends(finish(&reason));
    let error = json!({ "message": "the provider went away", "code": 502 });
    let error_beside = beside(choice(json!({ "index": 0, "delta": {}, "finish_reason": "error" })), "error", error);
    forms.extend([
        Form::chat("ended_by_a_new_reason").words().finish(NEW).usage(10).done(),
        Form::chat("ended_by_a_new_reason_without_done").words().finish(NEW),
        Form::chat("ended_in_capitals").words().sends(finish(&"STOP".into())).usage(10).done(),
        object("ended_by_an_object", json!({ "type": "stop", "matched": 151_645 })).finish_is(Some("stop")),
        object("ended_by_an_object_of_a_length", json!({ "type": "length", "length": 10 }))
            .done()
            .finish_is(Some("length")),
        Form::chat("abort_by_an_object")
            .tokens(&WORDS[..4])
            .sends(finish(&json!({ "type": "abort", "message": "Aborted by the scheduler", "status_code": 503 })))
            .done()
            .outcome("aborted")
            .finish_is(Some("abort")),
        Form::chat("ended_by_a_number").words().sends(finish(&json!(3))).done(),
        Form::chat("ended_by_false_then_cut").tokens(&WORDS[..4]).sends(finish(&json!(false))).outcome("reset"),
        Form::chat("error_beside_a_finish_reason")
            .tokens(&WORDS[..4])
            .sends(data(&error_beside))
            .outcome("stream_error")
            .told(&["the provider went away"]),
        Form::chat("filtered_without_text").finish("content_filter").done().outcome("empty").told(&["content_filter"]),
    ]);
    forms
}
