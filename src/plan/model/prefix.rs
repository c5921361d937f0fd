//! The text that prompts are declared to share, and whether a prefix cache can benefit from it.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use crate::units::{Decimal, Share};

/// Texts at the start of prompts, each shared by a group of prompts: documents, few-shot examples,
/// system prompts. Their tokens come on top of `prompt_tokens`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prefix {
    /// Share of the requests (of the conversations, if there are turns) that open with one of the shared
    /// texts, written like 0.6 or 60%. The others open with the same number of unique tokens, so that lengths
    /// stay the same. Default 1.
    #[serde(default = "all", deserialize_with = "share")]
    #[schemars(schema_with = "share_schema", extend("default" = 1))]
    pub share: Share,
    /// Number of tokens in each shared text.
    #[schemars(range(min = 16, max = 4_000_000), example = 2048)]
    pub tokens: u32,
    /// Number of different shared texts. Default 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000_000), extend("default" = 1), example = 8)]
    pub groups: u32,
    /// How requests are distributed over the groups. Default uniform.
    #[serde(default)]
    pub order: PrefixOrder,
}

impl Prefix {
    /// Range of the number of tokens in a shared text.
    pub const TOKENS: (u32, u32) = (16, 4_000_000);
    /// Range of the number of groups. It is limited because the state of each group stays in memory.
    pub(crate) const GROUPS: (u32, u32) = (1, 1_000_000);
}

/// How requests are distributed over groups of prompts that share a text.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum PrefixOrder {
    /// Each request draws its group at random; all groups are equally likely.
    #[default]
    Uniform,
    /// Each request draws its group at random; group k is 1/k as likely as the first (Zipf's law with
    /// exponent 1).
    Zipf,
    /// Requests use the groups in order, one after another, and start again with the first group after the
    /// last one.
    Cycle,
    /// Like `cycle`, over more text than the server's cache holds: each text has been evicted when its
    /// turn comes. No reuse is declared, and the verdict reports any reuse that the cache provides
    /// nevertheless.
    Tile,
}

impl PrefixOrder {
    /// The name in plans.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Whether a prefix cache can benefit from the text that prompts share.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "snake_case")]
pub enum Cache {
    /// Prompts share the text that the scenario declares.
    #[default]
    Warm,
    /// The prompts are those of `warm`, but each opens with its own nonce, so that none of them can be
    /// reused. The lengths are the same as with `warm`.
    Cold,
}

impl Cache {
    /// The name in plans.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether this is the default, which plans may omit.
    pub(crate) fn is_warm(&self) -> bool {
        *self == Cache::Warm
    }
}

fn all() -> Share {
    Share::percent(100)
}

fn one() -> u32 {
    1
}

/// Reads a share that is written as a number from 0 to 1 or in percent.
pub(crate) fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Share, D::Error> {
    struct Reader;
    impl Visitor<'_> for Reader {
        type Value = Share;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a share, like 0.6 or 60%")
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<Share, E> {
            text.parse().map_err(E::custom)
        }
        fn visit_u64<E: de::Error>(self, value: u64) -> Result<Share, E> {
            number(&value.to_string())
        }
        fn visit_i64<E: de::Error>(self, value: i64) -> Result<Share, E> {
            number(&value.to_string())
        }
        fn visit_f64<E: de::Error>(self, value: f64) -> Result<Share, E> {
            number(&value.to_string())
        }
    }
    deserializer.deserialize_any(Reader)
}

fn number<E: de::Error>(text: &str) -> Result<Share, E> {
    let outside = || E::custom(format!("`{text}` is outside 0 to 1: write a share in this range, like 0.6 or 60%"));
    let share: Decimal = text.parse().map_err(|_| outside())?;
    let inside = (Decimal::default()..=Decimal::new(1, 0)).contains(&share);
    if inside { Ok(Share(share)) } else { Err(outside()) }
}

/// The schema of a share that is written as a number from 0 to 1 or in percent.
pub(crate) fn share_schema(generator: &mut SchemaGenerator) -> Schema {
    let percent = generator.subschema_for::<Share>();
    json_schema!({ "anyOf": [{ "type": "number", "minimum": 0, "maximum": 1 }, percent], "examples": [0.6, "60%"] })
}
