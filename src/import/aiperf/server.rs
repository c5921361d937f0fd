//! Reads the server and the model of an AIPerf configuration (`src/aiperf/config/endpoint.py`, `models.py`,
//! `tokenizer.py`).

use super::env::variable;
use super::extra::Extra;
use super::leaves::At;
use crate::import::address::address;
use crate::import::clean;
use crate::import::draft::Field;
use crate::import::endpoint::{key_of_header, key_of_value};
use crate::import::error::ImportError;
use crate::import::files::{fits, named};
use crate::import::header;
use crate::import::job::Around;
use crate::import::said::Said;
use crate::import::shell::marks;
use crate::import::text::{is_no_key, name_of, one_line, scalar, secret, text_value};
use crate::plan::{Api, Engine};
use crate::units::text::is_variable;

/// Returns the environment variable that the plan refers to in place of a literal API key.
fn usual_variable(api: Api) -> &'static str {
    match api {
        Api::Messages => "ANTHROPIC_API_KEY",
        _ => "OPENAI_API_KEY",
    }
}

/// AIPerf's default address.
const URL: &str = "http://localhost:8000";

/// Returns the API for an endpoint's type; `None` unless the type is text, embeddings or rankings.
fn api(kind: &str) -> Option<Api> {
    Some(match kind {
        "chat" => Api::Chat,
        "completions" => Api::Completions,
        "responses" => Api::Responses,
        "messages" => Api::Messages,
        "embeddings" | "nim_embeddings" => Api::Embeddings,
        "rankings" | "nim_rankings" | "cohere_rankings" | "hf_tei_rankings" => Api::Rerank,
        _ => return None,
    })
}

/// An endpoint under construction.
pub(super) struct Endpoint {
    pub api: Api,
    pub fields: Vec<Field>,
    /// Fields of the sweep, which belong next to its matrix.
    pub beside: Vec<Field>,
    /// The field that sets whether responses are streamed; `None` if the API does not generate text.
    pub stream: Option<Field>,
}

/// Returns the API of a benchmark; `None` if sweepline cannot measure its type, which is then listed.
pub(super) fn api_of(body: At) -> Option<Said<Api>> {
    let at = body.get("endpoint").get("type");
    let kind = at.text().unwrap_or_else(|| Said::default("chat".to_owned(), "default of AIPerf"));
    let found = api(kind.value.trim());
    if found.is_none() {
        at.missing("this is skipped: only text, embeddings and rankings over HTTP are measured");
    }
    found.map(|api| Said { value: api, origin: kind.origin })
}

/// Returns the endpoint of a benchmark.
pub(super) fn endpoint(
    file: &str,
    body: At,
    api: Said<Api>,
    extra: &Extra,
    around: &Around,
) -> Result<Endpoint, ImportError> {
    let at = body.get("endpoint");
    let Said { value: api, origin: of_api } = api;
    let mut fields = vec![url(file, at, api, around)?];
    let reset = body.get("reset_kv_cache").get("enabled").flag().filter(|said| said.value);
    let resets = reset.as_ref().map(|said| (Engine::Vllm, format!("{}: write the server's engine", said.origin)));
    fields.push(match extra.engine().or(resets) {
        Some((engine, origin)) => Field::new("engine", engine.name(), origin),
        None => Field::new("engine", "openai", "not set: any server; ignore_eos is not sent"),
    });
    fields.push(Field::new("api", api.name(), of_api));
    let (of_header, further) = headers(at, api);
    fields.extend(key(at, api).or(of_header));
    fields.extend(further);
    match at.get("ssl_verify").flag() {
        Some(said) if !said.value => fields.push(Field::new("insecure_tls", "true", said.origin)),
        _ => at.get("ssl_verify").needless("certificates are verified"),
    }
    match at.get("http2").flag() {
        Some(said) if said.value => fields.push(Field::new("http", "2", said.origin)),
        _ => at.get("http2").needless("requests go over HTTP/1.1"),
    }
    fields.extend(ready(at));
    fields.extend(telemetry(body));
    if let Some(reset) = reset {
        fields.push(Field::new("reset", "prefix_cache", format!("{}: before each run", reset.origin)));
    }
    told(at, api);
    let stream = stream(at, api);
    Ok(Endpoint { api, fields, beside: connections(at), stream })
}

