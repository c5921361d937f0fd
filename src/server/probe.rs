//! A look at a server before it is measured: does it answer, does it know the model, does it generate? It sends one
//! request for the list of models and one for a generation, a second one where the server wants the length under another name.

use std::time::Duration;

use reqwest::header::RETRY_AFTER;
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::Value;

use super::self_description::SelfDescription;
use super::way::Way;
use crate::plan::{Api, LengthField};
use crate::protocol::{Object, Request, Usage};
use crate::units::Nanos;
use crate::units::secrecy::without_secrets;
use crate::units::text::is_unseen;

/// What the one generation is asked: short, and of the kind that every model takes.
pub const PROMPT: &str = "Say hello.";

/// The longest that a probe waits for each of its answers. A server that is ready gives four tokens in less.
pub(super) const LONGEST_WAIT: Nanos = Nanos::from_secs(10);
/// How many of a server's models an error names.
const FEW_MODELS: usize = 20;
/// The longest that a server's `Retry-After` is kept.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(3600);
/// The most of a server's words that is shown or stored, in characters.
const LONGEST_WORDS: usize = 200;
/// The most model names that are taken from a server's list.
pub(super) const MOST_MODELS: usize = 1000;

/// What is asked.
#[derive(Debug, Clone)]
pub struct Question {
    /// Base address of the API.
    pub url: String,
    /// The API key, revealed for sending only.
    pub api_key: Option<String>,
    /// Name and value of further headers, secrets revealed for sending only.
    pub headers: Vec<[String; 2]>,
    /// The secrets among the headers of its runs: shown nowhere.
    pub secrets: Vec<String>,
    /// Accept any certificate.
    pub insecure_tls: bool,
    /// Whether it is asked over HTTP/2, as its runs are.
    pub http2: bool,
    /// Which API is called.
    pub api: Api,
    /// A path of the server, from its root, that answers with 2xx once it is ready; asked before anything else.
    pub ready: Option<String>,
    /// The model to generate with.
    pub model: String,
    /// For a connection to open.
    pub connect: Nanos,
    /// For each of the two answers.
    pub within: Nanos,
}

impl Question {
    /// Where the list of models is.
    pub(super) fn models_url(&self) -> String {
        format!("{}/models", self.url.trim_end_matches('/'))
    }

    /// The address without the API's own part of the path: where servers have their other pages.
    pub(super) fn root(&self) -> &str {
        let base = self.url.trim_end_matches('/');
        base.strip_suffix("/v1").unwrap_or(base)
    }

    /// Where it is asked whether the server is ready: a path of this server, whatever it looks like, or else its list of models.
    pub(super) fn ready_url(&self) -> Result<reqwest::Url, String> {
        let Some(ready) = &self.ready else {
            let models = format!("{}/models", self.url.trim_end_matches('/'));
            return reqwest::Url::parse(&models).map_err(|error| error.to_string());
        };
        self.url_of(ready)
    }

    /// The address of a path of this server, from its root, with its query.
    pub(super) fn url_of(&self, path: &str) -> Result<reqwest::Url, String> {
        let mut whole = reqwest::Url::parse(&self.url).map_err(|error| error.to_string())?;
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        whole.set_path(path);
        whole.set_query(query);
        Ok(whole)
    }

    /// A request with the key and the headers that all questions carry.
    pub(super) fn signed(&self, request: RequestBuilder) -> RequestBuilder {
        let request = match &self.api_key {
            Some(key) => request.bearer_auth(key),
            None => request,
        };
        let request = request.header("x-request-id", "sweepline-probe");
        self.headers.iter().fold(request, |request, [name, value]| request.header(name, value))
    }

    /// A text without the secrets, wherever they stand.
    pub fn without_key(&self, text: &str) -> String {
        let secrets = self.api_key.iter().chain(&self.secrets);
        without_secrets(text, secrets.map(String::as_str), "[secret]")
    }

    /// The address as it is shown: somebody may have put the key into it, too.
    pub(super) fn shown(&self) -> String {
        self.without_key(&self.url)
    }

    /// The beginning of a server's words, fit for a terminal: without what a terminal obeys or hides, and without the key,
    /// which servers like to repeat. The key first: a cut could leave a part of it.
    pub(super) fn presentable(&self, text: &str) -> String {
        self.without_key(text).chars().filter(|c| !is_unseen(*c)).take(LONGEST_WORDS).collect()
    }
}

/// What the server said of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Found {
    /// Its `Server` header.
    pub server: Option<String>,
    /// The models it lists; empty when it has no list.
    pub models: Vec<String>,
    /// The model that answered, by its own words.
    pub model: Option<String>,
    /// Prompt tokens of the generation, as the server counted them.
    pub prompt_tokens: Option<u64>,
    /// Output tokens of the generation, as the server counted them.
    pub output_tokens: Option<u64>,
    /// The way to it; nothing of it is known to the probe itself.
    pub way: Way,
    /// Why it is not near, where the plan says that it is.
    pub not_near: Option<String>,
    /// What it is, by its own words; empty where it was not asked that.
    #[serde(skip)]
    pub said: SelfDescription,
}

