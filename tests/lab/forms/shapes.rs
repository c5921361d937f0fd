//! Shapes of chunks. What is text to a user is text, wherever it stands. Valid JSON of an unknown shape
//! costs its part, never the response beside it. Broken JSON and broken UTF-8 fail the request.

use serde_json::{Value, json};

use super::wire::{beside, choice, chunk, data, delta, named, token};
use super::{Form, Output, WORDS};

/// Reasoning before the text.
const THOUGHTS: [&str; 5] = ["so", " the", " fox", " is", " it"];

pub(super) fn forms() -> Vec<Form> {
    [messages(), parts(), reasoning(), calls(), fields(), chunks(), names(), choices(), bytes()].concat()
}

/// `message` beside `delta`, and messages that repeat the text.
fn messages() -> Vec<Form> {
    let text = WORDS.concat();
    let beside_delta = |name: &str, message: fn(&str) -> Value| {
        let event = |word: &str| {
            let delta = json!({ "content": word });
            data(&choice(json!({ "index": 0, "delta": delta, "message": message(word), "finish_reason": null })))
        };
        Form::chat(name).each(&WORDS, event).ends()
    };
    // The text so far, including this event's.
    let cumulative = WORDS.iter().fold(Form::chat("the_text_so_far_beside_each_delta"), |form, word| {
        let so_far = format!("{}{word}", form.truth.content);
        let message = json!({ "role": "assistant", "content": so_far });
        form.says(word, data(&choice(json!({ "index": 0, "delta": { "content": word }, "message": message }))))
    });
    let last =
        |message: Value| data(&choice(json!({ "index": 0, "delta": {}, "message": message, "finish_reason": "stop" })));
    let repeated = |name: &str, message: Value| {
        Form::chat(name).words().sends(last(message)).usage(10).done().finish_is(Some("stop"))
    };
    let other = " until tomorrow";
    vec![
        beside_delta("null_message_beside_delta", |_| Value::Null),
        beside_delta("empty_message_beside_delta", |_| json!({})),
        beside_delta("message_without_text_beside_delta", |_| json!({ "role": "assistant", "content": "" })),
        beside_delta("message_with_the_same_text_beside_delta", |word| json!({ "content": word })),
        cumulative.ends(),
        Form::chat("message_in_place_of_delta")
            .each(&WORDS, |word| data(&choice(json!({ "index": 0, "message": { "content": word } }))))
            .ends(),
        repeated("last_message_repeats_the_text", json!({ "role": "assistant", "content": text })),
        repeated("last_message_repeats_the_text_in_parts", json!({ "content": [{ "type": "text", "text": text }] })),
        Form::chat("last_message_alone_repeats_the_text")
            .words()
            .sends(data(&choice(json!({ "index": 0, "message": { "content": text }, "finish_reason": "stop" }))))
            .usage(10)
            .done(),
        Form::chat("last_message_repeats_text_and_reasoning")
            .thoughts(&THOUGHTS)
            .tokens(&WORDS[..5])
            .sends(last(json!({ "content": WORDS[..5].concat(), "reasoning_content": THOUGHTS.concat() })))
            .usage(10)
            .done(),
        Form::chat("last_message_repeats_the_text_without_its_reasoning")
            .thoughts(&THOUGHTS)
            .tokens(&WORDS[..5])
            .sends(last(json!({ "content": WORDS[..5].concat() })))
            .usage(10)
            .done(),
        Form::chat("last_delta_repeats_the_text")
            .words()
            .sends(data(&choice(json!({ "index": 0, "delta": { "content": text }, "finish_reason": "stop" }))))
            .usage(10)
            .done(),
        // This is not what came before, so it is text.
        Form::chat("last_message_continues_the_text")
            .words()
            .says(other, last(json!({ "role": "assistant", "content": other })))
            .usage(12)
            .done(),
        Form::chat("a_word_twice").tokens(&["ha", "ha"]).finish("stop").usage(2).done(),
        Form::chat("the_whole_message_in_one_event").says(&text, last(json!({ "content": text }))).usage(10).done(),
    ]
}

