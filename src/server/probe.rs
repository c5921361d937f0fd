//! Probes a server before it is measured: checks whether it responds, has the model, and generates. The
//! probe requests the list of models and one generation. The generation is repeated if the server expects
//! the maximum length under another field name.

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

use super::self_description::SelfDescription;
use super::way::Way;
use crate::network::{Client, ClientError, Limits, Request, Response, Route};
use crate::plan::{Api, LengthField};
use crate::protocol::{self, KeyHeader, Object};
use crate::units::secrecy::{carries_secret, without_secrets};
use crate::units::text::is_unseen;
use crate::units::{Address, Nanos};

/// The prompt of the probe's generation, which is short and suitable for every model.
pub const PROMPT: &str = "Say hello.";

/// The longest wait for each response to a probe. A server that is ready generates the probe's four tokens
/// in less time.
pub(super) const LONGEST_WAIT: Nanos = Nanos::from_secs(10);
/// Maximum number of a server's models that an error lists.
const FEW_MODELS: usize = 20;
/// Longer pauses in `Retry-After` are shortened to this.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(3600);
/// Maximum length of a text from the server that is shown or stored, in characters.
const LONGEST_WORDS: usize = 200;
/// Maximum number of model names that are read from a server's list.
pub(super) const MOST_MODELS: usize = 1000;

/// The settings of requests to a server: its address, credentials, model and time limits.
#[derive(Debug, Clone)]
pub struct Question {
    /// The way to the server.
    pub route: Route,
    /// The API key in plain text; `None` if the endpoint has none.
    pub api_key: Option<String>,
    /// Names and values of additional headers, with secrets in plain text.
    pub headers: Vec<[String; 2]>,
    /// The secrets in the endpoint's headers, which are removed from shown texts.
    pub secrets: Vec<String>,
    /// Whether requests use HTTP/2, like the endpoint's runs.
    pub http2: bool,
    /// The API that the generation uses.
    pub api: Api,
    /// The path, from the server's root, that returns a 2xx status once the server is ready. It is
    /// requested before anything else. `None` if the plan sets no readiness path.
    pub ready: Option<String>,
    /// The model to generate with.
    pub model: String,
    /// Time limit for opening a connection.
    pub connect: Nanos,
    /// Time limit for each response.
    pub within: Nanos,
}

impl Question {
    /// Returns the base address of the API.
    pub(super) fn address(&self) -> &Address {
        self.route.address()
    }

    /// Returns path and query of the list of models.
    pub(super) fn models_path(&self) -> String {
        self.address().of_api("/models")
    }

    /// Returns path and query of the readiness check: the readiness path or, if there is none, the list of
    /// models.
    pub(super) fn ready_path(&self) -> String {
        match &self.ready {
            Some(path) => self.address().from_root(path),
            None => self.models_path(),
        }
    }

    /// Adds the headers that the API requires, with the API key, and those that all requests carry.
    pub(super) fn signed(&self, request: Request) -> Request {
        let of_api = self.api.protocol().headers(self.api_key.as_deref());
        let request = of_api.into_iter().fold(request, |request, header| request.header(header.name, &header.value));
        let request = request.header("x-request-id", "sweepline-probe");
        self.headers.iter().fold(request, |request, [name, value]| request.header(name, value))
    }

    /// Replaces the API key and other secrets in a text.
    pub fn without_key(&self, text: &str) -> String {
        let secrets = self.api_key.iter().chain(&self.secrets).map(String::as_str);
        without_secrets(text, secrets.chain(self.route.secrets()), "[secret]")
    }

    /// Returns the way to the server for display. Secrets are replaced, because the address may contain the
    /// API key.
    pub(super) fn shown(&self) -> String {
        self.without_key(&self.route.to_string())
    }

    /// Returns the beginning of a text from the server, cleaned for display: without control characters,
    /// invisible characters and secrets. Servers tend to repeat the API key in errors. It is removed before
    /// the text is truncated, because truncation could leave a part of it.
    pub(super) fn presentable(&self, text: &str) -> String {
        self.without_key(text).chars().filter(|c| !is_unseen(*c)).take(LONGEST_WORDS).collect()
    }
}

