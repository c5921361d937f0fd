//! The generation request: what is read of its JSON, and how its prompt is counted.

use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::words::count;

/// Tokens that the template puts around each chat message (role and its marks), and once before the answer; the
/// figures of OpenAI's cookbook for its chat models.
const TEMPLATE_PER_MESSAGE: u64 = 4;
const TEMPLATE_PER_PROMPT: u64 = 3;

/// Longest answer that is accepted, in tokens; far beyond any context length, and a bound on memory.
const MOST_TOKENS: u64 = 10_000_000;

/// The two dialects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    Chat,
    Completions,
}

impl Api {
    /// The name in the log.
    pub(super) fn name(self) -> &'static str {
        match self {
            Api::Chat => "chat",
            Api::Completions => "completions",
        }
    }
}

/// What the answer depends on. Other fields of a request are accepted and have no effect.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) api: Api,
    pub(super) model: String,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    pub(super) max_tokens: u32,
    pub(super) ignore_eos: bool,
    pub(super) seed: u64,
    pub(super) prompt_tokens: u64,
    /// SHA-256 of the prompt's texts (messages' contents), each followed by a line feed.
    pub(super) digest: [u8; 32],
}

#[derive(Deserialize)]
struct Body {
    model: Option<String>,
    messages: Option<Vec<Message>>,
    prompt: Option<Value>,
    #[serde(default)]
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    ignore_eos: Option<bool>,
    seed: Option<i64>,
    n: Option<u64>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    content: Value,
}

/// A prompt being read: its digest and its length.
#[derive(Default)]
struct Prompt {
    hash: Sha256,
    tokens: u64,
}

impl Prompt {
    fn text(&mut self, text: &str) {
        self.hash.update(text.as_bytes());
        self.hash.update(b"\n");
        self.tokens += count(text);
    }

    /// A text, token ids, or a list of either; chat contents are lists of parts with a `text` each.
    fn value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Number(id) => {
                self.hash.update(id.to_string().as_bytes());
                self.hash.update(b"\n");
                self.tokens += 1;
            }
            Value::Array(parts) => parts.iter().for_each(|part| self.value(part)),
            Value::Object(part) => part.get("text").into_iter().for_each(|text| self.value(text)),
            Value::Null | Value::Bool(_) => {}
        }
    }
}

impl Request {
    /// Reads a body; the error is a sentence for the client.
    pub(super) fn parse(api: Api, body: &[u8]) -> Result<Request, String> {
        let body: Body = serde_json::from_slice(body).map_err(|error| format!("the body is no request: {error}"))?;
        let mut prompt = Prompt::default();
        match (api, &body.messages, &body.prompt) {
            (Api::Chat, Some(messages), _) if !messages.is_empty() => {
                messages.iter().for_each(|message| prompt.value(&message.content));
                prompt.tokens += TEMPLATE_PER_PROMPT + TEMPLATE_PER_MESSAGE * messages.len() as u64;
            }
            (Api::Chat, ..) => return Err("`messages` is missing or empty".into()),
            (Api::Completions, _, Some(text)) => prompt.value(text),
            (Api::Completions, ..) => return Err("`prompt` is missing".into()),
        }
        let max_tokens = body.max_completion_tokens.or(body.max_tokens).unwrap_or(16);
        if !(1..=MOST_TOKENS).contains(&max_tokens) {
            return Err(format!("`max_tokens` is {max_tokens}: ask for 1 to {MOST_TOKENS}"));
        }
        if body.n.is_some_and(|n| n != 1) {
            return Err("`n` is not 1: one answer per request is all there is".into());
        }
        Ok(Request {
            api,
            model: body.model.unwrap_or_default(),
            stream: body.stream.unwrap_or(false),
            include_usage: body.stream_options.is_some_and(|options| options.include_usage),
            max_tokens: max_tokens as u32,
            ignore_eos: body.ignore_eos.unwrap_or(false),
            seed: body.seed.unwrap_or(0) as u64,
            prompt_tokens: prompt.tokens,
            digest: prompt.hash.finalize().into(),
        })
    }

    /// What the text of the answer is made from: the prompt and the request's `seed`.
    pub(super) fn text_seed(&self) -> u64 {
        let (head, _) = self.digest.split_at(8);
        u64::from_le_bytes(head.try_into().expect("eight bytes")) ^ self.seed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(api: Api, body: &str) -> Result<Request, String> {
        Request::parse(api, body.as_bytes())
    }

    #[test]
    fn prompts_of_every_form_are_counted() {
        let chat = |content: &str| {
            let body =
                format!(r#"{{"messages":[{{"role":"user","content":{content}}}],"temperature":0.5,"stop":["x"]}}"#);
            parse(Api::Chat, &body).unwrap()
        };
        assert_eq!(chat(r#""one two""#).prompt_tokens, 2 + 4 + 3);
        let parts = chat(r#"[{"type":"text","text":"one two"}]"#);
        assert_eq!(parts.prompt_tokens, 9);
        assert_eq!(parts.digest, chat(r#""one two""#).digest);
        for (prompt, tokens) in [(r#""a b c""#, 3), (r#"["a","b"]"#, 2), ("[5,6,7,8]", 4), ("[[1,2],[3]]", 3)] {
            let request = parse(Api::Completions, &format!(r#"{{"prompt":{prompt}}}"#)).unwrap();
            assert_eq!((request.prompt_tokens, request.max_tokens), (tokens, 16), "{prompt}");
        }
    }

    #[test]
    fn the_newer_limit_wins_and_mistakes_are_named() {
        let request = parse(Api::Completions, r#"{"prompt":"x","max_tokens":5,"max_completion_tokens":7}"#).unwrap();
        assert_eq!(request.max_tokens, 7);
        let error = |body| parse(Api::Chat, body).unwrap_err();
        assert!(error("{").starts_with("the body is no request"));
        assert_eq!(error(r#"{"messages":[]}"#), "`messages` is missing or empty");
        assert!(error(r#"{"messages":[{}],"max_tokens":0}"#).contains("`max_tokens` is 0"));
        assert!(error(r#"{"messages":[{}],"n":2}"#).contains("`n`"));
    }
}
