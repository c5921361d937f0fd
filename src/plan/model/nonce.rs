//! The nonce: a few tokens at the start of a prompt, so that no run hits a cache that another one
//! warmed.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use crate::units::{Forms, Misfit};

/// Scope of a nonce: `on`, `run` or `off` (also true and false).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum NonceMode {
    /// Prompts share only the text that the scenario declares; prompts that share nothing each begin
    /// with their own nonce.
    #[default]
    On,
    /// All prompts of an attempt begin with the same nonce, so they may share text with each other, but
    /// not with other runs.
    Run,
    /// Prompts are sent without a nonce.
    Off,
}

impl NonceMode {
    /// All modes, in documentation order.
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
        let meaning = "on: prompts share only the text that the scenario declares. run: one nonce for all prompts of \
                       an attempt, which may share text with each other, but not with other runs. off: no nonce. true \
                       and false mean on and off.";
        json_schema!({ "description": meaning, "enum": ["on", "run", "off", true, false] })
    }
}
