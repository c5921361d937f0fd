//! Converts `endpoint.extra` and `--extra-inputs`, which are additional request fields, to fields of the
//! scenario, including its field `extra`.

use serde_json::Value;

use super::leaves::At;
use crate::import::draft::Field;
use crate::import::said::Said;
use crate::import::secrets::WHY;
use crate::import::text::{scalar, text_value};
use crate::plan::LengthField;
use crate::plan::model::extra::dialect::{names, refused, takes};
use crate::plan::model::sampling::PARAMETERS;
use crate::plan::{Api, Engine, Json};
use crate::units::Decimal;
use crate::units::secrecy::{is_secret_name, names_secret};

/// The additional fields.
#[derive(Default)]
pub(super) struct Extra {
    /// The output length, in tokens.
    pub output: Option<Said<f64>>,
    pub ignore_eos: Option<Said<bool>>,
    api: Api,
    /// Whether the engine is assumed to be vLLM, whose fields are known; for other servers, every field is
    /// put into `extra`.
    is_vllm: bool,
    /// Fields of the scenario.
    pub fields: Vec<Field>,
    /// Entries of `extra` as `name: value`, with their origins.
    rest: Vec<(String, String)>,
}

impl Extra {
    /// Reads the fields of requests of `api`. `is_vllm` states whether another setting implies vLLM.
    pub(super) fn of(at: At, api: Api, is_vllm: bool) -> Extra {
        let mut extra = Extra { api, is_vllm: is_vllm || at.get("ignore_eos").is_there(), ..Extra::default() };
        for (key, at) in at.entries() {
            extra.take(key, at);
        }
        extra
    }

    /// Returns the engine that the fields imply, with its origin: vLLM if `ignore_eos` is set, because OpenAI
    /// itself does not accept this field.
    pub(super) fn engine(&self) -> Option<(Engine, String)> {
        let said = self.ignore_eos.as_ref()?;
        Some((Engine::Vllm, format!("{}: write the server's engine", said.origin)))
    }

    /// Returns the field `extra`; `None` if it would be empty.
    pub(super) fn field(&self) -> Option<Field> {
        let values: Vec<&str> = self.rest.iter().map(|(value, _)| value.as_str()).collect();
        let origins: Vec<&str> = self.rest.iter().map(|(_, origin)| origin.as_str()).collect();
        let value = format!("{{ {} }}", values.join(", "));
        (!values.is_empty()).then(|| Field::new("extra", value, origins.join(", ")))
    }

    fn take(&mut self, key: &str, at: At) {
        if names_secret(key) || (takes(key).is_none() && is_secret_name(key)) {
            return at.missing(WHY);
        }
        if !self.api.has(key) {
            return at.missing(&format!("`api: {}` does not have this field", self.api.name()));
        }
        match key {
            "ignore_eos" => self.ignore_eos = at.flag(),
            "stream" => at.needless("`streaming` sets it"),
            key if key == self.api.protocol().stop_field() => self.stop(at),
            key if LengthField::ALL.iter().any(|length| length.name() == key) => self.output = at.float(),
            key => match PARAMETERS.iter().find(|parameter| parameter.name == key) {
                Some(parameter) => {
                    let (low, high) = parameter.hundredths;
                    let (low, high) = (Decimal::new(low, 2), Decimal::new(high, 2));
                    match at.number().filter(|said| (low..=high).contains(&said.value)) {
                        Some(said) => self.fields.push(Field::new(key, said.value.to_string(), said.origin)),
                        None => at.missing(&format!("skipped: {key} must be from {low} to {high}")),
                    }
                }
                None => self.further(key, at),
            },
        }
    }

    fn stop(&mut self, at: At) {
        let texts: Vec<Said<String>> = at.each().into_iter().filter_map(At::text).collect();
        let values: Vec<String> = texts.iter().map(|said| text_value(&said.value)).collect();
        match texts.iter().all(|said| !said.value.is_empty()) && !texts.is_empty() {
            true => self.fields.push(Field::new("stop", format!("[{}]", values.join(", ")), &texts[0].origin)),
            false => at.missing("`stop` must be a list of strings"),
        }
    }

    fn further(&mut self, key: &str, at: At) {
        if let Some((reason, remedy)) = refused(key) {
            return at.missing(&format!("{reason}: {remedy}"));
        }
        let fields = self.api.protocol().extra_fields();
        if fields.is_some_and(|fields| !fields.contains(&key)) {
            let why = format!("unknown to `api: {}`", self.api.name());
            return at.missing(&format!("{why}: write it under `extra` of the endpoint if the server accepts it"));
        }
        if fields.is_none() && self.is_vllm && !names(Engine::Vllm, key) {
            return at.missing("unknown to `vllm`: write it under `extra` of the endpoint if the server accepts it");
        }
        let Some(said) = at.json() else { return };
        if at.secrets().are_in_value(key, &said.value) {
            return at.missing(WHY);
        }
        let read = serde_json::from_value::<Json>(said.value.clone());
        if let Some(takes) = takes(key)
            && !read.is_ok_and(|value| takes.takes(&value))
        {
            return at.missing(&format!("{key} must be {}", takes.wanted()));
        }
        match flow(&said.value, 0) {
            Some(value) => self.rest.push((format!("{}: {value}", scalar(key)), said.origin)),
            None => at.missing("not a valid field value"),
        }
    }
}

/// Returns a value in YAML's flow style; `None` if it contains null or is nested too deeply.
fn flow(value: &Value, depth: usize) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        _ if depth > 8 => return None,
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => text_value(text),
        Value::Array(items) => {
            let items: Option<Vec<String>> = items.iter().map(|item| flow(item, depth + 1)).collect();
            format!("[{}]", items?.join(", "))
        }
        Value::Object(table) => {
            let entry = |(key, value): (&String, &Value)| {
                let value = flow(value, depth + 1)?;
                Some(format!("{}: {value}", text_value(key)))
            };
            let entries: Option<Vec<String>> = table.iter().map(entry).collect();
            format!("{{ {} }}", entries?.join(", "))
        }
    })
}
