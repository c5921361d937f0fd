//! Converts `server`, `api`, `metrics`, `tokenizer` and `report.goodput` of inference-perf.

use serde_json::Value;

use crate::import::address::address;
use crate::import::clean;
use crate::import::draft::Field;
use crate::import::endpoint::key_of_header;
use crate::import::error::ImportError;
use crate::import::files::{fits, named};
use crate::import::header;
use crate::import::job::Around;
use crate::import::notes::Notes;
use crate::import::request::{self, Body};
use crate::import::said::Said;
use crate::import::secrets::Secrets;
use crate::import::text::{is_no_key, name_of, one_line, scalar, seconds, secret, text_value};
use crate::import::tree::At;
use crate::plan::Api;
use crate::plan::model::extra::of_engine;
use crate::units::secrecy::is_secret_name;

/// The environment variable that the plan refers to in place of a literal API key.
const KEY: &str = "OPENAI_API_KEY";

/// Returns the endpoint: a hint for its name, and its fields.
pub(super) fn endpoint(
    file: &str,
    root: At,
    around: &Around,
    secrets: &Secrets,
) -> Result<(String, Vec<Field>), ImportError> {
    let server = root.get("server");
    let engine = server.and_then(|at| at.get("type")).and_then(At::text);
    let (engine, origin) = match &engine {
        None => ("vllm", "default of inference-perf".to_owned()),
        Some(said) => match said.value.as_str() {
            known @ ("vllm" | "sglang" | "tgi") => (known, said.origin.clone()),
            _ => {
                if let Some(at) = server.and_then(|at| at.get("type")) {
                    at.differs("unknown engine: treated as any server with OpenAI's API");
                }
                ("openai", said.origin.clone())
            }
        },
    };
    let mut fields = vec![url(file, root, around)?, Field::new("engine", engine, origin), api(file, root)?];
    let (of_header, further) = headers(root, server, secrets);
    fields.extend(key(server, secrets).or(of_header));
    fields.extend(further);
    fields.extend(telemetry(root, engine));
    Ok((engine.to_owned(), fields))
}

fn url(file: &str, root: At, around: &Around) -> Result<Field, ImportError> {
    let at = root.path(&["server", "base_url"]);
    if let Some((url, origin)) = &around.url {
        if let Some(at) = at {
            at.needless("`import --url` sets the server's address");
        }
        return Ok(Field::new("url", text_value(url), origin.clone()));
    }
    let missing = || ImportError::shape(file, "no server is set", "write server.base_url, or import --url URL …");
    let at = at.ok_or_else(missing)?;
    let said = at.text().ok_or_else(missing)?;
    let wrong = |reason: String| at.wrong(file, &format!("not a server address: {reason}"), "write http://HOST:PORT");
    let read = address(&said.value).map_err(wrong)?;
    if read.had_secret {
        clean::credentials(at.notes(), at.line());
    }
    // A server can listen on 0.0.0.0, but a client cannot connect to this address.
    let url = read.url.replace("://0.0.0.0", "://127.0.0.1");
    let url = if url.ends_with("/v1") { url } else { format!("{url}/v1") };
    Ok(Field::new("url", text_value(&url), said.origin))
}

fn api(file: &str, root: At) -> Result<Field, ImportError> {
    let Some(at) = root.path(&["api", "type"]) else {
        return Ok(Field::new("api", "completions", "default of inference-perf"));
    };
    let said = at.text().unwrap_or_else(|| Said::default(String::new(), String::new()));
    match said.value.as_str() {
        "completion" => Ok(Field::new("api", "completions", said.origin)),
        "chat" => Ok(Field::new("api", "chat", said.origin)),
        other => {
            let what = format!("unsupported API `{}`", one_line(other));
            Err(at.wrong(file, &what, "use `completion` or `chat` with the same server"))
        }
    }
}

fn key(server: Option<At>, secrets: &Secrets) -> Option<Field> {
    let at = server?.get("api_key")?;
    let said = at.text()?;
    if is_no_key(&said.value) {
        at.needless("it is not a key");
        return None;
    }
    let name = said.value.strip_prefix('$').map(|name| name.trim_matches(['{', '}']));
    let name = name.filter(|name| crate::units::text::is_variable(name));
    Some(match name {
        Some(name) => Field::new("api_key", secret(name), format!("{}, from ${name}", said.origin)),
        None => {
            secrets.add(&said.value);
            Field::new("api_key", secret(KEY), format!("{}: set the variable {KEY} to that key", said.origin))
        }
    })
}