/// The results of a probe.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Found {
    /// The value of the `Server` header; `None` if there is none.
    pub server: Option<String>,
    /// The models that the server lists; empty if it has no list.
    pub models: Vec<String>,
    /// The HTTP status with which the server refused to list its models, although it generates; `None` if
    /// it did not refuse.
    pub refused_list: Option<u16>,
    /// The name of the model in the response to the generation; `None` if there is none.
    pub model: Option<String>,
    /// Number of prompt tokens of the generation, as counted by the server; `None` if the server does not
    /// report it.
    pub prompt_tokens: Option<u64>,
    /// Number of output tokens of the generation, as counted by the server; `None` if the server does not
    /// report it.
    pub output_tokens: Option<u64>,
    /// The network path to the server. The probe itself does not measure it; the caller sets it.
    pub way: Way,
    /// Why the server is not near although the plan declares that it is; `None` otherwise.
    pub not_near: Option<String>,
    /// The server's description of itself; empty if it was not requested.
    #[serde(skip)]
    pub said: SelfDescription,
}

impl Found {
    /// Returns the models that the server lists, as text with at most `most` names.
    pub fn listed(&self, most: usize) -> String {
        let names = self.models.iter().take(most).map(String::as_str).collect::<Vec<_>>().join(", ");
        match self.models.len().saturating_sub(most) {
            0 => names,
            more => format!("{names} and {more} more"),
        }
    }
}

/// The end of the error for a server that does not respond.
pub const IS_IT_THERE: &str = "; is the server running, and is its address right?";

/// Why a server cannot be measured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// No connection could be opened within the time limit, or the connection broke.
    #[error("{url} does not respond: {reason}{}", IS_IT_THERE)]
    Unreachable {
        /// The address.
        url: String,
        /// The reason.
        reason: String,
    },
    /// The server accepted the request, but did not respond within the time limit.
    #[error(
        "{url} did not respond to {what} within {within}; wait until it has loaded its model, and run the same \
         command again; if it still does not respond, check that this is the address of an OpenAI-compatible API"
    )]
    Silent {
        /// The address.
        url: String,
        /// The path of the request.
        what: String,
        /// The time limit of the response.
        within: Nanos,
    },
    /// The server began a response, but did not finish it within the time limit.
    #[error(
        "{url} did not finish its response to {what} within {within}; run the same command again once it is ready; if \
         this happens again, check that this is the address of an OpenAI-compatible API"
    )]
    Unfinished {
        /// The address.
        url: String,
        /// The path of the request.
        what: String,
        /// The time limit of the response.
        within: Nanos,
    },
    /// The server uses a different HTTP version from the endpoint in the plan.
    #[error("{url} uses {spoken}, not {asked}: {reason}; {remedy}")]
    OtherHttp {
        /// The address.
        url: String,
        /// The HTTP version that the server uses.
        spoken: &'static str,
        /// The HTTP version of the request.
        asked: &'static str,
        /// The error of the request.
        reason: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// The server rejects the API key, or requires one.
    #[error("{url} rejects the API key (HTTP {status}): {reason}; {remedy}")]
    Key {
        /// The address.
        url: String,
        /// The HTTP status of the response.
        status: u16,
        /// The server's error message.
        reason: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The server does not have the model.
    #[error("{url} does not have the model `{model}`; it lists {listed}; correct the id under models")]
    Model {
        /// The address.
        url: String,
        /// The requested model.
        model: String,
        /// The models that the server lists.
        listed: String,
    },
    /// The response is not a completion.
    #[error("{url} responds, but not with a completion; check the end of its address (usually /v1)")]
    NoCompletion {
        /// The address.
        url: String,
    },
    /// The server has no generation at the address, but a list of models at another one.
    #[error(
        "{url} has no {path}, but a list of models exists at {meant}: did you mean {meant}? Correct the endpoint's \
         `url`"
    )]
    OtherBase {
        /// The address.
        url: String,
        /// The path of the generation.
        path: &'static str,
        /// The address at which the server has a list of models.
        meant: String,
    },
    /// The server sends the client to another address.
    #[error("{url} redirects to {target} (HTTP {status}), and sweepline follows no redirects; {remedy}")]
    Redirect {
        /// The address.
        url: String,
        /// The HTTP status of the response.
        status: u16,
        /// The address to which the server sends the client.
        target: String,
        /// The remedy.
        remedy: String,
    },
    /// The server responds to the generation with an error.
    #[error("{url} returns HTTP {status} for a generation: {reason}")]
    Refused {
        /// The address.
        url: String,
        /// The HTTP status of the response.
        status: u16,
        /// The server's error message.
        reason: String,
        /// The pause that the server requests in `Retry-After`; `None` unless this is a number of seconds.
        retry_after: Option<Duration>,
    },
    /// The server is reachable, but does not have the readiness path.
    #[error("{url} returns HTTP 404 for {path} but lists its models: the path does not exist; correct `ready.path`")]
    NoReadyPath {
        /// The address.
        url: String,
        /// The requested path.
        path: String,
    },
    /// The server reports that it is not ready.
    #[error("{url} returns HTTP {status} for {path}: the server is not ready")]
    Loading {
        /// The address.
        url: String,
        /// The requested path.
        path: String,
        /// The HTTP status of the response.
        status: u16,
        /// The pause that the server requests in `Retry-After`; `None` if it is not a number of seconds.
        retry_after: Option<Duration>,
    },
}