impl Found {
    /// The models it lists, at most so many by name.
    pub fn listed(&self, most: usize) -> String {
        let names = self.models.iter().take(most).map(String::as_str).collect::<Vec<_>>().join(", ");
        match self.models.len().saturating_sub(most) {
            0 => names,
            more => format!("{names} and {more} more"),
        }
    }
}

/// What is asked of a person whose server does not answer.
pub const IS_IT_THERE: &str = "; is the server running, and is its address right?";

/// Why a server cannot be measured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// No connection, or none in time.
    #[error("{url} does not answer: {reason}{}", IS_IT_THERE)]
    Unreachable {
        /// The address.
        url: String,
        /// Why.
        reason: String,
    },
    /// It took the question and did not answer it in time.
    #[error(
        "{url} did not answer {what} within {within}; wait until it has loaded its model and answers, and run the same command \
         again; if it never does, is this the address of an OpenAI-compatible API?"
    )]
    Silent {
        /// The address.
        url: String,
        /// What it was asked, by method and path.
        what: String,
        /// How long it was waited for.
        within: Nanos,
    },
    /// It began an answer and did not end it in time.
    #[error(
        "{url} did not finish its answer to {what} within {within}; run the same command again once it is ready; if it never \
         does, is this the address of an OpenAI-compatible API?"
    )]
    Unfinished {
        /// The address.
        url: String,
        /// What it was asked, by path.
        what: String,
        /// How long it was waited for.
        within: Nanos,
    },
    /// It answers over another HTTP than the plan wants.
    #[error("{url} answers over {spoken} and not over {asked}: {reason}; {remedy}")]
    OtherHttp {
        /// The address.
        url: String,
        /// What it speaks.
        spoken: &'static str,
        /// What it was asked over.
        asked: &'static str,
        /// What came of that.
        reason: String,
        /// What to do.
        remedy: &'static str,
    },
    /// It wants a key, or another one.
    #[error("{url} refuses the API key (HTTP {status}): {reason}; set api_key of the endpoint")]
    Key {
        /// The address.
        url: String,
        /// HTTP status.
        status: u16,
        /// Its words.
        reason: String,
    },
    /// It does not know the model.
    #[error("{url} does not know the model `{model}`; it lists {listed}; correct the id under models")]
    Model {
        /// The address.
        url: String,
        /// The model asked for.
        model: String,
        /// The models that it lists.
        listed: String,
    },
    /// It answers with something else than a completion.
    #[error("{url} answers, but not with a completion; does its address end as it should (usually in /v1)?")]
    NoCompletion {
        /// The address.
        url: String,
    },
    /// It answers, but does not generate.
    #[error("{url} answers HTTP {status} to a generation: {reason}")]
    Refused {
        /// The address.
        url: String,
        /// HTTP status.
        status: u16,
        /// Its words.
        reason: String,
        /// How long it asks to be left alone: its `Retry-After`, where that is a number of seconds.
        retry_after: Option<Duration>,
    },
    /// It is there, and does not have the path that is to say whether it is ready.
    #[error("{url} answers HTTP 404 to {path} and lists its models: it has no such path; correct `ready.path`")]
    NoReadyPath {
        /// The address.
        url: String,
        /// The path that was asked.
        path: String,
    },
    /// It says that it is not ready.
    #[error("{url} answers HTTP {status} to {path}: it is not ready")]
    Loading {
        /// The address.
        url: String,
        /// The path that was asked.
        path: String,
        /// HTTP status.
        status: u16,
        /// As of a refusal.
        retry_after: Option<Duration>,
    },
}

/// Asks a server. Blocks; each of its two questions for the question's times, and for ten seconds at most.
pub fn probe(question: &Question) -> Result<Found, ProbeError> {
    let question = &Question {
        connect: question.connect.min(LONGEST_WAIT),
        within: question.within.min(LONGEST_WAIT),
        ..question.clone()
    };
    let unreachable = |reason: String| unreachable(question, reason);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| unreachable(error.to_string()))?;
    runtime.block_on(async {
        let client = client(question).map_err(|error| unreachable(words(&error)))?;
        if let Some(path) = &question.ready {
            match ask_whether_ready(&client, question, path).await {
                Err(error @ ProbeError::Unreachable { .. }) => {
                    return Err(over_the_other(question, error).await);
                }
                other => other?,
            }
        }
        let mut found = match list_models(&client, question).await {
            Err(error @ ProbeError::Unreachable { .. }) => {
                return Err(over_the_other(question, error).await);
            }
            other => other?,
        };
        generate(&client, question, &mut found).await?;
        Ok(found)
    })
}

