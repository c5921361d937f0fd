//! Reads the server and the model of a command.

use std::collections::BTreeMap;

use indexmap::IndexMap;

use crate::import::address::address;
use crate::import::arguments::Arguments;
use crate::import::clean;
use crate::import::draft::Field;
use crate::import::endpoint;
use crate::import::error::ImportError;
use crate::import::job::Around;
use crate::import::program::Tool;
use crate::import::said::Said;
use crate::import::secrets::{Secrets, headers};
use crate::import::shell::{Command, marks, shown};
use crate::import::text::{name_of, scalar, secret, table, text_value};
use crate::plan::{Api, is_sent_by_itself};
use crate::units::secrecy::names_secret;
use crate::units::text::is_variable;

/// The environment variable for a key that was given literally rather than by name.
const KEY: &str = "OPENAI_API_KEY";
/// The prefix of the key in an authorization header.
const BEARER: &str = "bearer ";

/// Returns the engine and the API of a backend (`--backend`); `None` if the backend returns neither text nor
/// vectors nor scores.
fn backend(name: &str) -> Option<(&'static str, &'static str)> {
    Some(match name {
        "vllm" => ("vllm", "completions"),
        "openai" => ("openai", "completions"),
        "openai-chat" => ("openai", "chat"),
        "sglang" | "sglang-native" => ("sglang", "completions"),
        "sglang-oai" => ("sglang", "completions"),
        "sglang-oai-chat" => ("sglang", "chat"),
        "vllm-chat" => ("vllm", "chat"),
        "tgi" => ("tgi", "completions"),
        "llama.cpp" => ("llamacpp", "completions"),
        "openai-embeddings" | "infinity-embeddings" => ("openai", "embeddings"),
        "openai-responses" => ("openai", "responses"),
        "vllm-rerank" => ("vllm", "rerank"),
        "lmdeploy" | "scalellm" | "tensorrt-llm" | "deepspeed-mii" => ("openai", "completions"),
        _ => return None,
    })
}

/// Returns the endpoint of a command; `None` if the command requests anything other than text, embeddings or
/// rankings.
pub(super) fn endpoint(
    place: &str,
    tool: Tool,
    arguments: &Arguments,
    command: &Command,
    around: &Around,
) -> Result<Option<(String, Vec<Field>)>, ImportError> {
    // Versions of vLLM before 0.11 called the option `--endpoint-type`.
    let named = arguments.text("endpoint-type").or_else(|| arguments.text("backend"));
    if arguments.text("backend").is_some()
        && named.as_ref().is_some_and(|said| said.origin.starts_with("--endpoint-type"))
    {
        arguments.needless("--backend", "--endpoint-type is more specific");
    }
    let default = if tool == Tool::Script { "vllm" } else { "openai" };
    let named = named.unwrap_or_else(|| Said::default(default.to_owned(), format!("default of {}", tool.name())));
    let Some((engine, api)) = backend(&named.value) else {
        arguments.missing(&named.origin, "this command is skipped: only text, embeddings and rankings are measured");
        return Ok(None);
    };
    let path = arguments.text("endpoint");
    let url = url(place, arguments, path.as_ref(), around)?;
    let mut fields = vec![Field::new("url", text_value(&url.value), url.origin)];
    fields.push(engine_field(engine, &named));
    let called = path.and_then(|path| Some((api_at(&path.value)?.0, path.origin)));
    fields.push(match called {
        Some((api, origin)) => Field::new("api", api.name(), origin),
        None => Field::new("api", api, &named.origin),
    });
    fields.extend(key(arguments, command));
    if let Some(insecure) = arguments.flag("insecure") {
        fields.push(Field::new("insecure_tls", "true", insecure.origin));
    }
    fields.extend(ready(arguments));
    let name = fields[1].value.clone();
    Ok(Some((name, fields)))
}

/// Returns `ready`, the time limit for the server to become ready. With a limit of 0, vLLM does not check at
/// all; a plan cannot express this, because `run` always checks once.
pub(crate) fn ready(arguments: &Arguments) -> Option<Field> {
    let said = arguments.text("ready-check-timeout-sec")?;
    let seconds: u64 = said.value.trim().parse().ok().or_else(|| {
        arguments
            .missing(&said.origin, "not a whole number of seconds: write `ready: { within: 60s }` of the endpoint");
        None
    })?;
    // A plan allows a wait of at most one year.
    Some(Field::new("ready", format!("{{ within: {}s }}", seconds.min(31_536_000)), said.origin))
}

/// Returns the field `engine`. `vllm bench serve` is made for vLLM, so its backend `openai` names only the
/// API, not another engine.
fn engine_field(engine: &'static str, named: &Said<String>) -> Field {
    match engine {
        "openai" if named.value.starts_with("openai") => {
            let origin =
                format!("{}; write the engine that responds: it determines whether ignore_eos is sent", named.origin);
            Field::new("engine", "vllm", origin)
        }
        engine => Field::new("engine", engine, &named.origin),
    }
}

