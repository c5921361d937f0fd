//! Writes request bodies in the format of their API. A body consists of parts that are common to all requests
//! of a run, and of the texts of one request.

use std::collections::BTreeMap;

use crate::plan::{Json, RequestFields};
use crate::protocol::{Api, Field, Framing, Object, Protocol, Request, Said};

use super::Prompt;
use super::counting::Counting;
use super::exchange::Exchange;
use super::tokenizer::{Message as Counted, TokenizerError};

/// The properties of a body other than its texts. They are the same for all requests of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestShape {
    /// The id of the model on the server.
    pub model: String,
    /// The API for which the body is written.
    pub api: Api,
    /// Whether the response is streamed token by token; if so, `usage` is also requested.
    pub stream: bool,
    /// Whether `ignore_eos: true` is sent.
    pub ignore_eos: bool,
    /// Whether prompts are turns of a conversation. If so, texts for the completions API name the speakers,
    /// from the first turn on.
    pub conversation: bool,
    /// The plan's request fields, such as sampling parameters.
    pub fields: RequestFields,
    /// Additional fields of the body, by name. None of them repeats a field that the other properties set.
    pub extra: BTreeMap<String, Json>,
}

/// Writes bodies with the same properties.
#[derive(Clone)]
pub struct BodyWriter {
    shape: RequestShape,
    protocol: &'static dyn Protocol,
    /// The sampling parameters of all bodies, encoded once.
    sampling: Vec<Field>,
    extra: Vec<Field>,
}

impl BodyWriter {
    /// Creates a writer of bodies with these properties.
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

/// Returns the texts of a prompt and of the history before it.
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

/// Returns the number of tokens that the model receives for a prompt and the history before it, including
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
