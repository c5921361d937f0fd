//! The bytes of a request's body in the form of its protocol. They consist of parts shared by all
//! requests of a run, and the texts of one request.

use std::collections::BTreeMap;

use crate::plan::{Json, RequestFields};
use crate::protocol::{Api, Field, Framing, Object, Protocol, Request, Said};

use super::Prompt;
use super::counting::Counting;
use super::exchange::Exchange;
use super::tokenizer::{Message as Counted, TokenizerError};

/// The properties of a body other than its texts; the same for all requests of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestShape {
    /// The model id on the server.
    pub model: String,
    /// The API of the body.
    pub api: Api,
    /// Whether the response is streamed token by token; if so, `usage` is also requested.
    pub stream: bool,
    /// Whether `ignore_eos: true` is sent.
    pub ignore_eos: bool,
    /// Whether prompts are turns of a conversation. If so, the speakers are named with the completions
    /// API, from the first turn on.
    pub conversation: bool,
    /// Sampling parameters and the like.
    pub fields: RequestFields,
    /// Other fields, by name; none of the fields above.
    pub extra: BTreeMap<String, Json>,
}

/// Writes bodies with the same properties.
#[derive(Clone)]
pub struct BodyWriter {
    shape: RequestShape,
    protocol: &'static dyn Protocol,
    /// The common part of all bodies, created once.
    sampling: Vec<Field>,
    extra: Vec<Field>,
}

impl BodyWriter {
    /// Creates a writer for bodies with these properties.
    pub fn new(shape: RequestShape) -> BodyWriter {
        let sampling = shape.fields.sampling.sent().map(|(name, value)| Field::new(name, &value)).collect();
        let extra = shape.extra.iter().map(|(name, value)| Field::new(name, value)).collect();
        BodyWriter { protocol: shape.api.protocol(), sampling, extra, shape }
    }

    /// Returns the common properties of the bodies.
    pub fn shape(&self) -> &RequestShape {
        &self.shape
    }

    /// Returns the JSON body that sends `prompt` after `history` (empty outside of conversations).
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

/// Returns the text of a prompt after its history.
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

/// Returns the number of tokens that the model receives for a prompt after its history, including
/// all text that the server adds around them.
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
