//! Requests token counts from a server before a run, using `/tokenize` of vLLM, SGLang and llama.cpp.
//!
//! vLLM counts texts and chats. SGLang counts only texts, so a chat is counted by the `usage` of a request
//! for one token. llama.cpp counts texts, and converts a chat to a text with `/apply-template`.

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::probe::{ProbeError, Question, body, refusal, send, unreachable};
use crate::network::{Client, Request};

/// Maximum number of concurrent requests.
const AT_ONCE: usize = 16;

/// The engines that have `/tokenize`, each in its own form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Vllm,
    Sglang,
    LlamaCpp,
}

/// A server that counts tokens.
pub struct Counter {
    asker: Asker,
    dialect: Dialect,
    runtime: Runtime,
}

/// The settings that all requests share.
#[derive(Clone)]
struct Asker {
    client: Client,
    question: Question,
    /// Where the server counts.
    place: Place,
}

/// Where a server has its pages for counting.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// At the server's root.
    Root,
    /// Below the API's base address.
    Base,
}

/// A chat message: its role and its text.
pub type Message<'a> = (&'static str, &'a str);

impl Counter {
    /// Looks for `/tokenize` at the server's root and at the API's base address; `None` if neither has it.
    pub fn find(question: &Question) -> Result<Option<Counter>, ProbeError> {
        let gone = |reason: String| unreachable(question, reason);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| gone(error.to_string()))?;
        let client = super::probe::client_that_keeps(question, AT_ONCE).map_err(|error| gone(error.to_string()))?;
        for place in [Place::Root, Place::Base] {
            let asker = Asker { client: client.clone(), question: question.clone(), place };
            if let Some(dialect) = runtime.block_on(asker.dialect())? {
                return Ok(Some(Counter { asker, dialect, runtime }));
            }
        }
        Ok(None)
    }

    /// Returns the number of tokens of each text. If `is_prompt` is set, the special tokens that the server
    /// adds to every prompt are included.
    pub fn texts(&self, texts: &[String], is_prompt: bool) -> Result<Vec<u64>, ProbeError> {
        self.runtime.block_on(async {
            let mut asking = JoinSet::new();
            for (at, part) in texts.chunks(texts.len().div_ceil(AT_ONCE).max(1)).enumerate() {
                let (asker, dialect, part) = (self.asker.clone(), self.dialect, part.to_vec());
                asking.spawn(async move {
                    let mut counts = Vec::with_capacity(part.len());
                    for text in &part {
                        counts.push(asker.text(dialect, text, is_prompt).await?);
                    }
                    Ok::<_, ProbeError>((at, counts))
                });
            }
            let mut parts = Vec::new();
            while let Some(part) = asking.join_next().await {
                parts.push(part.map_err(|error| unreachable(&self.asker.question, error.to_string()))??);
            }
            parts.sort_unstable_by_key(|(at, _)| *at);
            Ok(parts.into_iter().flat_map(|(_, counts)| counts).collect())
        })
    }

    /// Returns the number of tokens of a chat's prompt, including the tokens that introduce the response.
    pub fn chat(&self, messages: &[Message]) -> Result<u64, ProbeError> {
        self.runtime.block_on(self.asker.chat(self.dialect, messages))
    }
}

impl Asker {
    /// Determines the engine by the requests that `/tokenize` accepts: a chat (vLLM), a text (SGLang), or
    /// `content` (llama.cpp). Returns `None` if it accepts none of them.
    async fn dialect(&self) -> Result<Option<Dialect>, ProbeError> {
        let chat = json!({ "model": self.question.model, "messages": list(&[("user", "Hello.")]) });
        let text = json!({ "model": self.question.model, "prompt": "Hello." });
        let content = json!({ "content": "Hello." });
        let asked = [(Dialect::Vllm, chat), (Dialect::Sglang, text), (Dialect::LlamaCpp, content)];
        for (dialect, asked) in asked {
            let answer = match self.post("/tokenize", &asked).await {
                Ok(answer) => answer,
                Err(ProbeError::Refused { .. }) => continue,
                Err(error) => return Err(error),
            };
            if dialect.count(&answer).is_some_and(|tokens| tokens > 0) {
                return Ok(Some(dialect));
            }
        }
        Ok(None)
    }

    async fn text(&self, dialect: Dialect, text: &str, is_prompt: bool) -> Result<u64, ProbeError> {
        let asked = match dialect {
            Dialect::Vllm | Dialect::Sglang => {
                json!({ "model": self.question.model, "prompt": text, "add_special_tokens": is_prompt })
            }
            Dialect::LlamaCpp => json!({ "content": text, "add_special": is_prompt, "parse_special": true }),
        };
        let answer = self.post("/tokenize", &asked).await?;
        dialect.count(&answer).ok_or_else(|| self.no_count("/tokenize"))
    }

    async fn chat(&self, dialect: Dialect, messages: &[Message<'_>]) -> Result<u64, ProbeError> {
        let (model, messages) = (&self.question.model, list(messages));
        match dialect {
            Dialect::Vllm => {
                let asked = json!({ "model": model, "messages": messages, "add_generation_prompt": true });
                let answer = self.post("/tokenize", &asked).await?;
                dialect.count(&answer).ok_or_else(|| self.no_count("/tokenize"))
            }
            Dialect::Sglang => {
                let asked = json!({ "model": model, "messages": messages, "max_tokens": 1, "temperature": 0 });
                let path = self.question.address().of_api("/chat/completions");
                let answer = self.post_to(&path, &asked).await?;
                answer["usage"]["prompt_tokens"].as_u64().ok_or_else(|| self.no_count("usage"))
            }
            Dialect::LlamaCpp => {
                let answer = self.post("/apply-template", &json!({ "messages": messages })).await?;
                let text = answer["prompt"].as_str().ok_or_else(|| self.no_count("/apply-template"))?;
                self.text(dialect, text, true).await
            }
        }
    }

    /// Requests one of the server's pages for counting.
    async fn post(&self, page: &str, asked: &Value) -> Result<Value, ProbeError> {
        let path = match self.place {
            Place::Root => self.question.address().beside_api(page),
            Place::Base => self.question.address().of_api(page),
        };
        self.post_to(&path, asked).await
    }

    async fn post_to(&self, path: &str, asked: &Value) -> Result<Value, ProbeError> {
        let request = Request::post(path, asked.to_string());
        let response = send(&self.client, request, &self.question).await?;
        if response.status().is_success() {
            body(response, &self.question).await
        } else {
            Err(refusal(&self.question, response).await)
        }
    }

    fn no_count(&self, place: &str) -> ProbeError {
        let reason = format!("its {place} returns no token count");
        ProbeError::Refused { url: self.question.shown(), status: 200, reason, retry_after: None }
    }
}

impl Dialect {
    /// Returns the token count in a response of `/tokenize`; `None` if it contains none.
    fn count(self, answer: &Value) -> Option<u64> {
        match self {
            Dialect::Vllm | Dialect::Sglang => answer["count"].as_u64(),
            Dialect::LlamaCpp => Some(answer["tokens"].as_array()?.len() as u64),
        }
    }
}

fn list(messages: &[Message<'_>]) -> Value {
    messages.iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}