/// Why a server that does not answer over one HTTP counts as away: it is asked over the other one first.
async fn over_the_other(question: &Question, error: ProbeError) -> ProbeError {
    let ProbeError::Unreachable { url, reason } = error else { return error };
    // Over HTTP/1.1 most reasons have nothing to do with it.
    if !question.http2 && !OF_ANOTHER_HTTP.iter().any(|words| reason.contains(words)) {
        return ProbeError::Unreachable { url, reason };
    }
    let other = Question { http2: !question.http2, ..question.clone() };
    let asked = client(&other).ok().zip(other.ready_url().ok()).map(|(client, url)| other.signed(client.get(url)));
    let is_there = match asked {
        Some(request) => request.send().await.is_ok(),
        None => false,
    };
    let remedy = match (question.http2, url.starts_with("https:")) {
        (false, _) => "write `http: 2` under the endpoint",
        (true, true) => {
            "have the server, or what stands before it, offer h2 (ALPN), or remove `http: 2` of the endpoint"
        }
        (true, false) => {
            "have the server take HTTP/2 without TLS (h2c, prior knowledge), write https:// where it is behind TLS, or remove \
             `http: 2` of the endpoint"
        }
    };
    let [spoken, asked] = if question.http2 { ["HTTP/1.1", "HTTP/2"] } else { ["HTTP/2", "HTTP/1.1"] };
    match is_there {
        true => ProbeError::OtherHttp { url, spoken, asked, reason, remedy },
        false => ProbeError::Unreachable { url, reason },
    }
}

/// What hyper and rustls say of a server that answers HTTP/1.1 by HTTP/2, or agrees to nothing else.
const OF_ANOTHER_HTTP: [&str; 6] = [
    "unexpected message",
    "before message completed",
    "invalid HTTP",
    "http2",
    "NoApplicationProtocol",
    "no application protocol",
];

/// Why there was no answer.
pub(super) fn unreachable(question: &Question, reason: String) -> ProbeError {
    ProbeError::Unreachable { url: question.shown(), reason: question.without_key(&reason) }
}

pub(super) fn client(question: &Question) -> reqwest::Result<Client> {
    // Each question on a connection of its own: a server may close one behind an answer, and nothing is retried.
    client_that_keeps(question, 0)
}

/// A client that keeps so many connections for its next questions.
pub(super) fn client_that_keeps(question: &Question, connections: usize) -> reqwest::Result<Client> {
    let builder = Client::builder();
    // Without it reqwest takes what ALPN comes to, and HTTP/1.1 without TLS.
    let builder = if question.http2 { builder.http2_prior_knowledge() } else { builder.http1_only() };
    builder
        .no_proxy()
        .pool_max_idle_per_host(connections)
        .retry(reqwest::retry::never())
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("sweepline/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(Duration::from(question.connect))
        .timeout(Duration::from(question.within))
        .tls_danger_accept_invalid_certs(question.insecure_tls)
        .build()
}

pub(super) async fn send(request: RequestBuilder, question: &Question) -> Result<Response, ProbeError> {
    question.signed(request).send().await.map_err(|error| no_answer(&error, question))
}

/// Why a question has no answer. That there was no connection in time says reqwest itself.
fn no_answer(error: &reqwest::Error, question: &Question) -> ProbeError {
    let url = question.shown();
    if !error.is_timeout() || error.is_connect() {
        return ProbeError::Unreachable { url, reason: question.without_key(&words(error)) };
    }
    let what = error.url().map_or_else(String::new, |url| asked(url, question));
    ProbeError::Silent { url, what, within: question.within }
}

/// What a question asked for: its path behind the address.
fn asked(url: &reqwest::Url, question: &Question) -> String {
    let base = reqwest::Url::parse(&question.url).map_or_else(|_| String::new(), |base| base.path().to_owned());
    let path = url.path();
    match path.strip_prefix(base.trim_end_matches('/')).unwrap_or(path) {
        "" => "the request".to_owned(),
        path => question.without_key(path),
    }
}

async fn ask_whether_ready(client: &Client, question: &Question, path: &str) -> Result<(), ProbeError> {
    let whole = question.ready_url().map_err(|error| unreachable(question, error))?;
    let response = send(client.get(whole), question).await?;
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Err(refusal(question, response).await);
    }
    let (url, path, retry_after) = (question.shown(), path.to_owned(), retry_after(&response));
    if status == StatusCode::NOT_FOUND
        && list_models(client, question).await.is_ok_and(|found| !found.models.is_empty())
    {
        return Err(ProbeError::NoReadyPath { url, path });
    }
    Err(ProbeError::Loading { url, path, status: status.as_u16(), retry_after })
}

