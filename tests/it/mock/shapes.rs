//! Streams in each shape observed on real servers.

use serde_json::{Value, json};

use lab::mock::{Mock, chat, with};

#[test]
fn a_chat_stream_is_what_vllm_sends() {
    let mock = Mock::start(&[]);
    let answer = mock.chat(&chat());
    assert_eq!(answer.status(), 200);
    let (chunks, ended) = answer.chunks();
    assert!(ended && answer.error.is_none());
    assert!(chunks.iter().all(|chunk| chunk.starts_with(b"data: ") && chunk.ends_with(b"\n\n")), "one event per chunk");
    let events = answer.events();
    assert_eq!(events[0]["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
    assert!(events[1..7].iter().all(|event| event["choices"][0]["finish_reason"].is_null()));
    assert_eq!(events[7]["choices"][0], json!({"index": 0, "delta": {}, "logprobs": null, "finish_reason": "length"}));
    assert_eq!(events[8]["choices"], json!([]));
    // Say it , please . in a message and a prompt
    let usage = json!({
        "prompt_tokens": 5 + 4 + 3, "completion_tokens": 6, "total_tokens": 18,
        "prompt_tokens_details": {"cached_tokens": 0}, "completion_tokens_details": {"reasoning_tokens": 0},
    });
    assert_eq!(events[8]["usage"], usage);
    assert_eq!(answer.data().last().unwrap(), "[DONE]");
    assert_eq!(events.len(), 9);
    let text = answer.deltas("content").concat();
    assert_eq!(text.split(' ').count(), 6);
    assert_eq!(mock.log(1)[0]["answer"], text.as_str());
}

#[test]
fn the_first_chunk_takes_each_form() {
    let first = |form| Mock::start(&["--first", form]).chat(&chat()).events()[0]["choices"][0]["delta"].clone();
    assert_eq!(first("empty"), json!({"role": "assistant", "content": null}));
    let content = first("content");
    assert_eq!(content["role"], "assistant");
    assert!(!content["content"].as_str().unwrap().is_empty());
    let mock = Mock::start(&["--first", "empty"]);
    let answer = mock.post("/v1/completions", &json!({"prompt": "x", "stream": true, "max_tokens": 2}));
    assert_eq!(answer.events()[0]["choices"][0]["text"], "");
}

/// Returns the kind of each event: t text, f finish reason, u usage.
fn marks(events: &[Value]) -> String {
    let mark = |event: &Value| {
        let choice = &event["choices"][0];
        let text = choice["delta"]["content"].as_str().is_some_and(|text| !text.is_empty());
        let marks = [(text, 't'), (choice["finish_reason"].is_string(), 'f'), (event["usage"].is_object(), 'u')];
        marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect::<String>()
    };
    events.iter().map(mark).collect::<Vec<_>>().join(" ")
}

#[test]
fn usage_comes_in_every_position() {
    let short = with(chat(), &json!({"max_tokens": 2}));
    let silent = with(short.clone(), &json!({"stream_options": null}));
    for (position, asked, unasked) in [
        ("separate", " t t f u", " t t f"),
        ("last", " t t fu", " t t f"),
        ("with-content", " t tfu", " t tf"),
        ("both", " t tfu u", " t tf"),
        ("every", " tu tu f u", " t t f"),
        ("never", " t t f", " t t f"),
        ("always", " t t f u", " t t f u"),
    ] {
        let mock = Mock::start(&["--usage", position]);
        assert_eq!(marks(&mock.chat(&short).events()), asked, "{position}");
        assert_eq!(marks(&mock.chat(&silent).events()), unasked, "{position}");
    }
}

#[test]
fn several_tokens_share_an_event() {
    let mock = Mock::start(&["--tokens-per-event", "4", "--reasoning", "2", "--no-done"]);
    let answer = mock.chat(&with(chat(), &json!({"max_tokens": 8})));
    let words = |field| answer.deltas(field).iter().map(|text| text.split_whitespace().count()).collect::<Vec<_>>();
    assert_eq!(words("reasoning_content"), [2]);
    assert_eq!(words("content"), [0, 4, 2]);
    assert_ne!(answer.data().last().unwrap(), "[DONE]");
    let events = answer.events();
    let usage = &events.last().unwrap()["usage"];
    assert_eq!(usage["completion_tokens_details"]["reasoning_tokens"], 2);
    assert_eq!(usage["completion_tokens"], 8);
    let mock = Mock::start(&["--reasoning", "3", "--reasoning-field", "reasoning"]);
    assert_eq!(mock.chat(&chat()).deltas("reasoning").len(), 3);
    let whole = mock.chat(&with(chat(), &json!({"stream": false}))).json();
    assert_eq!(whole["choices"][0]["message"]["reasoning"].as_str().unwrap().split(' ').count(), 3);
}

#[test]
fn lines_end_with_cr_lf_and_comments_come_first() {
    let answer = Mock::start(&["--crlf", "--keepalive-comments"]).chat(&chat());
    let text = answer.text();
    assert!(text.starts_with(": keepalive 0/12\r\n\r\ndata: "));
    assert!(text.contains("\r\n\r\n: keepalive 12/12\r\n\r\n"));
    assert!(text.ends_with("data: [DONE]\r\n\r\n"));
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
}

#[test]
fn the_same_seeds_and_prompt_give_the_same_text_however_it_is_sent() {
    let body = json!({"prompt": "Tell me.", "max_tokens": 40, "stream": true});
    let text = |flags: &[&str], body: &Value| {
        let answer = Mock::start(flags).post("/v1/completions", body);
        let texts = answer.events();
        texts.iter().filter_map(|event| event["choices"][0]["text"].as_str().map(str::to_owned)).collect::<String>()
    };
    let reference = text(&[], &body);
    let whole = Mock::start(&[]).post("/v1/completions", &with(body.clone(), &json!({"stream": false}))).json();
    assert_eq!(whole["choices"][0]["text"], reference.as_str());
    assert_ne!(text(&["--seed", "1"], &body), reference);
    assert_ne!(text(&[], &with(body.clone(), &json!({"seed": 5}))), reference);
    for flags in [
        &["--cut", "random", "--cut-pause", "50us"][..],
        &["--chunk-bytes", "7"],
        &["--write-per-event", "--tokens-per-event", "3"],
        &["--close-delimited", "--cut", "random"],
    ] {
        assert_eq!(text(flags, &body), reference, "{flags:?}");
    }
}

#[test]
fn cuts_fall_inside_characters_and_line_ends() {
    for words in ["utf8", "escaped"] {
        let reference = Mock::start(&["--words", words, "--crlf"]).chat(&chat()).deltas("content");
        let mock = Mock::start(&["--words", words, "--crlf", "--chunk-bytes", "3", "--cut", "random"]);
        let answer = mock.chat(&chat());
        assert_eq!(answer.deltas("content"), reference, "{words}");
        assert_eq!(mock.log(1)[0]["answer"], reference.concat().as_str());
        let (chunks, _) = answer.chunks();
        assert!(chunks.iter().all(|chunk| chunk.len() <= 3));
        assert!(chunks.iter().any(|chunk| chunk.ends_with(b"\r")));
        let split = chunks.iter().any(|chunk| std::str::from_utf8(chunk).is_err());
        assert_eq!(split, words == "utf8");
    }
}

#[test]
fn a_stream_can_end_with_its_connection() {
    let answer = Mock::start(&["--close-delimited"]).chat(&chat());
    assert!(answer.head.starts_with("HTTP/1.0 200 OK\r\n"));
    assert!(!answer.head.contains("chunked") && !answer.head.contains("content-length"));
    assert_eq!(answer.data().last().unwrap(), "[DONE]");
}

#[test]
fn answers_end_by_themselves_unless_told_not_to() {
    let mock = Mock::start(&["--eos-after", "4"]);
    let ends = |mock: &Mock, body: &Value| {
        let answer = mock.chat(&with(body.clone(), &json!({"stream": false}))).json();
        (answer["usage"]["completion_tokens"].clone(), answer["choices"][0]["finish_reason"].clone())
    };
    let finish = |body: &Value| ends(&mock, body);
    assert_eq!(finish(&chat()), (json!(4), json!("stop")));
    assert_eq!(finish(&with(chat(), &json!({"ignore_eos": true}))), (json!(6), json!("length")));
    assert_eq!(finish(&with(chat(), &json!({"max_completion_tokens": 3}))), (json!(3), json!("length")));
    // Each token may be the last, with this probability.
    let hasty = Mock::start(&["--eos-rate", "100%"]);
    assert_eq!(ends(&hasty, &chat()), (json!(1), json!("stop")));
    assert_eq!(ends(&hasty, &with(chat(), &json!({"ignore_eos": true}))), (json!(6), json!("length")));
}
