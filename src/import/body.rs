//! Converts the body of a request, which a tool builds from its own fields and from options, to fields of a
//! scenario.

use serde_json::Value;

use super::draft::Field;
use super::notes::Notes;
use super::request::{self, BodyField};
use super::said::Said;
use super::spread::LONGEST;
use crate::plan::model::extra::of_engine;
use crate::plan::model::sampling;
use crate::plan::{Api, LengthField};

/// Fields of a body, each with the words that specify it.
#[derive(Debug, Default, Clone)]
pub(super) struct Body(Vec<BodyField>);

impl Body {
    /// Adds a field, which replaces an earlier field of the same name.
    pub(super) fn add(&mut self, key: impl Into<String>, value: Value, origin: impl Into<String>) {
        let key = key.into();
        self.0.retain(|(known, ..)| *known != key);
        self.0.push((key, value, origin.into()));
    }

    /// Adds a field unless a field of that name exists.
    pub(super) fn add_default(&mut self, key: &str, value: Value, origin: &str) {
        if !self.0.iter().any(|(known, ..)| known == key) {
            self.add(key, value, origin);
        }
    }

    /// Parses a text as a JSON object and adds its fields. Any other text is noted as invalid, which makes
    /// the import fail.
    pub(super) fn add_text(&mut self, said: Option<Said<String>>, notes: &Notes, line: usize) {
        let Some(Said { value, origin }) = said else { return };
        let option = origin.split(' ').next().unwrap_or_default().to_owned();
        match serde_json::from_str::<Value>(&value) {
            Ok(Value::Object(object)) if object.is_empty() => notes.needless(&origin, "it is empty", line),
            Ok(Value::Object(object)) => {
                notes.secrets.add_json(&Value::Object(object.clone()));
                object.into_iter().for_each(|(key, value)| {
                    let origin = format!("{option} {key}");
                    self.add(key, value, origin);
                });
            }
            _ => notes.wrong(&origin, "this is not a JSON object", line),
        }
    }

    /// Removes and lists the fields that requests of `api` do not have.
    pub(super) fn keep_fields_of(&mut self, api: Api, notes: &Notes, line: usize) {
        let Some(extra) = api.protocol().extra_fields() else { return };
        for (key, value, origin) in std::mem::take(&mut self.0) {
            if key == api.protocol().stop_field() {
                self.0.push(("stop".to_owned(), value, origin));
            } else if is_of_plans(api, &key) || extra.contains(&key.as_str()) {
                self.0.push((key, value, origin));
            } else {
                let shown = notes.secrets.shown(&key, &value.to_string());
                let why = format!("`api: {}` does not have this field", api.name());
                notes.missing(&format!("{origin} = {shown}"), &why, line);
            }
        }
    }

    /// Removes and returns a field.
    pub(super) fn take(&mut self, key: &str) -> Option<(Value, String)> {
        let at = self.0.iter().position(|(known, ..)| known == key)?;
        let (_, value, origin) = self.0.remove(at);
        Some((value, origin))
    }

    /// Removes and returns the requested number of output tokens; `None` if the body does not contain a valid
    /// one.
    pub(super) fn output_tokens(&mut self) -> Option<Said<u32>> {
        let says = |key: &str| key == "max_new_tokens" || LengthField::ALL.iter().any(|length| length.name() == key);
        let at = self.0.iter().position(|(key, ..)| says(key))?;
        let length = self.0[at].1.as_u64().filter(|length| (1..=u64::from(LONGEST)).contains(length))?;
        let (_, _, origin) = self.0.remove(at);
        Some(Said { value: u32::try_from(length).unwrap_or(LONGEST), origin })
    }

    /// Returns the fields of a scenario for an endpoint of this engine. Fields that have no place in a
    /// scenario are listed. A sampling parameter that is null is not sent.
    pub(super) fn fields(self, engine: &str, notes: &Notes, line: usize) -> Vec<Field> {
        let is_omitted = |(key, value, _): &BodyField| value.is_null() && sampling::named(key).is_some();
        let (omitted, said): (Vec<BodyField>, Vec<BodyField>) = self.0.into_iter().partition(is_omitted);
        let made = request::body(&said, of_engine(engine), notes.secrets, notes.at(line));
        let mut fields: Vec<Field> =
            omitted.into_iter().map(|(key, _, origin)| Field::new(&key, "omit", origin)).collect();
        fields.extend(made.fields);
        fields.extend(made.extra);
        fields
    }
}

/// Whether a plan has its own name for a field that requests of `api` have.
fn is_of_plans(api: Api, key: &str) -> bool {
    let is_length = LengthField::ALL.iter().any(|length| length.name() == key);
    is_length || (sampling::named(key).is_some() && api.has(key))
}