async fn list_models(client: &Client, question: &Question) -> Result<Found, ProbeError> {
    let response = send(client.get(question.models_url()), question).await?;
    let server = response.headers().get("server").and_then(|value| value.to_str().ok());
    let server = server.map(|name| question.presentable(name));
    let status = response.status();
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Err(refusal(question, response).await);
    }
    // A server without a list of models can still be measured.
    let list = if status.is_success() { body(response, question).await? } else { Value::Null };
    let ids = list["data"].as_array().into_iter().flatten().filter_map(|model| model["id"].as_str());
    let models = ids.take(MOST_MODELS).map(|id| question.presentable(id)).collect();
    Ok(Found { server, models, ..Found::default() })
}

async fn generate(client: &Client, question: &Question, found: &mut Found) -> Result<(), ProbeError> {
    let mut response = send(generation(client, question, 4), question).await?;
    if response.status() == StatusCode::BAD_REQUEST {
        let refusal = refusal(question, response).await;
        let other_length = LengthField::MaxCompletionTokens.name();
        // OpenAI's newer models refuse the name that all other servers know, and say which one they want.
        if !matches!(&refusal, ProbeError::Refused { reason, .. } if reason.contains(other_length)) {
            return Err(refusal);
        }
        response = send(generation_under(other_length, client, question, 4), question).await?;
    }
    if !response.status().is_success() {
        let unknown = response.status() == StatusCode::NOT_FOUND && !found.models.is_empty();
        if unknown && !found.models.contains(&question.model) {
            let (url, model, listed) = (question.shown(), question.model.clone(), found.listed(FEW_MODELS));
            return Err(ProbeError::Model { url, model, listed });
        }
        return Err(refusal(question, response).await);
    }
    let answer = body(response, question).await?;
    if !answer[question.api.protocol().answer_field()].is_array() {
        return Err(ProbeError::NoCompletion { url: question.shown() });
    }
    found.model = answer["model"].as_str().map(|model| question.presentable(model));
    let usage = Usage::of(&answer["usage"]);
    found.prompt_tokens = usage.prompt_tokens().map(u64::from);
    found.output_tokens = usage.completion_tokens().map(u64::from);
    Ok(())
}

/// A request for a generation of so many tokens.
pub(super) fn generation(client: &Client, question: &Question, tokens: u32) -> RequestBuilder {
    generation_under("max_tokens", client, question, tokens)
}

/// The same, its length asked for under this name.
fn generation_under(name: &'static str, client: &Client, question: &Question, tokens: u32) -> RequestBuilder {
    let protocol = question.api.protocol();
    let mut body = Object::with_capacity(256);
    let plain = Request::plain(&question.model, PROMPT, tokens);
    protocol.body(&Request { length_field: name, ..plain }, &mut body);
    let url = format!("{}{}", question.url.trim_end_matches('/'), protocol.path());
    client.post(url).header("content-type", "application/json").body(body.end())
}

pub(super) async fn refusal(question: &Question, response: Response) -> ProbeError {
    let (status, retry_after) = (response.status(), retry_after(&response));
    // That it refuses is known, whatever it was about to say.
    let answer = body(response, question).await.unwrap_or_default();
    let error = answer.get("error").unwrap_or(&answer);
    let text = error.get("message").unwrap_or(error);
    let text = text.as_str().map(str::to_owned).unwrap_or_else(|| text.to_string());
    let (url, status, reason) = (question.shown(), status.as_u16(), question.presentable(&text));
    match status {
        401 | 403 => ProbeError::Key { url, status, reason },
        _ => ProbeError::Refused { url, status, reason, retry_after },
    }
}

/// How long a server asks to be left alone. A date is not kept: the two clocks may differ.
fn retry_after(response: &Response) -> Option<Duration> {
    let seconds: u64 = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST_RETRY_AFTER))
}

/// The JSON of an answer of at most 4 MiB; null for anything else. One that breaks off is taken as far as it came, one
/// that does not go on is an error.
pub(super) async fn body(mut response: Response, question: &Question) -> Result<Value, ProbeError> {
    let mut data = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => data.extend_from_slice(&chunk),
            // Such an error names no address.
            Err(error) if error.is_timeout() => {
                let (url, what) = (question.shown(), asked(response.url(), question));
                return Err(ProbeError::Unfinished { url, what, within: question.within });
            }
            Ok(None) | Err(_) => break,
        }
        if data.len() > 4 << 20 {
            return Ok(Value::Null);
        }
    }
    let text = || Value::String(String::from_utf8_lossy(&data).into_owned());
    Ok(serde_json::from_slice(&data).unwrap_or_else(|_| text()))
}

/// An error with its causes; reqwest's own text names only the outermost.
pub(super) fn words(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
