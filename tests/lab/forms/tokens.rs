//! Who counted the tokens: the server's usage, its timings, or nobody.

use serde_json::{Value, json};

use super::wire::{beside, choice, chunk, counts, data, delta, finish, thought, token, usage};
use super::{Form, Output, WORDS};

/// Five tokens in one event.
const FIVE: &str = " one two three four five";
/// Why a usage is not used.
const IMPOSSIBLE: &str = "impossible_usage";
/// Why there are no figures per token where reasoning was not streamed.
const HIDDEN: &str = "hidden_reasoning";
/// Why there are no figures per token where only events were counted.
const BY_EVENTS: &str = "tokens_by_events";

pub(super) fn forms() -> Vec<Form> {
    [hidden_reasoning(), tokens_in_bunches(), timings(), impossible(), other_shapes(), behind_done()].concat()
}

/// Reasoning that was counted, but not streamed.
fn hidden_reasoning() -> Vec<Form> {
    let thought_of = |tokens: u32, reasoning: u32, total: u32| {
        json!({
            "prompt_tokens": 30, "completion_tokens": tokens, "total_tokens": total,
            "completion_tokens_details": { "reasoning_tokens": reasoning },
        })
    };
    let inside = usage(&thought_of(64, 54, 94));
    let summary = ["I compare", " the two."];
    let thoughts = ["so", " the", " fox", " is", " it"];
    vec![
        Form::chat("hidden_reasoning")
            .waits(20)
            .words()
            .finish("stop")
            .sends(inside.clone())
            .done()
            .streamed(Output::Exactly(64), 10),
        // The total shows that the reasoning is not among the completion tokens.
        Form::chat("hidden_reasoning_beside_the_completion")
            .waits(20)
            .words()
            .finish("stop")
            .sends(usage(&thought_of(10, 54, 94)))
            .done()
            .streamed(Output::OneOf(&[10, 64]), 10),
        Form::chat("hidden_reasoning_under_a_summary")
            .waits(20)
            .thoughts(&summary)
            .words()
            .finish("stop")
            .sends(inside.clone())
            .done()
            .per_token_unknown(Output::Exactly(64), &[HIDDEN]),
        // 47 bytes cannot be 64 tokens.
        Form::chat("hidden_reasoning_without_details")
            .waits(20)
            .words()
            .finish("stop")
            .sends(usage(&counts(30, 64)))
            .done()
            .per_token_unknown(Output::Any, &[HIDDEN, IMPOSSIBLE]),
        Form::chat("hidden_reasoning_and_a_tool_call")
            .waits(20)
            .calls(data(&delta(json!({ "tool_calls": [{
                "index": 0, "id": "t", "type": "function", "function": { "name": "f", "arguments": "" },
            }] }))))
            .calls(data(&delta(json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "{}" } }] }))))
            .finish("tool_calls")
            .sends(usage(&thought_of(64, 54, 94)))
            .done()
            .streamed(Output::Exactly(64), 10),
        Form::chat("nothing_but_hidden_reasoning")
            .waits(20)
            .finish("length")
            .sends(usage(&thought_of(54, 54, 84)))
            .done()
            .outcome("empty")
            .told(&["54", "length"]),
        Form::chat("nothing_but_hidden_reasoning_and_an_empty_delta")
            .sends(token(""))
            .finish("stop")
            .sends(usage(&thought_of(54, 54, 84)))
            .done()
            .outcome("empty")
            .told(&["54", "stop"]),
        // Reasoning that was streamed is not hidden.
        Form::chat("streamed_reasoning")
            .thoughts(&thoughts)
            .tokens(&WORDS[..5])
            .finish("stop")
            .sends(usage(&thought_of(10, 5, 40)))
            .done()
            .counted(10, "usage"),
        Form::chat("streamed_reasoning_without_details")
            .thoughts(&thoughts)
            .tokens(&WORDS[..5])
            .finish("stop")
            .usage(10)
            .done(),
        Form::chat("nothing_but_streamed_reasoning")
            .thoughts(&WORDS)
            .finish("length")
            .sends(usage(&thought_of(10, 10, 40)))
            .done()
            .counted(10, "usage"),
    ]
}

