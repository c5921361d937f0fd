//! What a request carries beside its text, whatever the engine: sampling parameters, texts at which it stops, under which name the
//! length is asked for, another model id.
//!
//! This is the one home of such a field: scenarios are laid over each other here (`apply`), and what a run is, provenance, the lint's
//! comparison of scenarios and the body of a request read it here. A field is added by its entry in `scenario.rs` and here.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::plan::model::headers::Headers;
use crate::plan::model::length_field::LengthField;
use crate::plan::model::sampling::Sampling;
use crate::plan::model::scenario::Scenario;
use crate::plan::model::text_or_secret::TextOrSecret;
use crate::units::Decimal;

/// The fields, with every default explicit.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RequestFields {
    /// Sampling parameters, each under its name.
    #[serde(flatten)]
    pub sampling: Sampling,
    /// Texts at which an answer ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Under which name the length is asked for.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub length_field: LengthField,
    /// The model id that is sent in the place of the model's own.
    pub model: Option<String>,
    /// Headers, those of the endpoint among them.
    #[serde(default, skip_serializing_if = "Headers::is_empty")]
    pub headers: Headers,
    /// Texts of a request for vectors; none where it asks for something else.
    pub inputs: Option<u32>,
    /// Documents of a request for scores; none where it asks for something else.
    pub documents: Option<u32>,
    /// Tokens of the query that documents are scored for.
    pub query_tokens: Option<u32>,
}

/// A field as it stands in the identity of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldValue {
    /// A number.
    Decimal(Decimal),
    /// A text.
    Text(String),
    /// Anything else, as JSON.
    Json(String),
}

impl RequestFields {
    /// Lays what a scenario says over them; what it does not say stays.
    pub fn apply(&mut self, scenario: &Scenario) {
        self.sampling.apply(scenario.sampling());
        if !scenario.stop.is_empty() {
            self.stop = scenario.stop.0.clone();
        }
        match scenario.asked_under() {
            Some(field) => self.length_field = field,
            None if scenario.lengths.is_some() => self.length_field = LengthField::default(),
            None => {}
        }
        if let Some(model) = &scenario.model {
            self.model = Some(model.clone());
        }
        self.headers.lay(&scenario.headers);
        self.inputs = scenario.inputs.or(self.inputs);
        self.documents = scenario.documents.or(self.documents);
        self.query_tokens = scenario.query_tokens.or(self.query_tokens);
    }

    /// Those that are not as they are by default, and temperature, by name, sorted: what a run is.
    pub fn entries(&self) -> Vec<(Cow<'static, str>, FieldValue)> {
        let RequestFields { sampling, stop, length_field, model, headers, inputs, documents, query_tokens } = self;
        let mut entries: Vec<(Cow<'static, str>, FieldValue)> =
            sampling.sent().map(|(name, value)| (name.into(), FieldValue::Decimal(value))).collect();
        if !stop.is_empty() {
            entries.push(("stop".into(), FieldValue::Json(serde_json::to_string(stop).unwrap_or_default())));
        }
        if *length_field != LengthField::default() {
            entries.push(("length_field".into(), FieldValue::Text(length_field.name().to_owned())));
        }
        if let Some(model) = model {
            entries.push(("model".into(), FieldValue::Text(model.clone())));
        }
        let numbers = [("inputs", inputs), ("documents", documents), ("query_tokens", query_tokens)];
        let said = numbers.into_iter().filter_map(|(name, number)| Some((name, (*number)?)));
        entries.extend(said.map(|(name, number)| (name.into(), FieldValue::Decimal(number.into()))));
        entries.extend(headers.iter().map(|(name, value)| {
            let value = match value {
                TextOrSecret::Text(text) => FieldValue::Text(text.clone()),
                // By its reference: the secret itself is nobody's identity.
                TextOrSecret::Secret(_) => FieldValue::Json(serde_json::to_string(value).unwrap_or_default()),
            };
            (format!("headers.{name}").into(), value)
        }));
        entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        entries
    }

    /// The one of this name, where it is not as by default.
    pub fn get(&self, name: &str) -> Option<FieldValue> {
        self.entries().into_iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// The names of those in which two differ.
    pub fn differences(&self, other: &RequestFields) -> Vec<String> {
        let (mine, theirs) = (self.entries(), other.entries());
        let mut names: Vec<String> = mine.iter().chain(&theirs).map(|(name, _)| name.to_string()).collect();
        names.sort_unstable();
        names.dedup();
        names.retain(|name| self.get(name) != other.get(name));
        names
    }
}
