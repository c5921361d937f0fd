//! Implements `/tokenize` in the forms of three servers. It returns the number of tokens of a text or a
//! chat before generation.
//!
//! The counts are the same as in `usage`. The mock has no vocabulary, so the id of a token is its position.

use serde_json::{Value, json};

use super::config::Tokenize;
use super::request::{Api, END, Request, START, TEXT};
use super::tokens::tokens;

/// The context length that the mock reports.
const MAX_MODEL_LEN: u32 = 10_000_000;
/// Number of tokens that the chat template adds before a response; they are not counted if no response
/// follows.
const BEFORE_ANSWER: u64 = 3;

/// Returns the body of the response to a request that counts tokens. The error is the status and the message
/// of an error response.
pub(super) fn tokenize(kind: Tokenize, body: &[u8]) -> Result<String, (u16, String)> {
    let refused = |message: String| (400, message);
    let asked: Value =
        serde_json::from_slice(body).map_err(|error| refused(format!("the body is not JSON: {error}")))?;
    match kind {
        Tokenize::None => Err((404, "there is nothing at this path".to_owned())),
        Tokenize::LlamaCpp => {
            // A missing text is not an error; it has no tokens.
            let count = asked["content"].as_str().map_or(0, |text| tokens(text).count() as u64);
            Ok(json!({ "tokens": ids(count) }).to_string())
        }
        Tokenize::Vllm if asked["messages"].is_array() => {
            let count = Request::parse(Api::Chat, body, None).map_err(refused)?.prompt_tokens;
            let is_open = asked["add_generation_prompt"].as_bool().unwrap_or(true);
            Ok(counted(if is_open { count } else { count - BEFORE_ANSWER }))
        }
        Tokenize::Sglang if asked["prompt"].is_array() => {
            let texts = asked["prompt"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let counts: Vec<u64> = texts.map(|text| tokens(text).count() as u64).collect();
            let all: Vec<Vec<u64>> = counts.iter().copied().map(ids).collect();
            Ok(json!({ "tokens": all, "count": counts, "max_model_len": MAX_MODEL_LEN }).to_string())
        }
        Tokenize::Vllm | Tokenize::Sglang => match asked["prompt"].as_str() {
            Some(text) => Ok(counted(tokens(text).count() as u64)),
            None => Err(refused("`prompt` is missing".to_owned())),
        },
    }
}

/// Implements llama.cpp's `/apply-template`: returns the text that the chat template creates from messages.
/// The error is the status and the message of an error response.
pub(super) fn apply_template(kind: Tokenize, body: &[u8]) -> Result<String, (u16, String)> {
    if kind != Tokenize::LlamaCpp {
        return Err((404, "there is nothing at this path".to_owned()));
    }
    let asked: Value = serde_json::from_slice(body).map_err(|error| (400, format!("the body is not JSON: {error}")))?;
    let Some(messages) = asked["messages"].as_array() else { return Err((400, "`messages` is missing".to_owned())) };
    let mut text = String::new();
    for message in messages {
        let of = |name: &str| message[name].as_str().unwrap_or_default();
        text.push_str(&format!("{START} {} {TEXT}\n{}\n{END}\n", of("role"), of("content")));
    }
    text.push_str(&format!("{START} assistant {TEXT}\n"));
    Ok(json!({ "prompt": text }).to_string())
}

fn ids(count: u64) -> Vec<u64> {
    (0..count).collect()
}

fn counted(count: u64) -> String {
    json!({ "count": count, "max_model_len": MAX_MODEL_LEN, "tokens": ids(count) }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(kind: Tokenize, body: &str) -> Value {
        serde_json::from_str(&tokenize(kind, body.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn the_three_kinds_count_alike() {
        let messages =
            r#"{"messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"Why, then?"}]}"#;
        let usage = Request::parse(Api::Chat, messages.as_bytes(), None).unwrap().prompt_tokens;
        assert_eq!(count(Tokenize::Vllm, messages)["count"], usage);
        let closed = messages.replacen('{', r#"{"add_generation_prompt":false,"#, 1);
        assert_eq!(count(Tokenize::Vllm, &closed)["count"], usage - 3);
        let prompt = apply_template(Tokenize::LlamaCpp, messages.as_bytes()).unwrap();
        let prompt: Value = serde_json::from_str(&prompt).unwrap();
        let text = json!({ "content": prompt["prompt"], "add_special": true }).to_string();
        assert_eq!(count(Tokenize::LlamaCpp, &text)["tokens"].as_array().unwrap().len() as u64, usage);
        for kind in [Tokenize::Vllm, Tokenize::Sglang] {
            let answer = count(kind, r#"{"prompt":"one two."}"#);
            assert_eq!((&answer["count"], answer["tokens"].as_array().unwrap().len()), (&json!(3), 3));
        }
        assert_eq!(count(Tokenize::Sglang, r#"{"prompt":["one","two."]}"#)["count"], json!([1, 2]));
        assert_eq!(count(Tokenize::LlamaCpp, messages)["tokens"], json!([]));
        let status = |kind, body: &str| tokenize(kind, body.as_bytes()).unwrap_err().0;
        assert_eq!((status(Tokenize::Sglang, messages), status(Tokenize::None, messages)), (400, 404));
        assert_eq!(apply_template(Tokenize::Vllm, messages.as_bytes()).unwrap_err().0, 404);
    }
}
