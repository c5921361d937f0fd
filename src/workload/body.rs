//! The bytes of a request's body.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::plan::{Api, Json, LengthField, RequestFields, Sampling};

use super::counting::Counting;
use super::exchange::Exchange;
use super::tokenizer::{Message as Said, TokenizerError};
use super::{Prompt, nonce};

/// What decides a body besides its text; the same for all requests of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
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

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Vec<Message<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(flatten)]
    sampling: &'a Sampling,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ignore_eos: Option<bool>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop: &'a [String],
    #[serde(flatten)]
    extra: &'a BTreeMap<String, Json>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Cow<'a, str>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// The JSON body that sends `prompt` after `history` (empty but in a conversation).
pub fn body(shape: &Shape, history: &[Exchange], prompt: &Prompt) -> Vec<u8> {
    let (messages, text) = match shape.api {
        Api::Chat => (Some(messages(history, prompt)), None),
        Api::Completions => (None, Some(transcript(shape.conversation, history, prompt))),
    };
    let asked = |field: LengthField| (shape.fields.length_field == field).then_some(prompt.output_tokens);
    let body = Body {
        model: &shape.model,
        messages,
        prompt: text,
        max_tokens: asked(LengthField::MaxTokens),
        max_completion_tokens: asked(LengthField::MaxCompletionTokens),
        sampling: &shape.fields.sampling,
        stream: shape.stream,
        stream_options: shape.stream.then_some(StreamOptions { include_usage: true }),
        ignore_eos: shape.ignore_eos.then_some(true),
        stop: &shape.fields.stop,
        extra: &shape.extra,
    };
    let mut bytes = Vec::with_capacity(text_length(history, prompt) * 9 / 8 + 512);
    serde_json::to_writer(&mut bytes, &body).expect("a Vec takes every byte, and the body has only JSON's types");
    bytes
}

/// Tokens that the model is given for a prompt behind its history, all that the server puts around them included.
pub(super) fn tokens(
    counting: &Counting,
    conversation: bool,
    history: &[Exchange],
    prompt: &Prompt,
) -> Result<u32, TokenizerError> {
    match counting.api {
        Api::Chat => {
            let messages = messages(history, prompt);
            let said: Vec<Said> =
                messages.iter().map(|message| Said { role: message.role, content: &message.content }).collect();
            counting.tokenizer.chat_tokens(&said)
        }
        Api::Completions => counting.tokenizer.text_tokens(&transcript(conversation, history, prompt)),
    }
}

/// Bytes of all texts, before escaping.
fn text_length(history: &[Exchange], prompt: &Prompt) -> usize {
    let history: usize = history.iter().map(|turn| turn.user.len() + turn.answer.len() + 64).sum();
    history + prompt.user.len() + prompt.system.as_ref().map_or(0, |system| system.len())
}

fn messages<'a>(history: &'a [Exchange], prompt: &'a Prompt) -> Vec<Message<'a>> {
    let message = |role, content: &'a str| Message { role, content: content.into() };
    let system = prompt.system.as_deref().map(|content| message("system", content));
    let turns = history.iter().flat_map(|turn| [message("user", &turn.user), message("assistant", &turn.answer)]);
    let mut messages: Vec<Message> = system.into_iter().chain(turns).chain([message("user", &prompt.user)]).collect();
    if let (Some(first), Some(own)) = (messages.first_mut(), &prompt.own_nonce) {
        first.content = format!("{own}{}", nonce::strip(&first.content)).into();
    }
    messages
}

/// One text for an API that knows no roles: the system text first, then the user's, an empty line between them.
///
/// A conversation names its speakers, each on a new line, and ends where the answer would begin: `User: …`, `Assistant:`.
/// Answers follow the colon as they came, so that each turn's text begins with all of the turn before, byte for byte.
fn transcript(conversation: bool, history: &[Exchange], prompt: &Prompt) -> String {
    let mut text = String::with_capacity(text_length(history, prompt) + 64);
    if let Some(system) = &prompt.system {
        text.push_str(system);
        text.push_str("\n\n");
    }
    if conversation {
        for turn in history {
            for piece in ["User: ", &turn.user, "\nAssistant:", &turn.answer, "\n"] {
                text.push_str(piece);
            }
        }
        for piece in ["User: ", &prompt.user, "\nAssistant:"] {
            text.push_str(piece);
        }
    } else {
        text.push_str(&prompt.user);
    }
    match &prompt.own_nonce {
        Some(own) => opened(conversation && prompt.system.is_none(), own, text),
        None => text,
    }
}

/// The transcript with `own` in the place of the nonce that opens it; a speaker's name comes after it.
fn opened(speaker_first: bool, own: &str, text: String) -> String {
    let speaker = if speaker_first { "User: " } else { "" };
    let said = text.strip_prefix(speaker).unwrap_or(&text);
    format!("{own}{speaker}{}", nonce::strip(said))
}