/// Probes a server. Each request takes at most the time limits in `question`, and at most ten seconds.
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
        let client = client(question).map_err(|error| unreachable(error.to_string()))?;
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

/// Tries the other HTTP version for a server that did not respond, and returns the error: either that the
/// server uses the other version, or that it is unreachable.
async fn over_the_other(question: &Question, error: ProbeError) -> ProbeError {
    let ProbeError::Unreachable { url, reason } = error else { return error };
    // Most failures over HTTP/1.1 have nothing to do with the HTTP version.
    if !question.http2 && !OF_ANOTHER_HTTP.iter().any(|words| reason.contains(words)) {
        return ProbeError::Unreachable { url, reason };
    }
    let other = Question { http2: !question.http2, ..question.clone() };
    let is_there = match client(&other) {
        Ok(client) => client.send(other.signed(Request::get(other.ready_path()))).await.is_ok(),
        Err(_) => false,
    };
    let remedy = match (question.http2, url.starts_with("https:")) {
        (false, _) => "write `http: 2` under the endpoint",
        (true, true) => {
            "configure the server, or the proxy in front of it, to offer h2 (ALPN), or remove `http: 2` of the endpoint"
        }
        (true, false) => {
            "configure the server to accept HTTP/2 without TLS (h2c, prior knowledge), use https:// if it is behind \
             TLS, or remove `http: 2` of the endpoint"
        }
    };
    let [spoken, asked] = if question.http2 { ["HTTP/1.1", "HTTP/2"] } else { ["HTTP/2", "HTTP/1.1"] };
    match is_there {
        true => ProbeError::OtherHttp { url, spoken, asked, reason, remedy },
        false => ProbeError::Unreachable { url, reason },
    }
}

/// Parts of the errors that hyper and rustls return if the server uses a different HTTP version
/// from the client.
const OF_ANOTHER_HTTP: [&str; 6] = [
    "unexpected message",
    "before message completed",
    "invalid HTTP",
    "http2",
    "NoApplicationProtocol",
    "no application protocol",
];

/// Returns the error for a server that cannot be reached, with secrets removed from the reason.
pub(super) fn unreachable(question: &Question, reason: String) -> ProbeError {
    ProbeError::Unreachable { url: question.shown(), reason: question.without_key(&reason) }
}

/// Builds a client for the server of `question`. Fails if the system's certificates cannot be read.
pub(super) fn client(question: &Question) -> std::io::Result<Client> {
    // No connection is kept for later requests. The server might close it after a response, and the next
    // request, which is not retried, would fail.
    client_that_keeps(question, 0)
}

/// Builds a client that keeps up to `connections` open connections for later requests.
pub(super) fn client_that_keeps(question: &Question, connections: usize) -> std::io::Result<Client> {
    let limits =
        Limits { connect: Some(Duration::from(question.connect)), within: Some(Duration::from(question.within)) };
    Client::new(question.route.clone(), question.http2, limits, connections)
}