fn told(at: At, api: Api) {
    at.get("url_strategy").needless("requests go to one address");
    at.get("transport").needless("requests go over HTTP");
    at.get("connection_limit").needless("each request in flight has its own connection");
    at.get("keepalive_timeout").needless("connections stay open as long as the server keeps them");
    let why = match api {
        Api::Chat => {
            "lengths are requested with max_tokens; `max_completion_tokens: N` of the scenario uses the other name"
        }
        _ => "this API has only one name for the length",
    };
    at.get("use_legacy_max_tokens").needless(why);
    at.get("use_server_token_count").needless("rows contain the server's token count and sweepline's own");
    at.get("uds_path").missing("requests go over TCP");
    at.get("template").missing("request bodies follow the API; `extra` adds fields");
    for key in ["download_video_content", "request_content_type", "uuid_and_strip"] {
        at.get(key).missing("requests carry text only, as JSON");
    }
    at.get("session_header").missing("each request has its own `x-request-id`; no header identifies its conversation");
}

/// Returns the base address.
fn url(file: &str, at: At, api: Api, around: &Around) -> Result<Field, ImportError> {
    let urls = at.first(&["urls", "url"]);
    let each = urls.each();
    if let Some((url, origin)) = around.url.as_ref().filter(|_| around.is_given_url() || each.is_empty()) {
        urls.needless("`import --url` sets the server's address");
        at.get("path").needless("the server's address does not need it");
        return Ok(Field::new("url", text_value(url), origin.clone()));
    }
    for more in each.iter().skip(1) {
        more.missing("an endpoint has one address: add an endpoint for each, or measure their load balancer");
    }
    let said = match each.first() {
        Some(first) => first.text(),
        None => None,
    };
    let said = said.unwrap_or_else(|| Said::default(URL.to_owned(), "default of AIPerf"));
    let place = each.first().map_or_else(|| at.place(file), |first| first.place(file));
    let wrong = |what: String| {
        ImportError::shape(place.clone(), what, "write http://HOST:PORT, or pass it: import --url URL …")
    };
    let shown = one_line(&at.secrets().hide(&said.value));
    if variable(&said.value).is_some() || said.value.contains("${") || !marks(&said.value).is_empty() {
        return Err(wrong(format!("the address `{shown}` contains a variable without a value")));
    }
    let read = address(&said.value).map_err(|reason| wrong(format!("`{shown}` is not a server address: {reason}")))?;
    if read.had_secret {
        clean::credentials(at.notes(), each.first().copied().unwrap_or(urls).line());
    }
    let path = at.get("path").text();
    let base = joined(&read.url, path.as_ref(), api, at);
    let origin = path.map_or_else(|| said.origin.clone(), |path| format!("{}, {}", said.origin, path.origin));
    Ok(Field::new("url", text_value(&base), origin))
}

/// Returns the base address of the API, which consists of the address and the path without the call. `/v1` is
/// added if there is no path besides the call.
fn joined(url: &str, path: Option<&Said<String>>, api: Api, at: At) -> String {
    let call = api.protocol().path();
    let without = |text: &str| text.trim_end_matches('/').strip_suffix(call).map(str::to_owned);
    let own = without(url);
    let base = own.clone().unwrap_or_else(|| url.to_owned());
    let base = base.trim_end_matches('/').to_owned();
    if let Some(path) = path {
        let path = format!("/{}", path.value.trim_matches('/'));
        if let Some(before) = without(&path).filter(|_| own.is_none()) {
            // AIPerf omits the part of the path with which the address already ends.
            let before = if base.ends_with(&before) { "" } else { before.as_str() };
            return format!("{base}{before}");
        }
        let why = format!("calls go to `{call}` below the endpoint's `url`");
        at.get("path").differs(&why);
    }
    let has_path = base.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
    if has_path || own.is_some() { base } else { format!("{base}/v1") }
}

/// Returns a reference to an environment variable, which replaces the API key.
fn key(at: At, api: Api) -> Option<Field> {
    let said = at.get("api_key").text()?;
    if is_no_key(&said.value) {
        at.get("api_key").needless("it is not a key");
        return None;
    }
    let marked = marks(&said.value).first().map(|name| (*name).to_owned());
    let name = variable(&said.value).map(str::to_owned).or(marked).filter(|name| is_variable(name));
    if name.is_none() {
        at.secrets().add(&said.value);
    }
    let origin = origin_name(&said.origin);
    Some(match name {
        Some(name) => Field::new("api_key", secret(&name), format!("{origin}, from ${name}")),
        None => {
            let usual = usual_variable(api);
            Field::new("api_key", secret(usual), format!("{origin}: set the variable {usual} to that key"))
        }
    })
}

