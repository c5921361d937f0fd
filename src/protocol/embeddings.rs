//! Embeddings (OpenAI API reference, "Embeddings"), as implemented by vLLM, SGLang, llama.cpp and Text
//! Embeddings Inference: texts are sent, and one vector is returned for each text, all at once.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::answer::{Part, Wrong, read, refuse_error};
use super::contract::{Framing, Protocol, Task};
use super::request::{Object, Request};
use super::usage::Usage;

/// The protocol.
#[derive(Debug)]
pub(super) struct Embeddings;

#[derive(Debug, Deserialize)]
struct Answer {
    data: Option<Vec<Vector>>,
    usage: Option<Usage>,
    error: Option<Value>,
}

/// Numbers, or a text that encodes numbers; the difference does not matter here.
#[derive(Debug, Deserialize)]
struct Vector {
    #[serde(rename = "embedding")]
    _embedding: IgnoredAny,
}

impl Protocol for Embeddings {
    fn path(&self) -> &'static str {
        "/embeddings"
    }

    fn framing(&self) -> Framing {
        Framing::Text
    }

    fn task(&self) -> Task {
        Task::Embed
    }

    fn prompt_fields(&self) -> &'static [&'static str] {
        &["input"]
    }

    fn answer_field(&self) -> &'static str {
        "data"
    }

    /// This is always a list, even for one text, as sent by clients of this API.
    fn body(&self, request: &Request, body: &mut Object) {
        body.put("model", request.model);
        body.put("input", &request.said.texts());
        body.put("encoding_format", "float");
        body.put_all(request.extra);
    }

    fn event<'a>(&self, data: &'a [u8]) -> Result<Part<'a>, Wrong> {
        let (Answer { data: vectors, usage, error }, text) = read(data)?;
        refuse_error(error.as_ref())?;
        let Some(vectors) = vectors else {
            return Err(Wrong::Malformed(format!("neither data nor error: {text}")));
        };
        let usage = usage.map(Usage::of_a_prompt_alone);
        Ok(Part { values: Some(vectors.len()), usage, is_last: true, ..Part::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_counted_and_no_token_of_an_answer_is() {
        let json = br#"{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1,-2e-3]},{"index":1,"embedding":"AAA="}],
            "model":"m","usage":{"prompt_tokens":9,"total_tokens":9,"completion_tokens":0}}"#;
        let part = Embeddings.whole(json).unwrap();
        let usage = part.usage.unwrap();
        assert_eq!((part.values, usage.prompt_tokens(), usage.completion_tokens()), (Some(2), Some(9), None));
    }

    #[test]
    fn what_is_no_answer() {
        assert!(matches!(Embeddings.whole(br#"{"data":[{"index":0}]}"#), Err(Wrong::Malformed(_))));
        assert!(matches!(Embeddings.whole(br#"{"object":"list"}"#), Err(Wrong::Malformed(_))));
        let error = br#"{"error":{"message":"too long"}}"#;
        assert_eq!(Embeddings.whole(error).err(), Some(Wrong::Error("too long".into())));
    }
}