/// `content` as a list of parts.
fn parts() -> Vec<Form> {
    let part = |word: &str| json!([{ "type": "text", "text": word }]);
    let content = |content: Value| data(&delta(json!({ "content": content })));
    let think = |word: &str| json!([{ "type": "thinking", "thinking": [{ "type": "text", "text": word }] }]);
    let plainly = |word: &str| json!([{ "type": "thinking", "thinking": word }]);
    let thinks = |name: &str, part: &dyn Fn(&str) -> Value| {
        THOUGHTS.iter().fold(Form::chat(name), |form, word| form.thinks(word, content(part(word))))
    };
    vec![
        Form::chat("content_in_parts").each(&WORDS, |word| content(part(word))).ends(),
        Form::chat("content_in_several_parts")
            .each(&WORDS[..9], |word| content(part(word)))
            .says(
                " again and",
                content(json!([{ "type": "text", "text": " again" }, { "type": "text", "text": " and" }])),
            )
            .finish("stop")
            .usage(11)
            .done(),
        Form::chat("content_in_texts").each(&WORDS, |word| content(json!([word]))).ends(),
        Form::chat("content_in_one_object")
            .each(&WORDS, |word| content(json!({ "type": "text", "text": word })))
            .ends(),
        thinks("thinking_in_parts", &think).each(&WORDS[..5], |word| content(part(word))).ends(),
        thinks("thinking_in_plain_parts", &plainly).tokens(&WORDS[..5]).ends(),
        Form::chat("parts_of_an_unknown_type")
            .sends(content(json!([{ "type": "image_url", "image_url": {} }])))
            .words()
            .ends(),
        Form::chat("no_parts").sends(content(json!([]))).words().ends(),
        Form::chat("content_is_a_number").sends(content(json!(1))).words().ends().unread(1),
        Form::chat("content_is_false").words().sends(content(json!(false))).ends(),
    ]
}

/// Reasoning under its many names.
fn reasoning() -> Vec<Form> {
    let under = |name: &str, event: &dyn Fn(&str) -> Value| {
        let thinks = |form: Form, word: &&str| form.thinks(word, data(&delta(event(word))));
        THOUGHTS.iter().fold(Form::chat(name), thinks).tokens(&WORDS[..5]).ends()
    };
    let details = |word: &str| json!([{ "type": "reasoning.text", "text": word, "format": "unknown", "index": 0 }]);
    let blocks = |word: &str| json!([{ "type": "thinking", "thinking": word, "signature": "" }]);
    let encrypted = json!({ "reasoning_details": [{ "type": "reasoning.encrypted", "data": "Zm94" }] });
    vec![
        under("reasoning_content", &|word| json!({ "reasoning_content": word })),
        under("reasoning", &|word| json!({ "reasoning": word })),
        under("reasoning_beside_empty_content", &|word| json!({ "content": "", "reasoning_content": word })),
        under("reasoning_under_two_names", &|word| json!({ "reasoning": word, "reasoning_content": word })),
        under("reasoning_details", &|word| json!({ "reasoning_details": details(word) })),
        under(
            "reasoning_details_beside_reasoning",
            &|word| json!({ "content": "", "reasoning": word, "reasoning_details": details(word) }),
        ),
        under(
            "reasoning_summary_in_details",
            &|word| json!({ "reasoning_details": [{ "type": "reasoning.summary", "summary": word }] }),
        ),
        under("thinking", &|word| json!({ "thinking": word })),
        under("thinking_blocks", &|word| json!({ "thinking_blocks": blocks(word) })),
        under(
            "thinking_blocks_beside_reasoning_content",
            &|word| json!({ "reasoning_content": word, "thinking_blocks": blocks(word) }),
        ),
        under("reasoning_text", &|word| json!({ "reasoning_text": word })),
        under("reasoning_in_an_object", &|word| json!({ "reasoning": { "text": word } })),
        Form::chat("encrypted_reasoning_is_no_text").words().sends(data(&delta(encrypted))).ends(),
        Form::chat("reasoning_and_text_in_one_event")
            .thoughts(&THOUGHTS[..4])
            .both(THOUGHTS[4], WORDS[0])
            .tokens(&WORDS[1..5])
            .finish("stop")
            .usage(10)
            .done(),
    ]
}

impl Form {
    /// Appends an event with reasoning and text.
    fn both(mut self, thought: &str, word: &str) -> Form {
        self.truth.reasoning.push_str(thought);
        self.says(word, data(&delta(json!({ "reasoning_content": thought, "content": word }))))
    }
}