/// Reduces an option with a secret to the option's name.
fn origin_name(origin: &str) -> String {
    match origin.starts_with("--") {
        true => origin.split([' ', '=']).next().unwrap_or_default().to_owned(),
        false => origin.to_owned(),
    }
}

/// Returns two fields: one for the API key from the header that carries it, unless another setting contains a
/// key, and one for the other headers. The values of headers may be secrets, so the plan refers to
/// environment variables for them.
fn headers(endpoint: At, api: Api) -> (Option<Field>, Option<Field>) {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut origins = Vec::new();
    let mut key = None;
    for (name, at) in endpoint.get("headers").entries() {
        let carries_key = name.eq_ignore_ascii_case(api.protocol().key_header().name);
        if carries_key && !endpoint.get("api_key").is_there() {
            let said = at.text();
            key = said.as_ref().and_then(|said| match api {
                Api::Messages => Some(key_of_value(&said.value, &origin_name(&said.origin), usual_variable(api))),
                _ => key_of_header(&said.value, &origin_name(&said.origin)),
            });
            if key.is_some() {
                said.iter().for_each(|said| at.secrets().add_headers(&[format!("{name}: {}", said.value)]));
                continue;
            }
        }
        if let Some(why) = header::refused(name, api) {
            at.differs(&why);
            continue;
        }
        let Some(said) = at.text() else { continue };
        at.secrets().add_headers(&[format!("{name}: {}", said.value)]);
        let own =
            variable(&said.value).map(str::to_owned).or_else(|| marks(&said.value).first().map(|m| (*m).to_owned()));
        let own = own.filter(|name| is_variable(name));
        let made = name.to_ascii_uppercase().replace(['-', '.'], "_");
        let held = own
            .unwrap_or_else(|| if made.starts_with(|c: char| c.is_ascii_digit()) { format!("H_{made}") } else { made });
        pairs.push((name.to_owned(), held));
        origins.push(said.origin);
    }
    let values: Vec<String> = pairs.iter().map(|(name, held)| format!("{}: {}", scalar(name), secret(held))).collect();
    let held: Vec<&str> = pairs.iter().map(|(_, held)| held.as_str()).collect();
    let origin = format!("{}: set {} to their values", origins.join(", "), held.join(", "));
    (key, (!pairs.is_empty()).then(|| Field::new("headers", format!("{{ {} }}", values.join(", ")), origin)))
}

/// Returns `ready`, which limits the time to wait for the server.
fn ready(at: At) -> Option<Field> {
    let how = "the client requests the server's models, then a few tokens, at growing intervals";
    at.get("wait_for_model_mode").needless(how);
    at.get("wait_for_model_interval").needless(how);
    let said = at.get("wait_for_model_timeout").seconds()?;
    let within = said.value.min(31_536_000.0).round();
    if within < 1.0 {
        at.get("wait_for_model_timeout")
            .needless("0 skips the check; here, the client waits up to a minute for the server");
        return None;
    }
    Some(Field::new("ready", format!("{{ within: {within}s }}"), said.origin))
}

/// Converts the addresses of metrics pages: the server's own page and the pages of GPU exporters.
fn telemetry(body: At) -> Option<Field> {
    let (server, gpus) = (body.get("server_metrics"), body.get("gpu_telemetry"));
    let mut pages: Vec<String> = Vec::new();
    let mut origins: Vec<String> = Vec::new();
    server.get("formats").needless("`export` writes the scraped metrics in every format");
    for (at, default) in [(server, "on"), (gpus, "http://localhost:9400/metrics")] {
        let on = at.get("enabled").flag();
        let urls = at.get("urls").each();
        if on.as_ref().is_some_and(|said| !said.value) {
            at.needless("it is off, as it is here without `telemetry`");
            continue;
        }
        match on.filter(|_| urls.is_empty()) {
            Some(said) => {
                pages.push(default.to_owned());
                origins.push(said.origin);
            }
            None => at.get("enabled").needless("its metrics pages are listed explicitly"),
        }
        for url in urls {
            let Some(said) = url.text() else { continue };
            match address(&said.value) {
                Ok(read) if !read.had_secret => {
                    let has_path = read.url.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
                    pages.push(text_value(&if has_path { read.url } else { format!("{}/metrics", read.url) }));
                    origins.push(said.origin);
                }
                _ => url.missing("not the address of a metrics page"),
            }
        }
    }
    for key in ["pynvml", "collector", "dashboard", "metrics_file", "mode"] {
        gpus.get(key).missing("GPU metrics are read from a metrics page, such as DCGM's exporter");
    }
    pages.dedup();
    let value = format!("{{ prometheus: [{}] }}", pages.join(", "));
    (!pages.is_empty()).then(|| Field::new("telemetry", value, origins.join(", ")))
}

