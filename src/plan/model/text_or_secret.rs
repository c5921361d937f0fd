//! A value that is written as it is used, or found elsewhere because it is secret: of a header, of a variable.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};

use crate::plan::text::secret::SecretRef;

/// A text, or the reference to a secret one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum TextOrSecret {
    /// The value as it is sent.
    Text(String),
    /// A secret value, as a reference.
    Secret(SecretRef),
}

impl TextOrSecret {
    /// The text; none of a secret.
    pub fn text(&self) -> Option<&str> {
        match self {
            TextOrSecret::Text(text) => Some(text),
            TextOrSecret::Secret(_) => None,
        }
    }

    /// The reference, where it is secret.
    pub fn secret(&self) -> Option<&SecretRef> {
        match self {
            TextOrSecret::Text(_) => None,
            TextOrSecret::Secret(reference) => Some(reference),
        }
    }
}

impl<'de> Deserialize<'de> for TextOrSecret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = TextOrSecret;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or a reference like { secret: env:NAME }")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<TextOrSecret, E> {
                Ok(TextOrSecret::Text(text.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TextOrSecret, A::Error> {
                SecretRef::deserialize(MapAccessDeserializer::new(map)).map(TextOrSecret::Secret)
            }
        }
        deserializer.deserialize_any(V)
    }
}
