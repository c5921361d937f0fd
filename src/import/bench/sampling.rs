//! Fields of a request that not every server knows → `extra` of the scenario.

use serde_json::Value;

use super::arguments::{Arguments, Said};
use super::content::is_own;
use crate::import::draft::Field;
use crate::import::text::{scalar, text_value};
use crate::plan::Engine;
use crate::plan::Json;
use crate::plan::model::extra::dialect::{names, refused, takes};
use crate::plan::model::extra::of_engine;
use crate::units::Decimal;
use crate::units::secrecy::names_secret;

/// The options, and the fields of a request that they set.
const OPTIONS: [(&str, &str); 3] =
    [("top-k", "top_k"), ("min-p", "min_p"), ("repetition-penalty", "repetition_penalty")];

/// The field `extra` with what the command says and the endpoint's engine takes; the rest is listed.
pub(super) fn extra(arguments: &Arguments, endpoint: &[Field]) -> Option<Field> {
    let engine = endpoint.iter().find(|field| field.key == "engine").and_then(|field| of_engine(&field.value));
    let (mut fields, mut origins) = (Vec::new(), Vec::new());
    for (option, key) in OPTIONS {
        let Some(Said { value, origin }) = arguments.number::<Decimal>(option, "a number") else { continue };
        let takes = takes(key).filter(|takes| !takes.takes(&Json::Number(value)));
        if let Some(takes) = takes {
            arguments.missing(&origin, &format!("{key} is {}, which {value} is not", takes.wanted()));
            continue;
        }
        match engine.filter(|engine| names(*engine, key)) {
            Some(_) => {
                fields.push(format!("{key}: {value}"));
                origins.push(origin);
            }
            None => {
                let engine = engine.map_or("the server's engine", Engine::name);
                let why = format!(
                    "whether `{engine}` takes {key} is not known: write `extra: {{ {key}: {value} }}` if it does"
                );
                arguments.missing(&origin, &why);
            }
        }
    }
    for (key, value, origin) in body(arguments) {
        if is_own(&key) {
            continue;
        }
        let shown = arguments.secrets().shown(&key, &value.to_string());
        let takes = takes(&key);
        let fits = |takes: crate::plan::model::extra::dialect::Takes| {
            serde_json::from_value::<Json>(value.clone()).is_ok_and(|value| takes.takes(&value))
        };
        let (is_taken, engine_name) = match engine {
            Some(engine) => (names(engine, &key), engine.name()),
            None => (false, "the server's engine"),
        };
        let known = fields.iter().any(|field: &String| field.starts_with(&format!("{key}: ")));
        let why = match takes {
            _ if names_secret(&key) => Some("a plan holds no secret".to_owned()),
            _ if refused(&key).is_some() => refused(&key).map(|(reason, remedy)| format!("{reason}: {remedy}")),
            _ if known => Some("an option of the command says it too, and is taken".to_owned()),
            Some(takes) if !fits(takes) => Some(format!("{key} is {}", takes.wanted())),
            _ if !is_taken => {
                Some(format!("whether `{engine_name}` takes {key} is not known: write it under `extra` if it does"))
            }
            _ => None,
        };
        match (why, flow(&value)) {
            (None, Some(value)) => {
                fields.push(format!("{}: {value}", scalar(&key)));
                origins.push(origin);
            }
            (why, _) => {
                let why = why.unwrap_or_else(|| "a null says nothing".to_owned());
                arguments.missing(&format!("{origin} = {shown}"), &why);
            }
        }
    }
    (!fields.is_empty()).then(|| Field::new("extra", format!("{{ {} }}", fields.join(", ")), origins.join(", ")))
}

/// The fields of `--extra-body`, and the arguments of the chat template, each with where it came from.
fn body(arguments: &Arguments) -> Vec<(String, Value, String)> {
    let read = |said: Option<Said<String>>| said.and_then(|said| serde_json::from_str(&said.value).ok());
    let mut fields = Vec::new();
    if let Some(body) = read(arguments.text("extra-body")) {
        arguments.secrets().add_json(&body);
        let Value::Object(body) = body else { return fields };
        fields.extend(body.into_iter().map(|(key, value)| {
            let origin = format!("--extra-body {key}");
            (key, value, origin)
        }));
    }
    if let Some(said) = arguments.text("chat-template-kwargs") {
        match serde_json::from_str(&said.value) {
            Ok(Value::Object(table)) => {
                let option = "--chat-template-kwargs".to_owned();
                fields.push(("chat_template_kwargs".to_owned(), Value::Object(table), option));
            }
            _ => arguments.missing(&said.origin, "this is not a JSON object"),
        }
    }
    fields
}

/// A value in YAML's flow style; none for null.
fn flow(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => text_value(text),
        Value::Array(items) => {
            let items: Option<Vec<String>> = items.iter().map(flow).collect();
            format!("[{}]", items?.join(", "))
        }
        Value::Object(table) => {
            let entry = |(key, value): (&String, &Value)| Some(format!("{}: {}", text_value(key), flow(value)?));
            let entries: Option<Vec<String>> = table.iter().map(entry).collect();
            format!("{{ {} }}", entries?.join(", "))
        }
    })
}