fn connections(at: At) -> Vec<Field> {
    let Some(said) = at.get("connection_reuse").text() else { return Vec::new() };
    match said.value.replace('_', "-").as_str() {
        "never" => return vec![Field::new("connections", "per_request", said.origin)],
        "sticky-user-sessions" => {
            at.get("connection_reuse").differs("a turn uses any free connection, not the previous turn's");
        }
        _ => at.get("connection_reuse").needless("connections are reused"),
    }
    Vec::new()
}

fn stream(at: At, api: Api) -> Option<Field> {
    let said = at.get("streaming").flag();
    if !api.generates() {
        at.get("streaming").needless("there is nothing to stream");
        return None;
    }
    let said = said.unwrap_or_else(|| Said::default(false, "not set: AIPerf does not stream; TTFT and ITL need true"));
    Some(Field::new("stream", said.value.to_string(), said.origin))
}

/// Returns the model of a benchmark: a hint for its name, and its fields.
pub(super) fn model(file: &str, body: At, around: &Around) -> Result<(String, Vec<Field>), ImportError> {
    let models = body.first(&["model", "models"]);
    let list = if models.get("items").is_there() { models.get("items") } else { models };
    for key in ["strategy", "selection_strategy"] {
        models.get(key).needless("a run uses one model");
    }
    let each = list.each();
    let known = around.model.as_ref().filter(|_| around.is_given_model() || each.is_empty());
    let id = match (known, each.first()) {
        (Some((model, origin)), _) => {
            list.needless("`import --model` sets the model");
            Said { value: model.clone(), origin: origin.clone() }
        }
        (None, Some(first)) => {
            let name = if first.is_map() { first.get("name") } else { *first };
            first.get("weight").needless("a run uses one model");
            let said = name.text().filter(|said| !said.value.trim().is_empty());
            let wrong =
                |what: &str| ImportError::shape(first.place(file), what, "write it, or pass it: import --model ID …");
            let said = said.ok_or_else(|| wrong("no model is set"))?;
            if said.value.contains("${") || !marks(&said.value).is_empty() {
                return Err(wrong(&format!("the model `{}` has no value", one_line(&at_shown(&said.value)))));
            }
            said
        }
        (None, None) => {
            let remedy = "add `model: ID`, or pass it: sweepline import --model ID …";
            return Err(ImportError::shape(file, "no model is set", remedy));
        }
    };
    if known.is_none() {
        for more in each.iter().skip(1) {
            more.missing(
                "AIPerf sends each request to one of them; a `mix` of scenarios with `model: ID` does the same",
            );
        }
    }
    let mut fields = vec![Field::new("id", text_value(&id.value), &id.origin)];
    fields.push(tokenizer(body.get("tokenizer"), &id, around));
    let last = id.value.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    Ok((name_of(last, "model"), fields))
}

fn at_shown(text: &str) -> String {
    crate::import::shell::shown(text)
}

/// Returns the field `tokenizer`: the server if AIPerf uses the model's own tokenizer, otherwise the files of
/// the other tokenizer if they are present.
fn tokenizer(at: At, model: &Said<String>, around: &Around) -> Field {
    at.get("revision").needless("the server, or the files of `tokenizer`, determine it");
    at.get("trust_remote_code").needless("tokenizer code is never run");
    at.get("apply_chat_template").needless("prompt lengths include the chat template");
    let name = if at.is_map() { at.get("name") } else { at };
    let said = name.text();
    let own = said.as_ref().filter(|said| said.value != model.value);
    let Some(other) = own else {
        let origin = said.map_or_else(|| "AIPerf counts with the model's tokenizer".to_owned(), |said| said.origin);
        return Field::new("tokenizer", "server", format!("{origin}: the server counts with it"));
    };
    let read = named(&around.folder, &other.value).and_then(|path| {
        let path = scalar(&path);
        fits(&around.folder, &format!(", tokenizer: {path}"), "").map(|()| path)
    });
    match read {
        Ok(path) => Field::new("tokenizer", path, &other.origin),
        Err(_) => {
            name.differs(
                "the server counts with its own tokenizer; `tokenizer: FOLDER` of the model counts with local files",
            );
            Field::new("tokenizer", "server", format!("{}: replaced by the server's own", other.origin))
        }
    }
}