/// Events with several tokens, or with a part of one.
fn tokens_in_bunches() -> Vec<Form> {
    let text = WORDS.concat();
    let letters: Vec<String> = text.chars().map(String::from).collect();
    let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
    vec![
        Form::chat("five_tokens_an_event").tokens(&[FIVE; 5]).finish("stop").done().unknown(BY_EVENTS),
        Form::chat("five_tokens_an_event_counted").tokens(&[FIVE; 5]).finish("stop").usage(25).done(),
        Form::chat("three_tokens_an_event").tokens(&[" one two three"; 5]).finish("stop").done().unknown(BY_EVENTS),
        Form::chat("one_token_then_all_others")
            .tokens(&["the"])
            .tokens(&[&FIVE.repeat(4)])
            .finish("stop")
            .done()
            .unknown(BY_EVENTS),
        Form::chat("five_tokens_an_event_of_reasoning")
            .thoughts(&[FIVE; 5])
            .tokens(&[FIVE])
            .finish("stop")
            .done()
            .unknown(BY_EVENTS),
        Form::chat("one_token_an_event").words().finish("stop").done(),
        Form::chat("one_chinese_character_an_event")
            .tokens(&["你", "好", "，", "世", "界", "今", "天", "很", "好", "。"])
            .finish("stop")
            .done(),
        Form::chat("letters_counted").tokens(&letters).finish("stop").usage(10).done(),
        Form::chat("letters").tokens(&letters).finish("stop").done().unknown(BY_EVENTS),
        Form::chat("all_in_one_event_counted").tokens(&[&text]).finish("stop").usage(10).done(),
        Form::chat("all_in_one_event").tokens(&[&text]).finish("stop").done().unknown(BY_EVENTS),
    ]
}

/// llama.cpp's `timings`, which count the tokens.
fn timings() -> Vec<Form> {
    let timings = |tokens: Value| {
        json!({
            "prompt_n": 30, "prompt_ms": 9.5, "predicted_n": tokens, "predicted_ms": 27.0,
            "predicted_per_token_ms": 2.7, "predicted_per_second": 370.4,
        })
    };
    let last = |tokens: Value| {
        let end = choice(json!({ "index": 0, "delta": {}, "finish_reason": "stop" }));
        data(&beside(end, "timings", timings(tokens)))
    };
    let in_each = WORDS.iter().zip(1..).fold(Form::chat("timings_in_each"), |form, (word, tokens)| {
        form.says(word, data(&beside(delta(json!({ "content": word })), "timings", timings(json!(tokens)))))
    });
    vec![
        Form::chat("timings").words().sends(last(json!(10))).done().counted(10, "timings"),
        Form::chat("timings_of_bunches").tokens(&[FIVE; 5]).sends(last(json!(25))).done().counted(25, "timings"),
        in_each.finish("stop").done().counted(10, "timings"),
        Form::chat("timings_and_usage").words().sends(last(json!(10))).usage(10).done(),
        Form::chat("impossible_timings").words().sends(last(json!(1_000_000_000))).done().unknown(IMPOSSIBLE),
        Form::chat("timings_without_a_count").words().sends(last(Value::Null)).done(),
    ]
}

/// A usage that cannot be.
fn impossible() -> Vec<Form> {
    let cases = [
        ("negative", json!({ "prompt_tokens": 30, "completion_tokens": -10, "total_tokens": 20 })),
        ("fraction", json!({ "prompt_tokens": 30, "completion_tokens": 9.5, "total_tokens": 39.5 })),
        ("billion", counts(30, 1_000_000_000)),
        ("beyond_32_bits", json!({ "prompt_tokens": 30, "completion_tokens": 10_000_000_000_u64 })),
        ("ten_thousand", counts(30, 10_000)),
        ("zero", counts(30, 0)),
        ("prompt_of_ten_million", counts(10_000_000, 10)),
        ("negative_prompt", json!({ "prompt_tokens": -1, "completion_tokens": 10, "total_tokens": 9 })),
        (
            "two_different_counts",
            json!({ "prompt_tokens": 30, "completion_tokens": 10, "input_tokens": 30, "output_tokens": 7 }),
        ),
        ("zero_under_both_names", json!({ "completion_tokens": 0, "output_tokens": 0 })),
    ];
    let of = |(name, counts): (&str, Value)| {
        Form::chat(format!("impossible_{name}")).words().finish("stop").sends(usage(&counts)).done().unknown(IMPOSSIBLE)
    };
    let mut forms: Vec<Form> = cases.into_iter().map(of).collect();
    let sixteen = [&WORDS[..], &WORDS[1..7]].concat();
    let one = |name: &str| Form::chat(name).tokens(&sixteen).finish("stop").sends(usage(&counts(30, 1))).done();
    forms.extend([
        one("one_token_for_sixteen_events").unknown(IMPOSSIBLE),
        Form::chat("one_token_for_a_long_event")
            .tokens(&[&FIVE.repeat(4)])
            .finish("stop")
            .sends(usage(&counts(30, 1)))
            .done()
            .unknown(IMPOSSIBLE),
        Form::chat("two_tokens_for_fifty")
            .tokens(&[FIVE; 10])
            .finish("stop")
            .sends(usage(&counts(30, 2)))
            .done()
            .unknown(IMPOSSIBLE),
        Form::chat("one_token_for_one").tokens(&["Yes"]).finish("stop").usage(1).done(),
    ]);
    forms
}

