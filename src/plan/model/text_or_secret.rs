//! A value of a header or an environment variable that is written literally, or stored elsewhere
//! because it is secret.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::plan::text::secret::SecretRef;
use crate::units::Forms;

/// A text, or the reference to a secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum TextOrSecret {
    /// The literal value.
    Text(String),
    /// A secret value, as a reference.
    Secret(SecretRef),
}

impl TextOrSecret {
    /// The text; `None` for a secret.
    pub fn text(&self) -> Option<&str> {
        match self {
            TextOrSecret::Text(text) => Some(text),
            TextOrSecret::Secret(_) => None,
        }
    }

    /// The reference; `None` for a text.
    pub fn secret(&self) -> Option<&SecretRef> {
        match self {
            TextOrSecret::Text(_) => None,
            TextOrSecret::Secret(reference) => Some(reference),
        }
    }
}

impl<'de> Deserialize<'de> for TextOrSecret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Forms::expecting("a string, or a reference like { secret: env:NAME }")
            .text(|text| Ok(TextOrSecret::Text(text.to_owned())))
            .table(|reference| Ok(TextOrSecret::Secret(reference)))
            .read(deserializer)
    }
}