pub(super) async fn send(client: &Client, request: Request, question: &Question) -> Result<Response, ProbeError> {
    let path = request.path().to_owned();
    let sent = client.send(question.signed(request)).await;
    sent.map_err(|error| no_answer(&error, &path, question))
}

/// Returns the error for a request without a response. If no connection was opened in time, the server is
/// treated as unreachable.
fn no_answer(error: &ClientError, path: &str, question: &Question) -> ProbeError {
    let url = question.shown();
    if !error.is_timeout() || error.is_connect() {
        return ProbeError::Unreachable { url, reason: question.without_key(&error.words()) };
    }
    ProbeError::Silent { url, what: asked(path, question), within: question.within }
}

/// Returns the path of a request relative to the base address, for an error message.
fn asked(path: &str, question: &Question) -> String {
    let base = question.address().url().path().trim_end_matches('/');
    let path = path.split('?').next().unwrap_or_default();
    match path.strip_prefix(base).unwrap_or(path) {
        "" => "the request".to_owned(),
        path => question.without_key(path),
    }
}

async fn ask_whether_ready(client: &Client, question: &Question, path: &str) -> Result<(), ProbeError> {
    let response = send(client, Request::get(question.ready_path()), question).await?;
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) || status.is_redirection() {
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
    let response = send(client, Request::get(question.models_path()), question).await?;
    let server = response.header("server").map(|name| question.presentable(name));
    let status = response.status();
    // Some gateways refuse the list of models to keys that may generate. If the key is wrong, the generation
    // is refused, too.
    let is_refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let refused_list = is_refused.then(|| status.as_u16());
    // If the server has no list of models, an empty list is used, because the server can still be measured.
    let list = if status.is_success() { body(response, question).await? } else { Value::Null };
    let ids = list["data"].as_array().into_iter().flatten().filter_map(|model| model["id"].as_str());
    let models = ids.take(MOST_MODELS).map(|id| question.presentable(id)).collect();
    Ok(Found { server, models, refused_list, ..Found::default() })
}

/// Returns the error for a server without a generation at its address, if the server has a list of models at
/// the address with `/v1`, or without it; otherwise `None`.
async fn at_another_base(client: &Client, question: &Question) -> Option<ProbeError> {
    let address = question.address().with_or_without_v1();
    let meant = question.without_key(&address.to_string());
    let other = Question { route: question.route.at(address), ..question.clone() };
    let response = send(client, Request::get(other.models_path()), &other).await.ok()?;
    let has_list = match response.status() {
        // The list exists, but not for everybody.
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => true,
        status if status.is_success() => body(response, &other).await.ok()?["data"].is_array(),
        _ => false,
    };
    let path = question.api.protocol().path();
    has_list.then(|| ProbeError::OtherBase { url: question.shown(), path, meant })
}

async fn generate(client: &Client, question: &Question, found: &mut Found) -> Result<(), ProbeError> {
    // A server that refuses to list its models may count each generation, so it gets the smallest one.
    let tokens = if found.refused_list.is_some() { 1 } else { 4 };
    let mut response = send(client, generation(question, tokens), question).await?;
    if response.status() == StatusCode::BAD_REQUEST {
        let refusal = refusal(question, response).await;
        let other_length = LengthField::MaxCompletionTokens.name();
        // OpenAI's newer models reject the field name that all other servers use, and their error contains
        // the name that they expect.
        if !matches!(&refusal, ProbeError::Refused { reason, .. } if reason.contains(other_length)) {
            return Err(refusal);
        }
        response = send(client, generation_under(other_length, question, tokens), question).await?;
    }
    if !response.status().is_success() {
        let unknown = response.status() == StatusCode::NOT_FOUND && !found.models.is_empty();
        if unknown && !found.models.contains(&question.model) {
            let (url, model, listed) = (question.shown(), question.model.clone(), found.listed(FEW_MODELS));
            return Err(ProbeError::Model { url, model, listed });
        }
        if matches!(response.status(), StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED)
            && found.models.is_empty()
            && let Some(error) = at_another_base(client, question).await
        {
            return Err(error);
        }
        return Err(refusal(question, response).await);
    }
    let answer = body(response, question).await?;
    if !answer[question.api.protocol().answer_field()].is_array() {
        return Err(ProbeError::NoCompletion { url: question.shown() });
    }
    found.model = answer["model"].as_str().map(|model| question.presentable(model));
    let usage = question.api.protocol().usage(&answer["usage"]);
    found.prompt_tokens = usage.prompt_tokens().map(u64::from);
    found.output_tokens = usage.completion_tokens().map(u64::from);
    Ok(())
}

