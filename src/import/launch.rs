//! Determines how the server of a command is launched, as fields of its endpoint.

use indexmap::IndexMap;
use reqwest::Url;

use super::draft::Field;
use super::job::Around;
use super::notes::Noted;
use super::serve::{SERVER_KEY, Serve, Word};
use super::text::{cell_text, scalar, secret, table, text_value};

/// Flags that set the number of accelerators of a server.
const SPREAD: [&str; 3] = ["tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"];

/// Adds the launch of the server to the fields of an endpoint, or the known facts about the server if the
/// plan cannot start it.
pub(super) fn add(fields: &mut Vec<Field>, model: &str, around: &Around, notes: Noted) {
    let url =
        fields.iter().find(|field| field.key == "url").and_then(|field| Url::parse(field.value.trim_matches('"')).ok());
    match around.serve.as_ref().filter(|serve| is_launched(serve, url.as_ref(), around, notes)) {
        Some(serve) => launched(fields, serve, model, url.as_ref(), around, notes),
        None => fields.extend(around.facts.clone()),
    }
    fields.extend(around.between.clone());
}

/// Whether the plan starts the server, which it always does if an axis sets the server's flags. If the plan
/// does not start the server, the reason is listed.
fn is_launched(serve: &Serve, url: Option<&Url>, around: &Around, notes: Noted) -> bool {
    let host = url.and_then(Url::host_str).unwrap_or_default();
    let is_here = ["127.0.0.1", "localhost", "[::1]"].contains(&host) || serve.host.as_deref() == Some(host);
    let why = match &serve.behind {
        _ if around.setting.is_some() => return true,
        Some(program) => format!(
            "started under `{program}`, which may keep running after the command ends: the plan measures the server \
             that runs there; to start it from the plan, write `launch: {{ command: […], stop: {{ command: […] }} }}` \
             of the endpoint"
        ),
        None if !is_here => format!(
            "the benchmark sends requests to {host}, but this command starts a server on the local host: the plan \
             measures the server that runs there; to start one from the plan, write `launch: {{ command: […] }}` of \
             the endpoint"
        ),
        None => return true,
    };
    // The origin includes the line of the server, because the line of these notes is the line of the
    // benchmark.
    notes.missing(&serve.origin, &why);
    false
}

fn launched(fields: &mut Vec<Field>, serve: &Serve, model: &str, url: Option<&Url>, around: &Around, notes: Noted) {
    let port = url.and_then(Url::port_or_known_default).map(|port| port.to_string()).unwrap_or_default();
    let is_said = serve.words.iter().any(|word| matches!(word, Word::Port(_)));
    let mut words: Vec<String> = serve.words.iter().map(|word| in_yaml(word, model, &port)).collect();
    if !serve.port.is_empty() && !is_said && port == serve.port {
        words.extend([plain("--port"), "\"{{ port }}\"".to_owned()]);
    }
    words.push("\"{{ server.args }}\"".to_owned());
    let mut launch = vec![format!("command: [{}]", words.join(", "))];
    let [mut env, host_env] = serve.env.clone();
    let key = key(fields, serve, &mut env, notes);
    for (name, all) in [("env", &env), ("host_env", &host_env)] {
        if !all.is_empty() {
            launch.push(format!("{name}: {}", table(all)));
        }
    }
    fields.extend(key);
    fields.push(Field::new("launch", format!("{{ {} }}", launch.join(", ")), &serve.origin));
    if !serve.flags.is_empty() {
        fields.push(Field::new("server", format!("{{ flags: {} }}", table(&serve.flags)), &serve.origin));
    }
    fields.extend(hardware(serve));
    ready(fields, around, notes);
}

/// Adds the time limit for each start, which replaces the client's time limit for waiting for the server.
fn ready(fields: &mut Vec<Field>, around: &Around, notes: Noted) {
    let of_client = fields.iter().position(|field| field.key == "ready");
    let is_none = |field: &Field| field.value == "{ within: 0s }";
    if let Some(at) = of_client.filter(|at| around.ready.is_some() || is_none(&fields[*at])) {
        let field = fields.remove(at);
        notes.needless(&field.origin, "at every start of a server, the plan waits until it is ready");
    }
    fields.extend(around.ready.clone());
}

/// Returns the field `api_key` if the server requires a key and the endpoint does not have this field yet.
/// The server requires the same key that clients send, so one variable holds the key for both.
fn key(fields: &[Field], serve: &Serve, env: &mut IndexMap<String, String>, notes: Noted) -> Option<Field> {
    let of_server = serve.key.as_ref()?;
    let reference = secret(of_server);
    match fields.iter().find(|field| field.key == "api_key") {
        None => Some(Field::new("api_key", reference, format!("the key of {}", serve.origin))),
        Some(known) if known.value == reference => None,
        Some(known) => {
            let why = "the server gets the key that the plan sends: put one key into that variable";
            notes.needless(&format!("the key of {}", serve.origin), why);
            env.insert(SERVER_KEY.to_owned(), known.value.clone());
            None
        }
    }
}

/// Returns `hardware` with the number of accelerators if this number depends on an axis, because results per
/// accelerator and costs depend on it.
fn hardware(serve: &Serve) -> Option<Field> {
    let is_on_axis = |flag: &&&str| serve.varied.iter().any(|varied| varied == **flag);
    let varied = SPREAD.iter().filter(is_on_axis).count();
    let known = SPREAD.iter().filter(|flag| is_on_axis(flag) || serve.flags.contains_key(**flag));
    let factors: Vec<String> = known.map(|flag| format!("server.{flag}")).collect();
    let value = format!("{{ gpus: \"{{{{ {} }}}}\" }}", factors.join(" * "));
    (varied > 0).then(|| Field::new("hardware", value, "accelerators per setting"))
}

/// Returns a word in YAML. Values that the plan also contains elsewhere become templates.
fn in_yaml(word: &Word, model: &str, port: &str) -> String {
    match word {
        Word::Model(text) if text.is_empty() || text_value(text) == model => "\"{{ model.id }}\"".to_owned(),
        Word::Port(text) if text == port => "\"{{ port }}\"".to_owned(),
        Word::Text(text) | Word::Model(text) | Word::Port(text) => plain(text),
    }
}

/// Returns a word in YAML; an option needs no quotes.
fn plain(text: &str) -> String {
    let is_option = text.strip_prefix("--").is_some_and(|name| {
        name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    });
    if is_option { text.to_owned() } else { scalar(&cell_text(text)) }
}