/// Returns the API that a path belongs to, and the part of the path before the API's own path; `None` if the
/// path belongs to no known API.
fn api_at(path: &str) -> Option<(Api, &str)> {
    let called = |api: Api| path.strip_suffix(api.protocol().path()).map(|before| (api, before));
    // No backend of the tool sends requests of this API.
    let apis = Api::ALL.into_iter().filter(|api| *api != Api::Messages);
    apis.filter_map(called).min_by_key(|(_, before)| before.len())
}

/// Returns the base address of the API.
fn url(
    place: &str,
    arguments: &Arguments,
    path: Option<&Said<String>>,
    around: &Around,
) -> Result<Said<String>, ImportError> {
    let (host, port) = (
        arguments.needed_unless(around.is_given_url(), place, "host")?,
        arguments.needed_unless(around.is_given_url(), place, "port")?,
    );
    let named = arguments
        .needed_unless(around.is_given_url(), place, "base-url")?
        .or_else(|| endpoint::of_parts(host, port, "8000"));
    let base = match endpoint::base(named, around, arguments.notes, arguments.line) {
        Some(base) if around.url.as_ref().is_some_and(|(_, origin)| *origin == base.origin) => return Ok(base),
        Some(base) => base,
        None => Said::default("http://127.0.0.1:8000".to_owned(), "default host and port"),
    };
    let shown = arguments.secrets().hide(&base.value);
    let read = address(&base.value).map_err(|reason| {
        let what = format!("`{shown}` is not a server's base URL: {reason}");
        ImportError::shape(place, what, "write --base-url http://HOST:PORT")
    })?;
    if base.value.contains('$') {
        let what = format!("the address `{shown}` contains a shell variable");
        let remedy = "write the address itself, or pass it to import: sweepline import --url http://HOST:PORT …";
        return Err(ImportError::shape(place, what, remedy));
    }
    if read.had_secret {
        clean::credentials(arguments.notes, arguments.line);
    }
    // If the address was changed, the original is not shown, because it may contain a secret.
    let origin =
        if read.is_changed { base.origin.split(' ').next().unwrap_or_default().to_owned() } else { base.origin };
    let url = read.url;
    Ok(joined(&url, path, origin, arguments))
}

/// Joins the base address and the part of the path before the API's own path.
fn joined(base: &str, path: Option<&Said<String>>, origin: String, arguments: &Arguments) -> Said<String> {
    let call = path.map_or("/v1/completions", |path| path.value.as_str());
    let before = api_at(call).map(|(_, before)| before);
    match (before, path) {
        (Some(before), _) => {
            let before = before.trim_matches('/');
            let base = if before.is_empty() { base.to_owned() } else { format!("{base}/{before}") };
            let origin = match path {
                Some(path) => format!("{origin}, {}", path.origin),
                None => format!("{origin}, and the default --endpoint /v1/completions"),
            };
            Said { value: base, origin }
        }
        (None, path) => {
            let what = path.map_or(call, |path| path.origin.as_str());
            arguments.missing(what, "this API is not supported; the plan uses the server's OpenAI API under /v1");
            Said { value: format!("{base}/v1"), origin }
        }
    }
}

/// Returns the fields for the API key and the headers, which refer to their values by the names of
/// environment variables.
pub(crate) fn key(arguments: &Arguments, command: &Command) -> Vec<Field> {
    let reference = |variable: &str, origin: String| Some(Field::new("api_key", secret(variable), origin));
    let mut found = None;
    // Header names, and the variables that contain their values.
    let mut further: Vec<(String, String)> = Vec::new();
    if let Some(given) = arguments.many("header") {
        for (name, value) in headers(&given.value) {
            if !name.eq_ignore_ascii_case("authorization") {
                let is_whole = !name.is_empty() && !value.is_empty() && !arguments.secrets().are_in(&name);
                let is_name = is_whole && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
                if !is_name {
                    arguments.missing("--header ***", "not NAME=VALUE");
                    continue;
                }
                if is_sent_by_itself(&name) {
                    arguments.missing(&format!("--header {name}"), "sweepline sets this header itself");
                    continue;
                }
                // If a header occurs twice, the last one counts, as in the tool.
                if let Some(at) = further.iter().position(|(one, _)| one.eq_ignore_ascii_case(&name)) {
                    further.remove(at);
                    arguments.missing(&format!("--header {name}"), "it occurs twice: the last one counts");
                }
                // The value of a header may be a secret, so the plan refers to an environment variable that
                // contains the value.
                let variable = marks(&value).first().filter(|name| is_variable(name)).map(|name| (*name).to_owned());
                let variable = variable.unwrap_or_else(|| name.to_ascii_uppercase().replace(['-', '.'], "_"));
                further.push((name, variable));
                continue;
            }
            let bare = value
                .get(..BEARER.len())
                .filter(|begin| begin.eq_ignore_ascii_case(BEARER))
                .map_or(value.as_str(), |_| &value[BEARER.len()..]);
            let variable = marks(bare).first().filter(|name| is_variable(name)).map(|name| (*name).to_owned());
            let origin = match &variable {
                Some(variable) => format!("--header Authorization, from ${variable}"),
                None => format!("--header Authorization: put the key into the variable {KEY}"),
            };
            found = reference(variable.as_deref().unwrap_or(KEY), origin);
        }
    }
    let key = found.or_else(|| {
        let set = command.secrets.iter().find(|name| *name == KEY)?;
        reference(set, format!("{set} in the environment"))
    });
    let headers = (!further.is_empty()).then(|| {
        let one = |(name, variable): &(String, String)| format!("{name}: {}", secret(variable));
        let variables: Vec<&str> = further.iter().map(|(_, variable)| variable.as_str()).collect();
        let origin = format!("--header: put their values into {}", variables.join(", "));
        Field::new("headers", format!("{{ {} }}", further.iter().map(one).collect::<Vec<_>>().join(", ")), origin)
    });
    key.into_iter().chain(headers).collect()
}