/// Returns two fields: one for the API key from an authorization header, unless another setting contains a
/// key, and one for the other headers. The plan refers to environment variables for the values of headers,
/// except for numbers such as limits.
fn headers(root: At, server: Option<At>, secrets: &Secrets) -> (Option<Field>, Option<Field>) {
    let Some(at) = root.path(&["api", "headers"]) else { return (None, None) };
    let has_key = server.is_some_and(|server| server.get("api_key").is_some());
    let mut key = None;
    let (mut pairs, mut held, mut origins) = (Vec::new(), Vec::new(), Vec::new());
    for (name, at) in at.entries() {
        if name.eq_ignore_ascii_case("authorization") && !has_key {
            let text = at.peek().word().unwrap_or_default();
            key = key_of_header(text, &at.origin());
            if key.is_some() {
                at.take();
                continue;
            }
        }
        // Both APIs of the tool carry the key in the same header.
        if let Some(why) = header::refused(name, Api::Chat) {
            at.differs(&why);
            continue;
        }
        let Some(said) = at.text() else { continue };
        let is_number = said.value.len() < 8 && said.value.parse::<f64>().is_ok() && !is_secret_name(name);
        let value = if is_number {
            scalar(&said.value)
        } else {
            secrets.add_headers(&[format!("{name}: {}", said.value)]);
            let variable = format!("H_{}", name.to_ascii_uppercase().replace(['-', '.'], "_"));
            held.push(variable.clone());
            secret(&variable)
        };
        pairs.push(format!("{}: {value}", scalar(name)));
        origins.push(said.origin);
    }
    let held = if held.is_empty() { String::new() } else { format!(": set {} to their values", held.join(", ")) };
    let value = format!("{{ {} }}", pairs.join(", "));
    (key, (!pairs.is_empty()).then(|| Field::new("headers", value, format!("{}{held}", origins.join(", ")))))
}

/// Returns the field `telemetry` with the server's own metrics page, which is scraped directly instead of
/// through a Prometheus server.
fn telemetry(root: At, engine: &str) -> Option<Field> {
    let metrics = root.get("metrics")?;
    let said = metrics.get("type").and_then(At::text);
    let prometheus = metrics.get("prometheus");
    let every = prometheus.and_then(|at| at.get("scrape_interval")).and_then(At::seconds);
    if let Some(url) = prometheus.and_then(|at| at.get("url")) {
        url.differs("the server's own metrics page is scraped; no Prometheus server is queried");
    }
    let said = said.filter(|said| {
        if said.value != "prometheus"
            && let Some(at) = metrics.get("type")
        {
            at.needless("the client's own metrics are always recorded");
        }
        said.value == "prometheus"
    })?;
    if engine == "openai" {
        let why = "the metrics page of such a server is unknown: write `telemetry: http://HOST:PORT/metrics`";
        metrics.missing(why);
        return None;
    }
    // The interval is limited to the range that a plan allows.
    let every = every.map(|every| every.map(|seconds| seconds.clamp(0.1, 600.0)));
    let origin =
        every.as_ref().map_or_else(|| said.origin.clone(), |every| format!("{}, {}", said.origin, every.origin));
    let every = every.map_or_else(String::new, |every| format!(", every: {}", seconds(every.value.min(3600.0))));
    Some(Field::new("telemetry", format!("{{ prometheus: [on]{every} }}"), origin))
}

/// Returns the model: a hint for its name, and its fields.
pub(super) fn model(file: &str, root: At, around: &Around) -> Result<(String, Vec<Field>), ImportError> {
    let at = root.path(&["server", "model_name"]);
    let id = match (&around.model, at.and_then(At::text)) {
        (Some((model, origin)), said) => {
            if let (Some(at), Some(_)) = (at, said) {
                at.needless("`import --model` sets it");
            }
            Said { value: model.clone(), origin: origin.clone() }
        }
        (None, Some(said)) if !said.value.trim().is_empty() => said,
        (None, _) => {
            let remedy = "inference-perf queries the server; pass it: sweepline import --model ID …";
            return Err(ImportError::shape(file, "server.model_name is missing", remedy));
        }
    };
    let mut fields = vec![Field::new("id", text_value(&id.value), &id.origin)];
    fields.push(tokenizer(root, &id, around));
    let last = id.value.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    Ok((name_of(last, "model"), fields))
}