/// Tool calls and refusals.
fn calls() -> Vec<Form> {
    let piece = |call: Value| data(&delta(json!({ "tool_calls": [call] })));
    let begin = |arguments: Value| {
        json!({
            "index": 0, "id": "call_1", "type": "function",
            "function": { "name": "weather", "arguments": arguments },
        })
    };
    let more = |arguments: &str| piece(json!({ "index": 0, "function": { "arguments": arguments } }));
    let function = |call: Value| data(&delta(json!({ "function_call": call })));
    let called = |form: Form| form.finish("tool_calls").usage(10).done().called(&["weather", "city", "Paris"]);
    let only_named = |form: Form| form.finish("tool_calls").usage(10).done().called(&["weather"]);
    vec![
        called(
            Form::chat("tool_call")
                .calls(piece(begin("".into())))
                .calls(more("{\"city\":"))
                .calls(more(" \"Paris\""))
                .calls(more("}")),
        ),
        called(Form::chat("tool_call_in_one_event").calls(piece(begin("{\"city\": \"Paris\"}".into())))),
        called(Form::chat("tool_arguments_as_an_object").calls(piece(begin(json!({ "city": "Paris" }))))),
        called(
            Form::chat("tool_arguments_as_an_object_after_the_name")
                .calls(piece(begin(Value::Null)))
                .calls(piece(json!({ "index": 0, "function": { "arguments": { "city": "Paris" } } }))),
        ),
        only_named(
            Form::chat("tool_call_of_a_name_only")
                .calls(piece(json!({ "index": 0, "id": "call_1", "function": { "name": "weather" } }))),
        ),
        only_named(Form::chat("tool_call_with_empty_arguments").calls(piece(begin("".into())))),
        called(
            Form::chat("tool_call_after_text")
                .tokens(&WORDS[..3])
                .calls(piece(begin("".into())))
                .calls(more("{\"city\": \"Paris\"}")),
        ),
        Form::chat("tool_calls_without_an_index")
            .calls(piece(
                json!({ "id": "call_1", "function": { "name": "weather", "arguments": "{\"city\": \"Paris\"}" } }),
            ))
            .finish("tool_calls")
            .usage(10)
            .done(),
        Form::chat("empty_and_null_tool_calls")
            .sends(data(&delta(json!({ "content": "", "tool_calls": [] }))))
            .each(&WORDS, |word| data(&delta(json!({ "content": word, "tool_calls": null }))))
            .ends(),
        Form::chat("function_call")
            .calls(function(json!({ "name": "weather", "arguments": "" })))
            .calls(function(json!({ "arguments": "{\"city\":" })))
            .calls(function(json!({ "arguments": " \"Paris\"}" })))
            .finish("function_call")
            .usage(10)
            .done()
            .called(&["weather", "city", "Paris"]),
        Form::chat("function_call_of_a_name_only")
            .calls(function(json!({ "name": "weather" })))
            .finish("function_call")
            .usage(10)
            .done()
            .called(&["weather"]),
        Form::chat("null_function_call")
            .each(&WORDS, |word| data(&delta(json!({ "content": word, "function_call": null }))))
            .ends(),
        Form::chat("refusal").each(&WORDS, |word| data(&delta(json!({ "content": null, "refusal": word })))).ends(),
        Form::chat("null_refusal")
            .each(&WORDS, |word| data(&delta(json!({ "content": word, "refusal": null }))))
            .ends(),
    ]
}

