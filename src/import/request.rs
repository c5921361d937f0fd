//! Converts fields of a request's body, as tools receive them, to fields of a scenario. All request fields of
//! a plan are in one table, `plan::RequestFields`; this module maps each of them for importers.

use serde_json::Value;

use super::draft::Field;
use super::notes::Noted;
use super::secrets::{Secrets, WHY};
use super::text::{scalar, text_value};
use crate::plan::model::extra::dialect::{names, refused, takes};
use crate::plan::model::sampling;
use crate::plan::{Engine, Json, LengthField};
use crate::units::Decimal;
use crate::units::secrecy::is_secret_name;

/// The longest response that a scenario requests.
const LONGEST: u32 = 4_000_000;

/// A field of a request's body: its name, its value, and its origin.
pub(super) type BodyField = (String, Value, String);

/// The result of a body.
#[derive(Debug, Default)]
pub(super) struct Body {
    /// The fields of the scenario.
    pub fields: Vec<Field>,
    /// The other fields, as `extra`.
    pub extra: Option<Field>,
}

impl Body {
    /// Returns the scenario's field with this name.
    pub(super) fn field(&self, key: &str) -> Option<Field> {
        self.fields.iter().rfind(|field| field.key == key).cloned()
    }
}

/// Maps the fields of a body for this engine. If there are duplicates, the first one is used. Fields that
/// a plan or this engine does not support are listed.
pub(super) fn body(fields: &[BodyField], engine: Option<Engine>, secrets: &Secrets, notes: Noted) -> Body {
    let mut body = Body::default();
    let (mut extra, mut origins): (Vec<(String, String)>, Vec<String>) = Default::default();
    for (key, value, origin) in fields {
        let lost = |why: &str| {
            let shown = secrets.shown(key, &value.to_string());
            notes.missing(&format!("{origin} = {shown}"), why);
        };
        if is_own(key) {
            match own(key, value, origin) {
                Ok(field) if body.field(&field.key).is_some() => lost(TWICE),
                Ok(field) => body.fields.push(field),
                Err(why) => lost(&why),
            }
            continue;
        }
        if extra.iter().any(|(known, _)| known == key) {
            lost(TWICE);
            continue;
        }
        if secrets.are_in_value(key, value) {
            lost(WHY);
            continue;
        }
        match further(key, value, engine) {
            Ok(value) => {
                extra.push((key.clone(), value));
                origins.push(origin.clone());
            }
            Err(why) => lost(&why),
        }
    }
    let pairs: Vec<String> = extra.iter().map(|(key, value)| format!("{}: {value}", scalar(key))).collect();
    body.extra =
        (!pairs.is_empty()).then(|| Field::new("extra", format!("{{ {} }}", pairs.join(", ")), origins.join(", ")));
    body
}

const TWICE: &str = "another setting specifies the same, and is used";

/// Whether a scenario has its own name for a field of a body.
fn is_own(field: &str) -> bool {
    ["ignore_eos", "stop", "stream"].contains(&field) || asks_for_length(field) || sampling::named(field).is_some()
}

/// Whether a field of a body sets the maximum length of the response.
fn asks_for_length(field: &str) -> bool {
    LengthField::ALL.iter().any(|length| length.name() == field)
}

/// Maps a field for which a scenario has a name.
fn own(key: &str, value: &Value, origin: &str) -> Result<Field, String> {
    let number = || value.to_string().trim_matches('"').parse::<Decimal>().ok();
    let wrong = || "not an allowed value".to_owned();
    match key {
        key if asks_for_length(key) => {
            let tokens = number().and_then(|number| number.to_string().parse::<u32>().ok()).ok_or_else(wrong)?;
            if !(1..=LONGEST).contains(&tokens) {
                return Err(format!("a response has from 1 to {LONGEST} tokens"));
            }
            Ok(Field::new("output_tokens", tokens.to_string(), origin))
        }
        "stop" => stop(value).map(|texts| Field::new("stop", texts, origin)).ok_or_else(wrong),
        "ignore_eos" | "stream" => {
            let value = value.as_bool().ok_or_else(wrong)?;
            Ok(Field::new(key, value.to_string(), origin))
        }
        key => {
            let (low, high) = sampling::named(key).map_or((0, 0), |parameter| parameter.hundredths);
            let (low, high) = (Decimal::new(low, 2), Decimal::new(high, 2));
            let number = number().ok_or_else(wrong)?;
            match (low..=high).contains(&number) {
                true => Ok(Field::new(key, number.to_string(), origin)),
                false => Err(format!("{key} must be from {low} to {high} here: skipped")),
            }
        }
    }
}

