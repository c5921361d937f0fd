//! The bytes of a request's body.

use serde::Serialize;

use crate::plan::Api;
use crate::units::Decimal;

use super::tokenizer::{Message as Said, Tokenizer, TokenizerError};
use super::{Exchange, Prompt};

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
    /// Sampling temperature.
    pub temperature: Decimal,
    /// Nucleus sampling, where sent.
    pub top_p: Option<Decimal>,
    /// Presence penalty, where sent.
    pub presence_penalty: Option<Decimal>,
    /// Frequency penalty, where sent.
    pub frequency_penalty: Option<Decimal>,
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Vec<Message<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    max_tokens: u32,
    temperature: Decimal,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ignore_eos: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<Decimal>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// The JSON body that sends `prompt` after `history` (empty but in a conversation).
pub fn body(shape: &Shape, history: &[Exchange], prompt: &Prompt) -> Vec<u8> {
    let (messages, text) = match shape.api {
        Api::Chat => (Some(messages(history, prompt)), None),
        Api::Completions => {
            (None, Some(transcript(shape.conversation, history, (prompt.system.as_deref(), &prompt.user))))
        }
    };
    let body = Body {
        model: &shape.model,
        messages,
        prompt: text,
        max_tokens: prompt.output_tokens,
        temperature: shape.temperature,
        stream: shape.stream,
        stream_options: shape.stream.then_some(StreamOptions { include_usage: true }),
        ignore_eos: shape.ignore_eos.then_some(true),
        top_p: shape.top_p,
        presence_penalty: shape.presence_penalty,
        frequency_penalty: shape.frequency_penalty,
    };
    let mut bytes = Vec::with_capacity(text_length(history, (prompt.system.as_deref(), &prompt.user)) * 9 / 8 + 512);
    serde_json::to_writer(&mut bytes, &body).expect("a Vec takes every byte, and the body has only JSON's types");
    bytes
}

/// Tokens that the model is given for a prompt without history, all that the server puts around it included.
pub(super) fn tokens(
    tokenizer: &Tokenizer,
    (api, conversation): (Api, bool),
    (system, user): (Option<&str>, &str),
) -> Result<u32, TokenizerError> {
    match api {
        Api::Chat => {
            let system = system.map(|content| Said { role: "system", content });
            let messages: Vec<Said> = system.into_iter().chain([Said { role: "user", content: user }]).collect();
            tokenizer.chat_tokens(&messages)
        }
        Api::Completions => tokenizer.text_tokens(&transcript(conversation, &[], (system, user))),
    }
}

/// Bytes of all texts, before escaping.
fn text_length(history: &[Exchange], (system, user): (Option<&str>, &str)) -> usize {
    let history: usize = history.iter().map(|turn| turn.user.len() + turn.answer.len() + 64).sum();
    history + user.len() + system.map_or(0, str::len)
}

fn messages<'a>(history: &'a [Exchange], prompt: &'a Prompt) -> Vec<Message<'a>> {
    let system = prompt.system.as_deref().map(|content| Message { role: "system", content });
    let turns = history.iter().flat_map(|turn| {
        [Message { role: "user", content: &turn.user }, Message { role: "assistant", content: &turn.answer }]
    });
    let user = Message { role: "user", content: &prompt.user };
    system.into_iter().chain(turns).chain([user]).collect()
}

/// One text for an API that knows no roles: the system text first, then the user's, an empty line between them.
///
/// A conversation names its speakers, each on a new line, and ends where the answer would begin: `User: …`, `Assistant:`.
/// Answers follow the colon as they came, so that each turn's text begins with all of the turn before, byte for byte.
fn transcript(conversation: bool, history: &[Exchange], (system, user): (Option<&str>, &str)) -> String {
    let mut text = String::with_capacity(text_length(history, (system, user)) + 64);
    if let Some(system) = system {
        text.push_str(system);
        text.push_str("\n\n");
    }
    if !conversation {
        text.push_str(user);
        return text;
    }
    for turn in history {
        for piece in ["User: ", &turn.user, "\nAssistant:", &turn.answer, "\n"] {
            text.push_str(piece);
        }
    }
    for piece in ["User: ", user, "\nAssistant:"] {
        text.push_str(piece);
    }
    text
}