/// Builds a request for a generation of at most `tokens` tokens.
pub(super) fn generation(question: &Question, tokens: u32) -> Request {
    generation_under("max_tokens", question, tokens)
}

/// Builds the request for a generation with the maximum length in the field `name`.
fn generation_under(name: &'static str, question: &Question, tokens: u32) -> Request {
    let protocol = question.api.protocol();
    let mut body = Object::with_capacity(256);
    let plain = protocol::Request::plain(&question.model, PROMPT, tokens);
    protocol.body(&protocol::Request { length_field: name, ..plain }, &mut body);
    Request::post(question.address().of_api(protocol.path()), body.end())
}

/// Returns the error for a response that redirects the client; `None` for other responses.
fn redirect(question: &Question, response: &Response) -> Option<ProbeError> {
    let status = response.status();
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = response.header("location")?;
    let target = question.address().url().join(response.path()).ok()?.join(location).ok()?;
    let base = [question.api.protocol().path(), "/models"].iter().find_map(|call| Address::of_call(&target, call));
    let is_ready_path = question.ready.is_some() && response.path() == question.ready_path();
    let remedy = match base.filter(|base| !carries_secret(base.url())) {
        _ if is_ready_path => "write a path without a redirect as `ready.path` of the endpoint".to_owned(),
        Some(base) => format!("write `url: {}` on the endpoint", question.presentable(&base.to_string())),
        None => "write the address of the API itself as `url` of the endpoint".to_owned(),
    };
    let mut shown = target.clone();
    if carries_secret(&target) {
        shown.set_query(None);
    }
    let target = question.presentable(shown.as_str());
    Some(ProbeError::Redirect { url: question.shown(), status: status.as_u16(), target, remedy })
}

pub(super) async fn refusal(question: &Question, response: Response) -> ProbeError {
    if let Some(redirect) = redirect(question, &response) {
        return redirect;
    }
    let (status, retry_after) = (response.status(), retry_after(&response));
    // If the body cannot be read, the error is still reported with its status.
    let answer = body(response, question).await.unwrap_or_default();
    let error = answer.get("error").unwrap_or(&answer);
    let text = error.get("message").unwrap_or(error);
    let text = text.as_str().map(str::to_owned).unwrap_or_else(|| text.to_string());
    let (url, status, reason) = (question.shown(), status.as_u16(), question.presentable(&text));
    match status {
        401 | 403 => ProbeError::Key { url, status, reason, remedy: key_remedy(question) },
        _ => ProbeError::Refused { url, status, reason, retry_after },
    }
}

/// Returns what to do about a server that rejects the API key.
fn key_remedy(question: &Question) -> &'static str {
    let is_bearer = question.api.protocol().key_header() == KeyHeader::BEARER;
    if is_bearer || question.api_key.is_none() {
        return "set `api_key` on the endpoint";
    }
    "correct `api_key` of the endpoint, which was sent as `x-api-key`; for a server that accepts only bearer tokens, \
     write headers: { Authorization: { secret: env:NAME } } instead, with `Bearer KEY` in the variable NAME"
}

/// Returns the pause that a server requests in `Retry-After`; `None` if it is not a number of seconds. A date
/// is ignored, because the clocks of server and client may differ.
fn retry_after(response: &Response) -> Option<Duration> {
    let seconds: u64 = response.header("retry-after")?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST_RETRY_AFTER))
}

/// Returns the body of a response as JSON; as a JSON string if it is not JSON, and null if it is larger
/// than 4 MiB. If the connection breaks, the received part is used. If the response stalls, an error is
/// returned.
pub(super) async fn body(mut response: Response, question: &Question) -> Result<Value, ProbeError> {
    let mut data = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => data.extend_from_slice(&chunk),
            // A timeout error does not contain the address, so it is taken from the response.
            Err(error) if error.is_timeout() => {
                let (url, what) = (question.shown(), asked(response.path(), question));
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
