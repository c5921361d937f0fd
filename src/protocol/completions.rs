//! Completions of a text (OpenAI API reference, "Completions"): the prompt is passed to the model without a
//! chat template.

use super::answer::{Part, Wrong};
use super::choices;
use super::contract::{Framing, Protocol};
use super::request::{Object, Request};

/// The text completions protocol.
#[derive(Debug)]
pub(super) struct Completions;

impl Protocol for Completions {
    fn path(&self) -> &'static str {
        "/completions"
    }

    fn framing(&self) -> Framing {
        Framing::Text
    }

    fn prompt_fields(&self) -> &'static [&'static str] {
        &["prompt"]
    }

    fn answer_field(&self) -> &'static str {
        "choices"
    }

    fn body(&self, request: &Request, body: &mut Object) {
        body.put("model", request.model);
        body.put("prompt", &request.said.transcript());
        choices::put_rest(request, body);
    }

    fn event<'a>(&self, data: &'a [u8]) -> Result<Part<'a>, Wrong> {
        choices::part(data)
    }
}
