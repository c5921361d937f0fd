//! Converts parameters of the server (`--serve-params`) to values of the `server` axis, and returns the
//! context of the server that they modify.

use serde_json::{Map, Value};

use super::arguments::Arguments;
use super::bench::facts;
use super::job::{Around, Setting};
use super::program::{Program, program};
use super::secrets::Secrets;
use super::serve::{Serve, flag_name, flag_value, is_flag_name, serve};
use super::shell::Command;
use crate::units::secrecy::names_secret;

/// Server options that the plan sets outside the server's command, each with the place where the
/// plan sets it.
const ELSEWHERE: [(&str, &str); 2] = [
    ("port", "all settings share one port: `port` of `launch`"),
    ("host", "all settings share one host: `url` of the endpoint"),
];

/// One combination of a parameter file.
#[derive(Debug, Clone, Default)]
pub(super) struct Record {
    pub(super) name: Option<String>,
    pub(super) values: Map<String, Value>,
}

/// Returns a combination as text.
pub(super) fn said_of(record: &Record, secrets: &Secrets) -> String {
    let shown = |(key, value): (&String, &Value)| format!("{key}={}", secrets.shown(key, &value.to_string()));
    let values: Vec<String> = record.values.iter().take(12).map(shown).collect();
    match &record.name {
        Some(name) => format!("`{name}` ({})", values.join(", ")),
        None => format!("{{{}}}", values.join(", ")),
    }
}

/// Returns the settings with which a plan can start a server, each with its record.
pub(super) fn settings(records: &[Record], origin: String, arguments: &Arguments) -> Vec<(Record, Setting)> {
    let mut all: Vec<(Record, Setting)> = Vec::new();
    for record in records {
        match flags(record, arguments) {
            Ok(flags) => {
                let setting = Setting { flags, name: record.name.clone(), origin: origin.clone() };
                match all.iter().find(|(_, known)| known.flags == setting.flags) {
                    Some(_) => arguments.needless(&what(record, arguments), "the same setting is already listed"),
                    None => all.push((record.clone(), setting)),
                }
            }
            Err(why) => arguments.missing(&what(record, arguments), &why),
        }
    }
    all
}

fn what(record: &Record, arguments: &Arguments) -> String {
    format!("serve-params {}", said_of(record, arguments.secrets()))
}

/// Returns the flags of one record by name, each value in YAML; the error gives the reason why a plan
/// cannot start a server with them.
fn flags(record: &Record, arguments: &Arguments) -> Result<Vec<(String, String)>, String> {
    let mut flags: Vec<(String, String)> = Vec::new();
    for (key, value) in &record.values {
        let name = flag_name(key);
        let shown = format!("serve-params {key}");
        arguments.notes.setting(&shown, arguments.line);
        if let Some((_, why)) = ELSEWHERE.iter().find(|(known, _)| *known == name) {
            arguments.missing(&format!("{shown} = {value}"), why);
            continue;
        }
        let text = text(value);
        let is_secret = names_secret(&name) || text.as_ref().is_some_and(|text| arguments.secrets().are_in(text));
        if is_secret {
            let why = "a plan holds no secret: pass it to the server as a variable, env: { VLLM_API_KEY: { secret: \
                       env:VLLM_API_KEY } } of `launch`";
            arguments.missing(&format!("{shown} ***"), why);
            continue;
        }
        if !is_flag_name(&name) {
            return Err(format!("skipped: `{key}` cannot be the name of a flag"));
        }
        let yaml = match value {
            // A key inside an option's value cannot be negated as `--no-KEY`, so its boolean value is written
            // as a text.
            Value::Bool(value) if name.contains('.') => Some(format!("\"{value}\"")),
            Value::Bool(value) => Some(value.to_string()),
            _ => text.as_deref().and_then(flag_value),
        };
        let yaml = yaml.ok_or_else(|| {
            format!(
                "skipped: the value of `{key}` cannot be the value of a flag; remove the key where the flag is not set"
            )
        })?;
        match name.strip_prefix("no_").map(|name| (name, &yaml)) {
            Some((name, yaml)) if yaml == "true" || yaml == "false" => {
                flags.push((name.to_owned(), if yaml == "true" { "false" } else { "true" }.to_owned()));
            }
            _ => flags.push((name, yaml)),
        }
    }
    Ok(flags)
}

/// Returns a value as one argument; `None` for values that the tool does not turn into an argument.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null | Value::Array(_) => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Completes settings that change nothing (`{}`), because every value of an axis must set something: they get
/// the base value of a flag that other settings change.
pub(super) fn with_baseline(settings: &mut Vec<(Record, Setting)>, around: &Around) {
    let first = settings.iter().find_map(|(_, setting)| setting.flags.first()).map(|(flag, _)| flag.clone());
    let Some(flag) = first else { return settings.clear() };
    let own = around.serve.as_ref().and_then(|serve| serve.flag(&flag)).unwrap_or("none").to_owned();
    for (_, setting) in settings.iter_mut().filter(|(_, setting)| setting.flags.is_empty()) {
        setting.flags.push((flag.clone(), own.clone()));
    }
}

/// Returns the context of the server that these settings modify, with the known facts about the server and
/// its start command.
pub(super) fn server(
    command: &Command,
    records: &[Record],
    settings: &[(Record, Setting)],
    arguments: &Arguments,
) -> Around {
    let names = |record: &Record| -> Vec<String> { record.values.keys().map(|key| flag_name(key)).collect() };
    let varied: Vec<String> = records.iter().flat_map(names).collect();
    let words = match program(&command.words) {
        Program::Serve(words) => words.to_vec(),
        _ => Vec::new(),
    };
    let mut around = facts(&words, crate::import::serve::origin(&command.words, command.line), arguments.secrets());
    let is_said = !command.words.is_empty();
    let mut started = match is_said {
        true => serve(command, &varied, "--serve-cmd", arguments.notes),
        false => {
            let why = "the plan starts `vllm serve` with the benchmark's model: write the command that starts your \
                server into `launch`";
            arguments.missing("the command that starts the server", why);
            Serve::usual()
        }
    };
    let in_all = |name: &String| settings.iter().all(|(record, _)| names(record).contains(name));
    started.varied = varied.into_iter().filter(in_all).collect();
    started.varied.dedup();
    around.serve = Some(started);
    around
}
