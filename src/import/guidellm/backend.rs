//! Converts `backend`: the server, its API and additional request fields.

use crate::import::body::Body;
use crate::import::draft::Field;
use crate::import::endpoint::{self, Path};
use crate::import::error::ImportError;
use crate::import::header;
use crate::import::importer::Context;
use crate::import::job::Around;
use crate::import::notes::Notes;
use crate::import::said::Said;
use crate::import::shell::Command;
use crate::import::text::{name_of, seconds, secret, text_value};
use crate::import::tree::At;
use crate::plan::Api;

/// The server to measure.
pub(super) struct Server {
    /// The endpoint: a hint for its name, and its fields.
    pub(super) endpoint: (String, Vec<Field>),
    /// The model: a hint for its name, and its fields.
    pub(super) model: (String, Vec<Field>),
    /// Additional request fields.
    pub(super) body: Body,
    /// Plan-wide settings: the request timeouts.
    pub(super) once: Vec<(&'static str, Field)>,
    /// The API.
    pub(super) api: Api,
}

/// Reads the backend. If sweepline cannot measure it, lists the backend and returns `None`.
pub(super) fn read(
    at: At,
    place: &str,
    command: &Command,
    around: &Around,
    context: &Context,
) -> Result<Option<Server>, ImportError> {
    let backend = at.get("backend");
    let get = |key: &str| backend.and_then(|backend| backend.get(key));
    let kind = get("kind");
    let is_http = kind.is_none_or(|kind| ["openai_http", "openai"].contains(&kind.peek().word().unwrap_or_default()));
    if let Some(kind) = kind.filter(|_| !is_http) {
        kind.missing(
            "this is skipped: guidellm runs that engine in its own process; `launch` of an endpoint starts a server",
        );
        return Ok(None);
    }
    let kind = kind.and_then(At::text).map_or_else(String::new, |said| format!("{}: ", said.origin));
    let format = get("request_format").and_then(At::text);
    let format = format.unwrap_or_else(|| Said::default("/v1/chat/completions".to_owned(), "default request_format"));
    let api = match format.value.as_str() {
        "/v1/chat/completions" => Api::Chat,
        "/v1/completions" => Api::Completions,
        "/v1/responses" => Api::Responses,
        "/v1/embeddings" => Api::Embeddings,
        _ => {
            if let Some(there) = get("request_format") {
                there.missing("this is skipped: sweepline measures text and embeddings, not speech or pooling");
            }
            return Ok(None);
        }
    };
    let line = command.line;
    let notes = context.notes;
    let said = endpoint::base(get("target").and_then(At::text), around, notes, line).unwrap_or_else(|| {
        Said::default("http://localhost:8000".to_owned(), "no target: the address in guidellm's documentation")
    });
    let url = endpoint::url(place, said, Path::AddsV1, "write target=http://HOST:PORT", notes, line)?;
    let is_tls = url.value.starts_with("https") || url.value.starts_with("\"https");
    let origin = format!("{kind}the server's engine is not given; write it here, ignore_eos depends on it");
    let mut fields = vec![url, Field::new("engine", "vllm", origin), Field::new("api", api.name(), format.origin)];
    let mut once = Vec::new();
    if let Some(key) = get("api_key") {
        let origin = format!("{}: set the variable OPENAI_API_KEY to that key", key.take().origin());
        fields.push(Field::new("api_key", secret("OPENAI_API_KEY"), origin));
    } else {
        fields.extend(endpoint::api_key(None, &["OPENAI_API_KEY"], command, notes));
    }
    if let Some(verify) = get("verify") {
        match verify.flag() {
            Some(said) if !said.value && is_tls => fields.push(Field::new("insecure_tls", "true", said.origin)),
            Some(_) if !is_tls => verify.needless("an http address has no certificate"),
            _ => verify.needless("certificates are verified"),
        }
    }
    if let Some(http2) = get("http2") {
        match http2.flag() {
            Some(said) if said.value && is_tls => fields.push(Field::new("http", "2", said.origin)),
            _ => http2.needless("requests use HTTP/1.1"),
        }
    }
    for (key, name) in [("timeout", "request"), ("timeout_connect", "connect")] {
        if let Some(said) = get(key).and_then(At::seconds).filter(|said| said.value > 0.0) {
            once.push(("timeouts", Field::new(name, seconds(said.value), said.origin)));
        }
    }
    let (mut body, headers, of_header) = extras(get("extras"), get("headers"), api, get("api_key").is_some());
    if fields.iter().all(|field| field.key != "api_key") {
        fields.extend(of_header);
    }
    fields.extend(headers);
    if let Some(said) = get("stream").and_then(At::flag) {
        match api {
            Api::Embeddings => get("stream").iter().for_each(|at| at.needless("vectors are not streamed")),
            _ => body.add("stream", said.value.into(), said.origin),
        }
    }
    if let Some(said) = get("max_tokens").or_else(|| get("max_completion_tokens")).and_then(At::whole) {
        body.add("max_tokens", said.value.into(), said.origin);
    }
    unneeded(backend);
    let model = model(get("model"), place, around, notes, line)?;
    Ok(Some(Server { endpoint: ("guidellm".to_owned(), fields), model, body, once, api }))
}

/// Returns the fields of the body, a field for the headers, and a field for the API key from an authorization
/// header; the last is `None` if another setting contains a key. The values of headers may be keys, so the
/// plan refers to environment variables for them.
fn extras(extras: Option<At>, more: Option<At>, api: Api, has_key: bool) -> (Body, Option<Field>, Option<Field>) {
    let mut body = Body::default();
    let mut key = None;
    let (mut headers, mut origins) = (Vec::new(), Vec::new());
    let get = |key: &str| extras.and_then(|extras| extras.get(key));
    for (key, value) in get("body").map(At::entries).unwrap_or_default() {
        let origin = value.origin();
        body.add(key, value.json(), origin);
    }
    for (name, value) in [get("headers"), more].into_iter().flatten().flat_map(At::entries) {
        if name.eq_ignore_ascii_case("authorization") && !has_key {
            key = endpoint::key_of_header(value.peek().word().unwrap_or_default(), &value.origin());
            if key.is_some() {
                value.take();
                continue;
            }
        }
        if let Some(why) = header::refused(name, api) {
            value.missing(&why);
            continue;
        }
        let variable = name.to_ascii_uppercase().replace(['-', '.'], "_");
        headers.push(format!("{name}: {}", secret(&variable)));
        origins.push(format!("{}: set {variable} to its value", value.take().origin()));
    }
    for key in ["params", "query", "content", "files"] {
        if let Some(there) = get(key) {
            there.missing("additional fields can only be added to the body (`extra`) and the headers (`headers`)");
        }
    }
    let headers = (!headers.is_empty())
        .then(|| Field::new("headers", format!("{{ {} }}", headers.join(", ")), origins.join("; ")));
    (body, headers, key)
}

/// Lists the settings that sweepline applies anyway, and the settings that have no counterpart in a plan.
fn unneeded(backend: Option<At>) {
    let Some(backend) = backend else { return };
    for (key, why) in [
        ("follow_redirects", "requests go to the given address"),
        ("validate_backend", "every server is checked before the first request: `ready`"),
        ("tool_call_missing_behavior", "tools are never called"),
        ("multiturn_reasoning", "a conversation's history excludes reasoning"),
    ] {
        if let Some(there) = backend.get(key) {
            there.needless(why);
        }
    }
    for (key, why) in [
        ("api_routes", "the API is under the base address: `url`"),
        ("server_history", "the history is sent with each turn: `base: D`"),
    ] {
        if let Some(there) = backend.get(key) {
            there.missing(why);
        }
    }
}

/// Returns the model.
fn model(
    said: Option<At>,
    place: &str,
    around: &Around,
    notes: &Notes,
    line: usize,
) -> Result<(String, Vec<Field>), ImportError> {
    let named = said.and_then(At::text).filter(|said| !said.value.trim().is_empty());
    let Some(id) = endpoint::model_id(named, around, notes, line) else {
        let what = "no model is set: guidellm would take the server's first one";
        let remedy = "add model=ID to the backend, or pass it: sweepline import --model ID …";
        return Err(ImportError::shape(place, what, remedy));
    };
    let last = id.value.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    Ok((name_of(last, "model"), vec![Field::new("id", text_value(&id.value), id.origin)]))
}
