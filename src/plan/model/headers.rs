//! HTTP headers that requests carry besides those that sweepline sends itself.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Serialize, Serializer};

use crate::plan::model::table::Table;
use crate::plan::text::secret::SecretRef;

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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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

/// As a schema has it.
#[derive(JsonSchema)]
#[schemars(rename = "HeaderValue", untagged)]
#[expect(dead_code, reason = "the schema alone is made of it")]
enum Either {
    /// The value as it is sent.
    Text(String),
    /// A secret value, as a reference.
    Secret(SecretRef),
}

impl JsonSchema for HeaderValue {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Either::schema_name()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Either::json_schema(generator)
    }
}

impl Serialize for HeaderValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            HeaderValue::Text(text) => serializer.serialize_str(text),
            HeaderValue::Secret(reference) => reference.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for HeaderValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = HeaderValue;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or a reference like { secret: env:NAME }")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<HeaderValue, E> {
                Ok(HeaderValue::Text(text.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<HeaderValue, A::Error> {
                SecretRef::deserialize(MapAccessDeserializer::new(map)).map(HeaderValue::Secret)
            }
        }
        deserializer.deserialize_any(V)
    }
}

/// Headers of a request by their names in lower case, as HTTP compares them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, serde::Deserialize)]
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