/// Returns a field under `extra`, in YAML; the error gives the reason why it is not supported.
fn further(key: &str, value: &Value, engine: Option<Engine>) -> Result<String, String> {
    let fits = |value: &Value| serde_json::from_value::<Json>(value.clone());
    let name = engine.map_or("the server's engine", Engine::name);
    if takes(key).is_none() && is_secret_name(key) {
        return Err("a plan reads this as the name of a secret, and contains none".to_owned());
    }
    if let Some((reason, remedy)) = refused(key) {
        return Err(format!("{reason}: {remedy}"));
    }
    if let Some(takes) = takes(key)
        && !fits(value).is_ok_and(|value| takes.takes(&value))
    {
        return Err(format!("{key} is {}", takes.wanted()));
    }
    // A server that is only known to support OpenAI's API may accept any field.
    if engine != Some(Engine::Openai) && !engine.is_some_and(|engine| names(engine, key)) {
        return Err(format!(
            "whether `{name}` accepts {key} is unknown: write it under `extra` of the endpoint if it does"
        ));
    }
    flow(value).ok_or_else(|| "null sets nothing".to_owned())
}

/// Returns the stop texts of a response, which are one text or a list, as a value of a plan; `None` if one
/// of them is empty or not a text.
fn stop(value: &Value) -> Option<String> {
    let texts = match value {
        Value::Array(texts) => texts.as_slice(),
        one => std::slice::from_ref(one),
    };
    let texts = texts.iter().map(|text| text.as_str().filter(|text| !text.is_empty()).map(text_value));
    Some(format!("[{}]", texts.collect::<Option<Vec<_>>>().filter(|texts| !texts.is_empty())?.join(", ")))
}

/// Returns a value in YAML's flow style; `None` for null.
pub(super) fn flow(value: &Value) -> Option<String> {
    written(value, text_value)
}

/// Returns a value of a plan in YAML's flow style, with its templates unchanged; `None` for null.
pub(super) fn flow_as_it_is(value: &Value) -> Option<String> {
    written(value, scalar)
}

fn written(value: &Value, text: fn(&str) -> String) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(words) => text(words),
        Value::Array(items) => {
            let items: Option<Vec<String>> = items.iter().map(|item| written(item, text)).collect();
            format!("[{}]", items?.join(", "))
        }
        Value::Object(table) => {
            let entry = |(key, value): (&String, &Value)| Some(format!("{}: {}", text(key), written(value, text)?));
            let entries: Option<Vec<String>> = table.iter().map(entry).collect();
            format!("{{ {} }}", entries?.join(", "))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::notes::Notes;
    use crate::plan::RequestFields;

    /// Fields of a request that are not in the body, and how importers set them.
    const ELSEWHERE: [(&str, &str); 6] = [
        ("length_field", "the key that sets the length"),
        ("model", "rejected in a body: the entry of `models` sets it"),
        ("headers", "options for headers, each a reference to a secret"),
        ("inputs", "texts of one request for vectors, by an option"),
        ("documents", "documents of one request for scores, by an option"),
        ("query_tokens", "by the tool's option for the length of the query"),
    ];

    /// If a field is added to the plan's table of request fields, this test fails to compile or to
    /// pass.
    #[test]
    fn every_field_of_a_request_is_known_to_importers() {
        let RequestFields {
            sampling: _,
            stop: _,
            length_field: _,
            model: _,
            headers: _,
            inputs: _,
            documents: _,
            query_tokens: _,
        } = RequestFields::default();
        let schema = schemars_fields();
        for name in schema {
            let known = is_own(&name) || ELSEWHERE.iter().any(|(known, _)| *known == name);
            assert!(known, "no importer sets `{name}` of a request: add it to `own`, or where it is set");
        }
    }

    fn schemars_fields() -> Vec<String> {
        let names = ["stop", "length_field", "model", "headers", "inputs", "documents", "query_tokens"];
        let sampling = sampling::PARAMETERS.iter().map(|parameter| parameter.name);
        names.into_iter().chain(sampling).map(str::to_owned).collect()
    }

    #[test]
    fn a_body_is_split_into_what_a_scenario_says_and_what_an_engine_takes() {
        let secrets = Secrets::default();
        let notes = Notes::new(&secrets);
        let json = serde_json::json!({
            "temperature": 0.5, "max_completion_tokens": 7, "stop": "x", "top_k": 3, "min_p": 7, "api_key": "k", "made_up": 1,
            "stream": true, "ignore_eos": false, "n": 2, "max_tokens": 9,
        });
        let fields: Vec<BodyField> = json
            .as_object()
            .unwrap()
            .iter()
            .map(|(key, value)| (key.clone(), value.clone(), format!("--x {key}")))
            .collect();
        let body = body(&fields, Some(Engine::Vllm), &secrets, notes.at(3));
        let said: Vec<String> = body.fields.iter().map(|field| format!("{}={}", field.key, field.value)).collect();
        assert_eq!(said, ["temperature=0.5", "output_tokens=7", "stop=[x]", "stream=true", "ignore_eos=false"]);
        assert_eq!(body.extra.unwrap().value, "{ top_k: 3 }");
        let lost: Vec<String> = notes.listed.borrow().iter().map(|one| one.what.clone()).collect();
        assert_eq!(lost, ["--x min_p = 7", "--x api_key = ***", "--x made_up = 1", "--x n = 2", "--x max_tokens = 9"]);
    }
}
