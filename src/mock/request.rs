//! Parses the JSON of a generation request, and counts the tokens of its prompt.

use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::chain::{Chain, Kind};
use super::tokens::tokens;

/// The markers of the chat template. The template adds four tokens to each chat message (its role and three
/// markers), and three tokens before the response, as OpenAI's cookbook counts for its chat models. If a
/// response is later sent as a message of the history, it therefore follows the same tokens as when it was
/// generated.
pub(super) const START: &str = "start";
pub(super) const TEXT: &str = "text";
pub(super) const END: &str = "end";
/// The role of the response's message.
const ANSWERER: &str = "assistant";

/// Maximum number of tokens that a request may ask for. The limit is far beyond any context length; it bounds
/// memory use.
const MOST_TOKENS: u64 = 10_000_000;

/// The APIs for generation requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(super) enum Api {
    Chat,
    Completions,
    Responses,
    Messages,
    Embeddings,
    Rerank,
}

impl Api {
    /// Returns the name of the API in the log.
    pub(super) fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the API at a path, which is given without the base path; `None` if no API has this path.
    pub(super) fn at(path: &str) -> Option<Api> {
        Some(match path {
            "/chat/completions" => Api::Chat,
            "/completions" => Api::Completions,
            "/responses" => Api::Responses,
            "/messages" => Api::Messages,
            "/embeddings" => Api::Embeddings,
            "/rerank" => Api::Rerank,
            _ => return None,
        })
    }

    /// Whether the API's responses have a field for reasoning.
    pub(super) fn tells_reasoning(self) -> bool {
        matches!(self, Api::Chat | Api::Responses | Api::Messages)
    }

    /// Whether the API's streams always report the usage, regardless of the request.
    pub(super) fn always_tells_usage(self) -> bool {
        matches!(self, Api::Responses | Api::Messages)
    }
}

/// A generation request, with everything on which the response depends. Other fields of a request body are
/// accepted but have no effect.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) api: Api,
    pub(super) model: String,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    pub(super) max_tokens: u32,
    /// Number of requested vectors or scores; 0 if tokens are requested.
    pub(super) values: usize,
    pub(super) ignore_eos: bool,
    pub(super) seed: u64,
    pub(super) prompt_tokens: u64,
    /// The prompt's tokens, grouped into blocks for the prefix cache; `None` without a cache.
    pub(super) chain: Option<Chain>,
    /// SHA-256 over the texts of the prompt (the contents of the messages), each followed by a line feed.
    pub(super) digest: [u8; 32],
}

#[derive(Deserialize)]
struct Body {
    model: Option<String>,
    messages: Option<Vec<Message>>,
    system: Option<Value>,
    prompt: Option<Value>,
    input: Option<Value>,
    query: Option<Value>,
    documents: Option<Vec<Value>>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    max_output_tokens: Option<u64>,
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
    role: String,
    #[serde(default)]
    content: Value,
}

/// A prompt that is being read: its digest, its length and its blocks.
struct Prompt {
    hash: Sha256,
    tokens: u64,
    chain: Option<Chain>,
}

impl Prompt {
    fn token(&mut self, kind: Kind, token: &str) {
        self.tokens += 1;
        if let Some(chain) = &mut self.chain {
            chain.push(kind, token);
        }
    }

    fn text(&mut self, text: &str) {
        self.hash.update(text.as_bytes());
        self.hash.update(b"\n");
        tokens(text).for_each(|token| self.token(Kind::Word, token));
    }

    /// Reads a text, token ids, or a list of these. In chat contents, a list contains parts, each with a
    /// `text`.
    fn value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Number(id) => {
                let id = id.to_string();
                self.hash.update(&id);
                self.hash.update(b"\n");
                self.token(Kind::Id, &id);
            }
            Value::Array(parts) => parts.iter().for_each(|part| self.value(part)),
            Value::Object(part) => part.get("text").into_iter().for_each(|text| self.value(text)),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Adds the tokens with which a message begins: its role and two markers.
    fn open(&mut self, role: &str) {
        self.token(Kind::Mark, START);
        self.token(Kind::Role, role);
        self.token(Kind::Mark, TEXT);
    }

    fn messages(&mut self, messages: &[Message]) {
        for Message { role, content } in messages {
            self.open(role);
            self.value(content);
            self.token(Kind::Mark, END);
        }
        self.open(ANSWERER);
    }
}

