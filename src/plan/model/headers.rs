//! HTTP headers that requests carry besides those that sweepline sends itself.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::plan::model::table::Table;
use crate::plan::text::secret::SecretRef;
use crate::units::Forms;

/// Headers that sweepline sends itself, or that say how a message is cut; in lower case.
const SENT_BY_ITSELF: [&str; 10] = [
    "host",
    "content-type",
    "content-length",
    "transfer-encoding",
    "connection",
    "accept",
    "accept-encoding",
    "expect",
    "user-agent",
    "x-request-id",
];

/// Whether sweepline sends a header of this name itself, so that a plan cannot.
pub fn is_sent_by_itself(name: &str) -> bool {
    SENT_BY_ITSELF.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// The value of a header.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum HeaderValue {
    /// As it is sent.
    Text(String),
    /// Found where it is said when it is sent: { secret: env:NAME }.
    Secret(SecretRef),
}

impl HeaderValue {
    /// The text; none of a secret.
    pub fn text(&self) -> Option<&str> {
        match self {
            HeaderValue::Text(text) => Some(text),
            HeaderValue::Secret(_) => None,
        }
    }

    /// The reference, where it is secret.
    pub fn secret(&self) -> Option<&SecretRef> {
        match self {
            HeaderValue::Text(_) => None,
            HeaderValue::Secret(reference) => Some(reference),
        }
    }
}

impl<'de> Deserialize<'de> for HeaderValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Forms::expecting("a text, or a reference like { secret: env:NAME }")
            .text(|text| Ok(HeaderValue::Text(text.to_owned())))
            .table(|reference| Ok(HeaderValue::Secret(reference)))
            .read(deserializer)
    }
}

/// Headers of a request by their names in lower case, as HTTP compares them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Headers(BTreeMap<String, HeaderValue>);

impl Headers {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Name and value of each, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &HeaderValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The references of those that are secret.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretRef> {
        self.0.values().filter_map(HeaderValue::secret)
    }

    /// Lays what a plan says over them, by name.
    pub fn lay(&mut self, said: &Table<HeaderValue>) {
        self.0.extend(said.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())));
    }

    /// The same below what is said already.
    pub(crate) fn lay_below(&mut self, said: &Table<HeaderValue>) {
        for (name, value) in said {
            self.0.entry(name.to_ascii_lowercase()).or_insert_with(|| value.clone());
        }
    }
}
