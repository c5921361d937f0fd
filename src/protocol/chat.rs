//! Chat completions (OpenAI API reference, "Chat"), as implemented by vLLM, SGLang, TGI, llama.cpp and NIM.

use serde_json::Value;

use super::answer::{CallPiece, Part, Wrong};
use super::choices;
use super::contract::{Framing, Protocol};
use super::request::{Object, Request};

/// The chat completions protocol.
#[derive(Debug)]
pub(super) struct Chat;

impl Protocol for Chat {
    fn path(&self) -> &'static str {
        "/chat/completions"
    }

    fn framing(&self) -> Framing {
        Framing::Chat
    }

    fn prompt_fields(&self) -> &'static [&'static str] {
        &["messages"]
    }

    fn answer_field(&self) -> &'static str {
        "choices"
    }

    fn body(&self, request: &Request, body: &mut Object) {
        body.put("model", request.model);
        body.put("messages", &request.said.messages());
        choices::put_rest(request, body);
    }

    fn event<'a>(&self, data: &'a [u8]) -> Result<Part<'a>, Wrong> {
        choices::part(data)
    }

    fn calls(&self, data: &Value) -> Vec<CallPiece> {
        choices::calls(data)
    }
}