impl Request {
    /// Parses a request body. The error is a message for the client. `block` is the number of tokens per
    /// block of the prefix cache; `None` without a cache.
    pub(super) fn parse(api: Api, body: &[u8], block: Option<u32>) -> Result<Request, String> {
        let body: Body = serde_json::from_slice(body).map_err(|error| format!("invalid request body: {error}"))?;
        let model = body.model.unwrap_or_default();
        let chain = block.map(|block| Chain::new(block, &model));
        let mut prompt = Prompt { hash: Sha256::new(), tokens: 0, chain };
        let mut values = 0;
        match api {
            Api::Chat => match &body.messages {
                Some(messages) if !messages.is_empty() => prompt.messages(messages),
                _ => return Err("`messages` is missing or empty".into()),
            },
            Api::Messages => match body.messages {
                Some(messages) if !messages.is_empty() => {
                    let system = body.system.map(|content| Message { role: "system".to_owned(), content });
                    prompt.messages(&system.into_iter().chain(messages).collect::<Vec<_>>());
                }
                _ => return Err("messages: at least one message is required".into()),
            },
            Api::Completions => prompt.value(body.prompt.as_ref().ok_or("`prompt` is missing")?),
            Api::Responses => match body.input.as_ref().ok_or("`input` is missing")? {
                Value::String(text) => {
                    prompt.messages(&[Message { role: "user".to_owned(), content: text.as_str().into() }]);
                }
                items => {
                    let messages = Vec::<Message>::deserialize(items);
                    prompt.messages(&messages.map_err(|error| format!("`input` is not a list of messages: {error}"))?);
                }
            },
            Api::Embeddings => {
                let input = body.input.as_ref().ok_or("`input` is missing")?;
                prompt.value(input);
                values = input.as_array().map_or(1, Vec::len);
            }
            Api::Rerank => {
                let query = body.query.as_ref().ok_or("`query` is missing")?;
                let documents = body.documents.as_ref().ok_or("`documents` is missing")?;
                for document in documents {
                    prompt.value(query);
                    prompt.value(document);
                }
                values = documents.len();
            }
        }
        let asked = body.max_output_tokens.or(body.max_completion_tokens).or(body.max_tokens);
        if api == Api::Messages && body.max_tokens.is_none() {
            return Err("max_tokens: Field required".into());
        }
        let max_tokens = asked.unwrap_or(16);
        if !(1..=MOST_TOKENS).contains(&max_tokens) {
            return Err(format!("`max_tokens` is {max_tokens}: request 1 to {MOST_TOKENS}"));
        }
        if body.n.is_some_and(|n| n != 1) {
            return Err("`n` is not 1: only one response per request is supported".into());
        }
        Ok(Request {
            api,
            model,
            stream: body.stream.unwrap_or(false),
            include_usage: body.stream_options.is_some_and(|options| options.include_usage),
            max_tokens: max_tokens as u32,
            values,
            ignore_eos: body.ignore_eos.unwrap_or(false),
            seed: body.seed.unwrap_or(0) as u64,
            prompt_tokens: prompt.tokens,
            chain: prompt.chain,
            digest: prompt.hash.finalize().into(),
        })
    }

    /// Returns the seed for the response's text, which depends on the prompt and the request's `seed`.
    pub(super) fn text_seed(&self) -> u64 {
        let (head, _) = self.digest.split_at(8);
        u64::from_le_bytes(head.try_into().expect("eight bytes")) ^ self.seed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(api: Api, body: &str) -> Result<Request, String> {
        Request::parse(api, body.as_bytes(), Some(4))
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
    fn a_prompt_that_goes_on_has_the_same_blocks() {
        let blocks = |api, body: &str| parse(api, body).unwrap().chain.unwrap().blocks().to_vec();
        let chat = |messages: &str| blocks(Api::Chat, &format!(r#"{{"model":"m","messages":[{messages}]}}"#));
        let (user, answer) = (r#"{"role":"user","content":"a b c d"}"#, r#"{"role":"assistant","content":"e f"}"#);
        let (once, twice) = (chat(user), chat(&[user, answer, user].join(",")));
        // A block has 4 tokens. The first prompt has 11: 8 for the message, and 3 before the response. The
        // second has 25: the same 11, then `e f` and the marker after it, and 11 again.
        assert_eq!((once.len(), twice.len()), (2, 6));
        assert_eq!(once, twice[..2]);
        assert_ne!(once, chat(r#"{"role":"system","content":"a b c d"}"#));
        assert_ne!(once, blocks(Api::Chat, &format!(r#"{{"model":"n","messages":[{user}]}}"#)));
        let text = |prompt: &str| blocks(Api::Completions, &format!(r#"{{"prompt":{prompt}}}"#));
        assert_eq!(text(r#""1 2 3 4 5""#), text(r#"["1 2","3 4"]"#));
        assert_ne!(text(r#""1 2 3 4""#), text("[1,2,3,4]"));
    }

    #[test]
    fn the_newer_limit_wins_and_mistakes_are_named() {
        let request = parse(Api::Completions, r#"{"prompt":"x","max_tokens":5,"max_completion_tokens":7}"#).unwrap();
        assert_eq!(request.max_tokens, 7);
        let error = |body| parse(Api::Chat, body).unwrap_err();
        assert!(error("{").starts_with("invalid request body"));
        assert_eq!(error(r#"{"messages":[]}"#), "`messages` is missing or empty");
        assert!(error(r#"{"messages":[{}],"max_tokens":0}"#).contains("`max_tokens` is 0"));
        assert!(error(r#"{"messages":[{}],"n":2}"#).contains("`n`"));
    }
}
