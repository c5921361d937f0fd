//! The nonce: the few tokens that open a prompt, so that no run meets a cache that another one warmed.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use crate::units::{Forms, Misfit};

/// How far a nonce reaches: `on`, `run` or `off` (also true and false).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
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

impl<'de> Deserialize<'de> for NonceMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Forms::expecting("`on`, `run` or `off`")
            .truth(|value| if value { NonceMode::On } else { NonceMode::Off })
            .text(|text| {
                let found = NonceMode::ALL.iter().find(|mode| mode.name() == text);
                found.copied().ok_or(Misfit::Unexpected)
            })
            .read(deserializer)
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