/// Returns the model of a command.
pub(super) fn model(place: &str, arguments: &Arguments, around: &Around) -> Result<(String, Vec<Field>), ImportError> {
    let known = around.model.as_ref().is_some_and(|(model, _)| !model.trim().is_empty());
    let read = |option: &str| arguments.needed_unless(known, place, option);
    let named = |said: &Said<String>| {
        let is_empty = said.value.trim().is_empty();
        if is_empty {
            arguments.missing(&said.origin, "it names nothing");
        }
        !is_empty
    };
    let (model, served) = (read("model")?.filter(named), read("served-model-name")?.filter(named));
    if let (Some(_), Some(model)) = (&served, &model) {
        arguments.needless(&model.origin, "the server lists the model under --served-model-name");
    }
    let Some(id) = endpoint::model_id(served.or(model), around, arguments.notes, arguments.line) else {
        let remedy = "add --model ID to it, or pass it to import: sweepline import --model ID …";
        return Err(ImportError::shape(place, "the command names no model", remedy));
    };
    let last = id.value.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    Ok((name_of(last, "model"), vec![Field::new("id", text_value(&id.value), id.origin)]))
}

/// Returns the information in a command that starts a server: facts about the server, the model,
/// and the address.
pub(crate) fn facts(words: &[String], by: String, secrets: &Secrets) -> Around {
    let mut around = Around::default();
    let (mut own, mut flags): (IndexMap<String, String>, BTreeMap<String, String>) = Default::default();
    let (mut host, mut port) = (None, None);
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let Some(option) = word.strip_prefix("--") else {
            let is_name = !word.trim().is_empty() && !word.starts_with('-');
            if around.model.is_none() && marks(word).is_empty() && is_name {
                around.model = Some((word.clone(), by.clone()));
            }
            continue;
        };
        let (name, inline) =
            option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value.to_owned())));
        let value = inline.or_else(|| words.next_if(|word| !word.starts_with("--")).cloned());
        let value = value.unwrap_or_else(|| "true".to_owned());
        let name = name.replace('-', "_");
        let shown = fact(&value, secrets);
        match name.as_str() {
            name if names_secret(name) => while words.next_if(|word| !word.starts_with("--")).is_some() {},
            "model" | "model_path" | "served_model_name" if !value.trim().is_empty() => {
                around.model = Some((value, by.clone()));
            }
            "host" => host = Some(value),
            "port" => port = Some(value),
            "tensor_parallel_size" | "tp" | "tp_size" => drop(own.insert("tensor_parallel".to_owned(), shown)),
            "pipeline_parallel_size" | "pp" => drop(own.insert("pipeline_parallel".to_owned(), shown)),
            _ => drop(flags.insert(name, shown)),
        }
    }
    if let Some(port) = port {
        let host = host.filter(|host| host != "0.0.0.0").unwrap_or_else(|| "127.0.0.1".to_owned());
        let url = format!("http://{host}:{port}/v1");
        // An invalid port is listed with the words of the command.
        let is_address = marks(&url).is_empty() && address(&url).is_ok();
        around.url = is_address.then(|| (url, format!("--port of {by}")));
    }
    let mut all: Vec<String> = own.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    if !flags.is_empty() {
        all.push(format!("flags: {}", table(&flags)));
    }
    around.facts = (!all.is_empty()).then(|| Field::new("server", format!("{{ {} }}", all.join(", ")), by));
    around
}

/// Formats the value of a fact: a number or a switch unchanged, anything else as a text.
fn fact(value: &str, secrets: &Secrets) -> String {
    let plain = value == "true"
        || value == "false"
        || (value.len() < 16 && value.parse::<u64>().is_ok_and(|n| n.to_string() == value));
    if plain { value.to_owned() } else { scalar(&secrets.hide(&shown(value))) }
}
