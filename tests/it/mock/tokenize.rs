//! Counts before a generation, in the formats of three servers: they equal `usage` afterwards.

use serde_json::{Value, json};

use lab::mock::Mock;

fn usage(mock: &Mock, path: &str, body: &Value) -> Value {
    let answer = mock.post(path, body);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    answer.json()["usage"]["prompt_tokens"].clone()
}

#[test]
fn counts_ahead_are_those_of_usage() {
    let messages = json!([{ "role": "system", "content": "Be kind." }, { "role": "user", "content": "Why, then?" }]);
    let chat = json!({ "model": "m", "messages": messages, "max_tokens": 1 });
    let text = json!({ "model": "m", "prompt": "One, two.\n\nThree", "max_tokens": 1 });
    for dialect in ["vllm", "sglang", "llama.cpp"] {
        let mock = Mock::start(&["--tokenize", dialect]);
        let of_chat = usage(&mock, "/v1/chat/completions", &chat);
        let of_text = usage(&mock, "/v1/completions", &text);
        let count = |body: Value| mock.post("/tokenize", &body).json();
        match dialect {
            "vllm" => {
                assert_eq!(count(chat.clone())["count"], of_chat);
                assert_eq!(count(text.clone())["count"], of_text);
            }
            "sglang" => {
                assert_eq!(count(text.clone())["count"], of_text);
                assert_eq!(mock.post("/tokenize", &chat).status(), 400, "it does not count chats");
            }
            _ => {
                let tokens =
                    |text: &Value| json!(count(json!({ "content": text }))["tokens"].as_array().unwrap().len());
                assert_eq!(tokens(&text["prompt"]), of_text);
                assert_eq!(tokens(&mock.post("/apply-template", &chat).json()["prompt"]), of_chat);
            }
        }
    }
    let mock = Mock::start(&["--tokenize", "none"]);
    assert_eq!([mock.post("/tokenize", &text).status(), mock.post("/apply-template", &chat).status()], [404, 404]);
}