/// Counts under other names and in other types.
fn other_shapes() -> Vec<Form> {
    let counted = |name: &str, counts: Value| {
        Form::chat(name).words().finish("stop").sends(usage(&counts)).done().counted(10, "usage")
    };
    let both = |chat: [u32; 2], responses: [u32; 2]| {
        json!({
            "prompt_tokens": chat[0], "completion_tokens": chat[1], "total_tokens": 40,
            "input_tokens": responses[0], "output_tokens": responses[1],
        })
    };
    let with = |name: &str, value: Value| {
        let mut counts = counts(30, 10);
        counts[name] = value;
        counts
    };
    let end = choice(json!({ "index": 0, "delta": {}, "finish_reason": "stop" }));
    let groq = json!({ "id": "req_1", "usage": counts(30, 10) });
    let by_events = |name: &str, counts: Value| Form::chat(name).words().finish("stop").sends(usage(&counts)).done();
    vec![
        counted("usage_under_both_names", both([30, 10], [30, 10])).prompt(30, None),
        counted("usage_zero_under_the_second_name", both([30, 10], [0, 0])),
        counted("usage_zero_under_the_first_name", both([0, 0], [30, 10])),
        counted("usage_under_the_other_names", json!({ "input_tokens": 30, "output_tokens": 10 })),
        counted(
            "usage_null_under_the_second_name",
            json!({ "prompt_tokens": 30, "completion_tokens": 10, "input_tokens": null, "output_tokens": null }),
        ),
        counted("usage_in_texts", json!({ "prompt_tokens": "30", "completion_tokens": "10", "total_tokens": "40" })),
        counted("usage_in_floats", json!({ "prompt_tokens": 30.0, "completion_tokens": 10.0, "total_tokens": 40.0 })),
        counted("usage_with_a_list_of_details", with("completion_tokens_details", json!([]))),
        counted("usage_with_lists_of_details", {
            let mut counts = with("completion_tokens_details", json!([{ "reasoning_tokens": 0 }]));
            counts["prompt_tokens_details"] = json!([{ "cached_tokens": 0 }]);
            counts
        }),
        counted("usage_with_a_text_for_details", with("prompt_tokens_details", json!("none"))),
        counted("usage_with_null_details", with("completion_tokens_details", Value::Null)),
        counted("usage_with_details_in_texts", with("completion_tokens_details", json!({ "reasoning_tokens": "0" }))),
        counted("usage_with_unknown_keys", with("cost", json!({ "usd": 0.0001, "by": ["x"] }))),
        // Messages counts the cached tokens of a prompt apart.
        counted(
            "usage_with_cached_tokens_apart",
            json!({
                "prompt_tokens": 4, "completion_tokens": 10, "total_tokens": 14,
                "prompt_tokens_details": { "cached_tokens": 26 },
                "cache_read_input_tokens": 26, "cache_creation_input_tokens": 0,
            }),
        )
        .prompt(30, Some(26)),
        counted(
            "usage_with_cached_and_written_tokens_apart",
            json!({
                "input_tokens": 4, "output_tokens": 10,
                "cache_read_input_tokens": 20, "cache_creation_input_tokens": 6,
            }),
        )
        .prompt(30, Some(20)),
        Form::chat("usage_of_groq")
            .words()
            .sends(data(&beside(end.clone(), "x_groq", groq.clone())))
            .done()
            .counted(10, "usage"),
        Form::chat("usage_of_groq_beside_null")
            .words()
            .sends(data(&beside(beside(end, "usage", Value::Null), "x_groq", groq)))
            .done()
            .counted(10, "usage"),
        Form::chat("usage_with_the_finish_reason")
            .words()
            .sends(data(&beside(
                choice(json!({ "index": 0, "delta": {}, "finish_reason": "stop" })),
                "usage",
                counts(30, 10),
            )))
            .done()
            .counted(10, "usage"),
        by_events("usage_as_a_list", json!([1, 2])),
        by_events("usage_as_a_text", json!("n/a")),
        by_events("usage_as_false", json!(false)),
        by_events("usage_of_nothing", json!({})),
    ]
}

/// Usage behind `[DONE]`.
fn behind_done() -> Vec<Form> {
    let behind = |name: &str| Form::chat(name).words().finish("stop").done();
    let without_choices = data(&json!({ "usage": counts(30, 10) }));
    vec![
        behind("usage_behind_done").usage(10),
        behind("usage_without_choices_behind_done").sends(without_choices).counted(10, "usage"),
        behind("usage_some_time_behind_done").waits(60).usage(10),
        Form::chat("usage_before_and_behind_done").words().ends().usage(10),
        Form::chat("finish_and_usage_behind_done").words().done().sends(finish(&"stop".into())).usage(10),
        Form::chat("bunches_counted_behind_done").tokens(&[FIVE; 5]).finish("stop").done().usage(25),
        Form::chat("text_behind_done")
            .words()
            .ends()
            .sends(token(" and more"))
            .sends(thought("hm"))
            .sends(data(&chunk(json!([])))),
    ]
}