/// `error`, and fields of other types than usual.
fn fields() -> Vec<Form> {
    let error = |name: &str, error: Value| {
        let event = |word: &str| data(&beside(delta(json!({ "content": word })), "error", error.clone()));
        Form::chat(name).each(&WORDS, event).ends()
    };
    let choice_with = |name: &str, field: &str, value: Value| {
        let event = |word: &str| {
            let mut choice = json!({ "index": 0, "delta": { "content": word }, "finish_reason": null });
            choice[field] = value.clone();
            data(&super::wire::choice(choice))
        };
        Form::chat(name).each(&WORDS, event).ends()
    };
    let fails = |name: &str, error: Value, told: &'static str| {
        let event = data(&beside(chunk(json!([])), "error", error));
        Form::chat(name).tokens(&WORDS[..4]).sends(event).outcome("stream_error").told(&[told])
    };
    vec![
        error("error_of_nothing", json!({})),
        error("error_is_false", json!(false)),
        error("error_is_null", Value::Null),
        error("error_is_an_empty_text", json!("")),
        error("error_is_an_empty_list", json!([])),
        error("error_is_zero", json!(0)),
        fails("error_in_an_object", json!({ "message": "the KV cache is full", "code": 500 }), "the KV cache is full"),
        fails("error_in_a_text", json!("the KV cache is full"), "the KV cache is full"),
        fails("error_of_a_code", json!({ "code": 1_302, "type": "rate_limit" }), "1302"),
        Form::chat("error_before_any_text")
            .sends(data(&json!({ "error": { "message": "no such adapter", "type": "BadRequestError" } })))
            .outcome("stream_error")
            .told(&["no such adapter"]),
        Form::chat("error_in_a_named_event")
            .tokens(&WORDS[..4])
            .sends("event: error\ndata: {\"message\": \"out of memory\"}\n\n")
            .outcome("stream_error")
            .told(&["out of memory"]),
        Form::chat("error_as_an_object_of_its_own")
            .tokens(&WORDS[..4])
            .sends(data(&json!({ "object": "error", "message": "the KV cache is full", "code": 500 })))
            .outcome("stream_error")
            .told(&["the KV cache is full"]),
        Form::chat("error_as_an_object_of_its_own_then_done")
            .sends(data(&json!({ "object": "error", "message": "no such adapter", "type": "NotFoundError" })))
            .done()
            .outcome("stream_error")
            .told(&["no such adapter"]),
        choice_with("logprobs_of_a_token", "logprobs", json!({ "content": [{ "token": "the", "logprob": -0.1 }] })),
        choice_with("logprobs_as_a_text", "logprobs", json!("none")),
        choice_with("index_as_a_text", "index", json!("0")),
        choice_with("null_index", "index", Value::Null),
        choice_with("text_and_delta", "text", Value::Null),
        choice_with("finish_reason_is_false", "finish_reason", json!(false)),
        choice_with("finish_reason_is_a_list", "finish_reason", json!([])),
        Form::chat("role_is_null")
            .each(&WORDS, |word| data(&delta(json!({ "role": null, "content": word, "audio": null }))))
            .ends(),
        Form::chat("delta_is_null")
            .sends(data(&choice(json!({ "index": 0, "delta": null, "finish_reason": null }))))
            .words()
            .ends(),
        Form::chat("delta_is_a_text")
            .sends(data(&choice(json!({ "index": 0, "delta": "", "finish_reason": null }))))
            .words()
            .ends(),
        Form::chat("keys_twice")
            .each(&WORDS, |word| {
                let word = Value::from(word);
                format!("data: {{\"id\":\"c\",\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{word}}}}}]}}\n\n")
            })
            .ends(),
    ]
}

/// Chunks without choices, and data that is no chunk.
fn chunks() -> Vec<Form> {
    let among = |name: &str, event: &str| {
        let form = Form::chat(name).sends(event).tokens(&WORDS[..5]).sends(event).tokens(&WORDS[5..]);
        form.finish("stop").sends(event).usage(10).done()
    };
    let of = |name: &str, json: &Value| among(name, &data(json));
    vec![
        of("without_choices", &json!({ "id": "c", "object": "chat.completion.chunk", "model": "m" })),
        of("null_choices", &json!({ "id": "c", "choices": null })),
        of("no_choices", &chunk(json!([]))),
        of("choices_in_an_object", &json!({ "choices": {} })).unread(3),
        of("null_choice", &chunk(json!([null]))),
        of("empty_object", &json!({})),
        of("list", &json!([1])).unread(3),
        of("number", &json!(1)).unread(3),
        of("text", &json!("ping")).unread(3),
        of("null", &Value::Null),
        of("ping", &json!({ "type": "ping" })),
        of("content_filter_results", &json!({ "choices": [], "prompt_filter_results": [{ "prompt_index": 0 }] })),
        among("empty_data", "data:\n\n"),
        among("empty_data_with_a_space", "data: \n\n"),
        among("data_without_a_colon", "data\n\n"),
        among("comments", ": OPENROUTER PROCESSING\n\n"),
        among("retry_and_id", "id: 7\nretry: 3000\n\n"),
        Form::chat("nothing_but_empty_objects").sends("data: {}\n\n").sends("data: {}\n\n").outcome("reset"),
        Form::chat("nothing_but_done").done().outcome("empty"),
    ]
}

/// Named events.
fn names() -> Vec<Form> {
    let all = |name: &'static str| {
        let event = |word: &str| named(name, &delta(json!({ "content": word })));
        Form::chat(format!("events_named_{}", name.replace('.', "_"))).each(&WORDS, event).ends()
    };
    let mut forms: Vec<Form> =
        ["chunk", "completion", "token", "message", "data", "delta", "add", "chat.completion.chunk"].map(all).into();
    let others = |name: &str, event: &str| {
        Form::chat(name).sends(event).tokens(&WORDS[..5]).sends(event).tokens(&WORDS[5..]).ends()
    };
    forms.extend([
        others("events_of_another_kind", "event: sglext_ids\ndata: [1, 2, 3]\n\n"),
        others("pings", "event: ping\ndata: {}\n\n"),
        others("heartbeats", "event: heartbeat\ndata: now\n\n"),
    ]);
    forms
}

