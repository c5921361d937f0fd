//! The nonce: the few tokens that open a prompt, so that no run meets a cache that another one warmed.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// How far a nonce reaches: `on`, `run` or `off` (also true and false).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum NonceMode {
    /// Prompts share what the scenario declares, and nothing else: those that share nothing open with a nonce of their own.
    #[default]
    On,
    /// All prompts of an attempt open with the same nonce: they share what their texts share, with no other run.
    Run,
    /// Prompts are sent as they are.
    Off,
}

impl NonceMode {
    /// All of them, as they are documented.
    pub const ALL: &'static [NonceMode] = &[NonceMode::On, NonceMode::Run, NonceMode::Off];
    /// Their names in plans.
    pub const NAMES: &'static [&'static str] = &["on", "run", "off"];

    /// The name in plans.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Serialize for NonceMode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for NonceMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl Visitor<'_> for V {
            type Value = NonceMode;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`on`, `run` or `off`")
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<NonceMode, E> {
                Ok(if value { NonceMode::On } else { NonceMode::Off })
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<NonceMode, E> {
                let found = NonceMode::ALL.iter().find(|mode| mode.name() == text);
                found.copied().ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(V)
    }
}

impl JsonSchema for NonceMode {
    fn schema_name() -> Cow<'static, str> {
        "NonceMode".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let meaning = "on: prompts share what the scenario declares, and nothing else. run: one nonce for all prompts of an \
                       attempt, so that they share what their texts share, with no other run. off: none. true and false say \
                       on and off.";
        json_schema!({ "description": meaning, "enum": ["on", "run", "off", true, false] })
    }
}
