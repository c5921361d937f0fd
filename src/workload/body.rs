//! The bytes of a request's body: what a run says of all of its requests, and what one of them says, in its protocol's form.

use std::collections::BTreeMap;

use crate::plan::{Json, RequestFields};
use crate::protocol::{Api, Field, Framing, Object, Protocol, Request, Said};

use super::Prompt;
use super::counting::Counting;
use super::exchange::Exchange;
use super::tokenizer::{Message as Counted, TokenizerError};

/// What decides a body besides its text; the same for all requests of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestShape {
    /// The model id as the server knows it.
    pub model: String,
    /// Which API the body is for.
    pub api: Api,
    /// Whether the answer is to come token by token; the server is then asked for its `usage` too.
    pub stream: bool,
    /// Whether `ignore_eos: true` is sent.
    pub ignore_eos: bool,
    /// Whether prompts are turns of a conversation: the completions API then names the speakers, from the first turn on.
    pub conversation: bool,
    /// Sampling parameters and the like.
    pub fields: RequestFields,
    /// Further fields, by name; none of those above.
    pub extra: BTreeMap<String, Json>,
}

/// Writes the bodies of one shape.
#[derive(Clone)]
pub struct BodyWriter {
    shape: RequestShape,
    protocol: &'static dyn Protocol,
    /// What all bodies have alike, made once.
    sampling: Vec<Field>,
    extra: Vec<Field>,
}

impl BodyWriter {
    /// For bodies of this shape.
    pub fn new(shape: RequestShape) -> BodyWriter {
        let sampling = shape.fields.sampling.sent().map(|(name, value)| Field::new(name, &value)).collect();
        let extra = shape.extra.iter().map(|(name, value)| Field::new(name, value)).collect();
        BodyWriter { protocol: shape.api.protocol(), sampling, extra, shape }
    }

    /// What all of them have alike.
    pub fn shape(&self) -> &RequestShape {
        &self.shape
    }

    /// The JSON body that sends `prompt` after `history` (empty but in a conversation).
    pub fn write(&self, history: &[Exchange], prompt: &Prompt) -> Vec<u8> {
        let RequestShape { model, stream, ignore_eos, conversation, fields, .. } = &self.shape;
        let said = said(*conversation, history, prompt);
        let mut body = Object::with_capacity(said.length() * 9 / 8 + 512);
        let request = Request {
            model,
            said,
            output_tokens: prompt.output_tokens,
            length_field: fields.length_field.name(),
            stream: *stream,
            ignore_eos: *ignore_eos,
            sampling: &self.sampling,
            stop: &fields.stop,
            extra: &self.extra,
        };
        self.protocol.body(&request, &mut body);
        body.end()
    }
}

/// What a prompt says after its history.
fn said<'a>(is_conversation: bool, history: &'a [Exchange], prompt: &'a Prompt) -> Said<'a> {
    Said {
        system: prompt.system.as_deref(),
        history: history.iter().map(|turn| (&*turn.user, &*turn.answer)).collect(),
        user: &prompt.user,
        more: &prompt.more,
        own_nonce: prompt.own_nonce.as_deref(),
        is_conversation,
    }
}

/// Tokens that the model is given for a prompt behind its history, all that the server puts around them included.
pub(super) fn tokens(
    counting: &Counting,
    conversation: bool,
    history: &[Exchange],
    prompt: &Prompt,
) -> Result<u32, TokenizerError> {
    let said = said(conversation, history, prompt);
    match counting.framing {
        Framing::Chat => {
            let messages = said.messages();
            let counted: Vec<Counted> =
                messages.iter().map(|message| Counted { role: message.role, content: &message.content }).collect();
            counting.tokenizer.chat_tokens(&counted)
        }
        Framing::Text => counting.tokenizer.text_tokens(&said.transcript()),
    }
}