/// Returns the field `tokenizer`: the server if the tokenizer is the model's own, otherwise the files of the
/// other tokenizer if they are present.
fn tokenizer(root: At, model: &Said<String>, around: &Around) -> Field {
    let at = root.path(&["tokenizer", "pretrained_model_name_or_path"]);
    let said = at.and_then(At::text);
    match (at, said) {
        (Some(at), Some(said)) if said.value != model.value => {
            let read = named(&around.folder, &said.value).and_then(|path| {
                let path = scalar(&path);
                fits(&around.folder, &format!(", tokenizer: {path}"), "").map(|()| path)
            });
            read.map_or_else(
                |_| {
                    at.differs("the server counts with its own tokenizer; `tokenizer: FOLDER` counts with local files");
                    Field::new("tokenizer", "server", format!("{}: replaced by the server's own", said.origin))
                },
                |path| Field::new("tokenizer", path, &said.origin),
            )
        }
        (_, Some(said)) => Field::new("tokenizer", "server", format!("{}: the server counts with it", said.origin)),
        _ => Field::new(
            "tokenizer",
            "server",
            "default of inference-perf: the model's own tokenizer, with which the server counts",
        ),
    }
}

/// Returns the request fields other than the text.
pub(super) fn body(root: At, endpoint: &[Field], notes: &Notes) -> Body {
    let engine = endpoint.iter().find(|field| field.key == "engine").and_then(|field| of_engine(&field.value));
    let mut fields = Vec::new();
    if let Some(at) = root.path(&["api", "response_format"]) {
        let keys: Vec<&str> = at.entries().into_iter().map(|(key, _)| key).collect();
        let origin = format!("{}: {}", at.origin(), keys.join(", "));
        let name = at.get("name").and_then(At::text).map_or_else(|| "structured_output".to_owned(), |said| said.value);
        let kind = at.get("type").and_then(At::text).map_or_else(|| "json_schema".to_owned(), |said| said.value);
        let schema = at.get("json_schema").map_or(Value::Null, At::json);
        let value = match kind.as_str() {
            "json_object" => serde_json::json!({ "type": kind }),
            _ => serde_json::json!({ "type": kind, "json_schema": { "name": name, "schema": schema } }),
        };
        fields.push(("response_format".to_owned(), value, origin));
    }
    request::body(&fields, engine, notes.secrets, notes.at(0))
}

/// Returns the limits of each request, as set by `report.goodput` and by the headers of requests. If both set
/// the same limit, the stricter value applies.
pub(super) fn goodput(root: At) -> Vec<Field> {
    let mut limits: Vec<(&'static str, f64, String)> = Vec::new();
    let mut put =
        |key: &'static str, value: f64, origin: String| match limits.iter_mut().find(|(known, ..)| *known == key) {
            Some(known) => {
                let origin = format!("{} ({} s), {origin} ({value} s): the stricter one", known.2, known.1);
                (known.1, known.2) = (known.1.min(value), origin);
            }
            None => limits.push((key, value, origin)),
        };
    for (name, at) in root.path(&["report", "goodput", "constraints"]).map_or_else(Vec::new, At::entries) {
        let key = match name {
            "ttft" => "ttft",
            "tpot" | "itl" => "tpot",
            "request_latency" => "e2e",
            _ => {
                at.missing("`goodput` limits a request's ttft, tpot and e2e");
                continue;
            }
        };
        if let Some(said) = at.seconds().filter(|said| said.value > 0.0 && said.value < 1e6) {
            put(key, said.value, said.origin);
        }
    }
    let unit = root.path(&["api", "slo_unit"]).and_then(At::text).map_or_else(|| "ms".to_owned(), |said| said.value);
    let factor = match unit.as_str() {
        "s" => 1.0,
        "us" => 1e-6,
        _ => 1e-3,
    };
    for (key, option) in [("ttft", "slo_ttft_header"), ("tpot", "slo_tpot_header")] {
        let said = root.path(&["api", option]).and_then(At::text).map(|said| said.value);
        let header = said.unwrap_or_else(|| format!("x-slo-{key}-{unit}"));
        let value = root.path(&["api", "headers", &header]).and_then(At::text);
        if let Some((value, origin)) = value.and_then(|said| Some((said.value.parse::<f64>().ok()?, said.origin)))
            && value > 0.0
            && value < 1e9
        {
            put(key, value * factor, origin);
        }
    }
    let field = |(key, value, origin): (&'static str, f64, String)| {
        let micros = (value * 1e6).round().max(1.0) as u64;
        let value = if micros.is_multiple_of(1000) { format!("{}ms", micros / 1000) } else { format!("{micros}us") };
        Field::new(key, value, origin)
    };
    limits.into_iter().map(field).collect()
}