/// Several choices in one stream.
fn choices() -> Vec<Form> {
    let of = |index: u32, word: &str| json!({ "index": index, "delta": { "content": word }, "finish_reason": null });
    let end = |index: u32| json!({ "index": index, "delta": {}, "finish_reason": "stop" });
    let unknown = |form: Form| {
        let form = form.sends(data(&choice(end(0)))).sends(data(&choice(end(1)))).usage(20).done();
        form.per_token_unknown(Output::Any, &["several_choices"]).any_events()
    };
    let in_turn = WORDS.iter().fold(Form::chat("two_choices_in_turn"), |form, word| {
        form.says(word, data(&choice(of(0, word)))).sends(data(&choice(of(1, " other"))))
    });
    let second_first = WORDS.iter().fold(Form::chat("two_choices_the_second_first"), |form, word| {
        form.sends(data(&choice(of(1, "Other")))).says(word, data(&choice(of(0, word))))
    });
    let together =
        Form::chat("two_choices_in_one_chunk").each(&WORDS, |word| data(&chunk(json!([of(0, word), of(1, " other")]))));
    let backwards =
        Form::chat("two_choices_backwards").each(&WORDS, |word| data(&chunk(json!([of(1, " other"), of(0, word)]))));
    [in_turn, second_first, together, backwards].into_iter().map(unknown).collect()
}

/// Escapes, numbers that JSON does not have, and bytes that are broken.
fn bytes() -> Vec<Form> {
    let raw = |text: &str| {
        format!(
            "data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":null}}]}}\n\n"
        )
    };
    let logprob = |word: &str, number: &str| {
        let logprobs = format!("{{\"content\":[{{\"token\":\"{word}\",\"logprob\":{number},\"top_logprobs\":[]}}]}}");
        format!(
            "data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{word}\"}},\"logprobs\":{logprobs},\"finish_reason\":null}}]}}\n\n"
        )
    };
    let with_logprob =
        |name: &str, number: &'static str| Form::chat(name).each(&WORDS, |word| logprob(word, number)).ends();
    let broken = |name: &str, event: &[u8]| Form::chat(name).tokens(&WORDS[..4]).sends(event).outcome("malformed");
    let split = |name: &str| {
        let half = Form::chat(name).tokens(&WORDS[..8]).says("", raw(r" \ud83e"));
        half.says(" 🦊", raw(r"\udd8a")).finish("stop").usage(10).done().any_events()
    };
    vec![
        Form::chat("escapes")
            .each(&["a\n", "\"b\"", " \\c", "\t", "é", "日", "🦊"], token)
            .finish("stop")
            .usage(7)
            .done(),
        Form::chat("escaped_surrogates").words().says("🦊", raw(r"\ud83e\udd8a")).finish("stop").usage(11).done(),
        split("surrogates_split_over_chunks"),
        Form::chat("half_of_a_surrogate")
            .words()
            .sends(raw(r" \ud83e"))
            .finish("stop")
            .usage(11)
            .done()
            .any_events()
            .any_text(),
        Form::chat("half_of_a_surrogate_among_words")
            .tokens(&WORDS[..5])
            .sends(raw(r" \ud83e"))
            .tokens(&WORDS[5..])
            .finish("stop")
            .usage(11)
            .done()
            .any_events()
            .any_text(),
        with_logprob("nan_in_logprobs", "NaN"),
        with_logprob("infinity_in_logprobs", "-Infinity"),
        with_logprob("positive_infinity_in_logprobs", "Infinity"),
        Form::chat("nan_as_text").tokens(&["NaN", " is", " not", " Infinity"]).finish("stop").usage(4).done(),
        broken("broken_json", b"data: {\"choices\": [\n\n"),
        broken("broken_json_with_nan", b"data: {\"choices\": [{\"index\": 0, \"logprobs\": NaN\n\n"),
        broken("two_objects_in_one_event", b"data: {\"choices\": []} {\"choices\": []}\n\n"),
        broken("python_in_place_of_json", b"data: {'choices': [], 'error': None}\n\n"),
        broken("bare_words", b"data: {\"choices\": [{\"delta\": {\"content\": undefined}}]}\n\n"),
        broken("broken_utf8", b"data: {\"choices\": [{\"delta\": {\"content\": \"\xff\xfe\"}}]}\n\n"),
        broken(
            "broken_utf8_in_another_field",
            b"data: {\"id\": \"\xc3\", \"choices\": [{\"delta\": {\"content\": \"a\"}}]}\n\n",
        ),
        broken("broken_json_in_an_unfinished_event", b"data: {\"choices\": [{\"delta\": {\"content\": \"a"),
        Form::chat("broken_json_behind_done").words().ends().sends("data: {\"choices\": [\n\n"),
    ]
}
