//! Reranking as defined by Jina and Cohere and implemented by vLLM, SGLang, llama.cpp and Infinity: a query
//! and documents are sent, and a score for each document is returned, all at once.

use serde::Deserialize;
use serde_json::Value;

use super::answer::{Part, Wrong, read, refuse_error};
use super::contract::{Framing, Protocol, Task};
use super::request::{Object, Request};
use super::usage::Usage;

/// The protocol.
#[derive(Debug)]
pub(super) struct Rerank;

#[derive(Debug, Deserialize)]
struct Answer {
    results: Option<Vec<Scored>>,
    usage: Option<Usage>,
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Scored {
    #[serde(rename = "relevance_score", alias = "score")]
    _score: f64,
}

impl Protocol for Rerank {
    fn path(&self) -> &'static str {
        "/rerank"
    }

    fn framing(&self) -> Framing {
        Framing::Text
    }

    fn task(&self) -> Task {
        Task::Rank
    }

    fn prompt_fields(&self) -> &'static [&'static str] {
        &["query", "documents"]
    }

    fn answer_field(&self) -> &'static str {
        "results"
    }

    /// The user's text is the query, and the texts after it are the documents. The text of a probe is used
    /// both as query and as document.
    fn body(&self, request: &Request, body: &mut Object) {
        let mut texts = request.said.texts();
        let query = texts.remove(0);
        if texts.is_empty() {
            texts.push(query.clone());
        }
        body.put("model", request.model);
        body.put("query", &query);
        body.put("documents", &texts);
        body.put_all(request.extra);
    }

    fn event<'a>(&self, data: &'a [u8]) -> Result<Part<'a>, Wrong> {
        let (Answer { results, usage, error }, text) = read(data)?;
        refuse_error(error.as_ref())?;
        let Some(results) = results else {
            return Err(Wrong::Malformed(format!("neither results nor error: {text}")));
        };
        let usage = usage.map(Usage::of_a_prompt_alone);
        Ok(Part { values: Some(results.len()), usage, is_last: true, ..Part::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_counted_and_tokens_told_in_all_are_the_prompts() {
        let json = br#"{"id":"r","model":"m","usage":{"total_tokens":56},"results":[
            {"index":1,"document":{"text":"a"},"relevance_score":0.99},{"index":0,"relevance_score":-3.5}]}"#;
        let part = Rerank.whole(json).unwrap();
        let usage = part.usage.unwrap();
        assert_eq!((part.values, usage.prompt_tokens(), usage.completion_tokens()), (Some(2), Some(56), None));
        assert!(matches!(Rerank.whole(br#"{"results":[{"index":0}]}"#), Err(Wrong::Malformed(_))), "no score");
    }
}
