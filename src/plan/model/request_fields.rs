//! Request fields, other than the text, that do not depend on the engine: sampling parameters, stop
//! texts, the field name for the length, and a different model id.
//!
//! All such fields are defined here: scenarios are merged here (`apply`), and a run's identity,
//! provenance, the lint's comparison of scenarios and the body of a request read them from here. To add
//! a field, add its entry in `scenario.rs` and here.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::plan::model::headers::Headers;
use crate::plan::model::length_field::LengthField;
use crate::plan::model::sampling::Sampling;
use crate::plan::model::scenario::Scenario;
use crate::plan::model::text_or_secret::TextOrSecret;
use crate::units::Decimal;

/// The request fields of a run, with every default explicit.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RequestFields {
    /// Sampling parameters, by name.
    #[serde(flatten)]
    pub sampling: Sampling,
    /// Texts at which a response ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// The field name in which the length is specified.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub length_field: LengthField,
    /// The model id to send instead of the model's own.
    pub model: Option<String>,
    /// Headers, including those of the endpoint.
    #[serde(default, skip_serializing_if = "Headers::is_empty")]
    pub headers: Headers,
    /// Number of texts per embeddings request; `None` for other requests.
    pub inputs: Option<u32>,
    /// Number of documents per rerank request; `None` for other requests.
    pub documents: Option<u32>,
    /// Number of tokens in the query against which documents are scored; `None` for requests other than
    /// rerank.
    pub query_tokens: Option<u32>,
}

/// The value of a field in a run's identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldValue {
    /// A number.
    Decimal(Decimal),
    /// A text.
    Text(String),
    /// Any other value, as JSON.
    Json(String),
}

impl RequestFields {
    /// Applies the fields that a scenario sets; other fields keep their values.
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

    /// The fields that identify a run: fields that differ from their defaults, and temperature, sorted
    /// by name.
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
                // A secret is represented by its reference, because the secret itself is never part of
                // an identity.
                TextOrSecret::Secret(reference) => FieldValue::Json(reference.identity()),
            };
            (format!("headers.{name}").into(), value)
        }));
        entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        entries
    }

    /// The value of a field in a run's identity; `None` if the identity does not contain the field.
    pub fn get(&self, name: &str) -> Option<FieldValue> {
        self.entries().into_iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// The names of the fields in which two sets of fields differ.
    pub fn differences(&self, other: &RequestFields) -> Vec<String> {
        let (mine, theirs) = (self.entries(), other.entries());
        let mut names: Vec<String> = mine.iter().chain(&theirs).map(|(name, _)| name.to_string()).collect();
        names.sort_unstable();
        names.dedup();
        names.retain(|name| self.get(name) != other.get(name));
        names
    }
}
