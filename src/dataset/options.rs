//! How a file is to be read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr, VariantArray};

use super::filter::Filter;
use super::mapping::Mapping;

/// Bytes of the longest entry that is read, unless told otherwise: a line, an element of an array, or a row.
pub(crate) const MOST_ENTRY_BYTES: usize = 10_000_000;

/// The shape of entries.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Display, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "DataFormat")]
#[strum(serialize_all = "lowercase")]
pub enum Format {
    /// Conversations: `{id, conversations: [{from, value}]}`.
    ShareGpt,
    /// LongBench-v2: `{_id, question, choice_A … choice_D, context}`.
    LongBench,
    /// Message trees of OpenAssistant: `{message_tree_id, prompt: {text, role, lang, replies: […]}}`.
    Oasst,
    /// Mooncake trace: `{timestamp, input_length, output_length, hash_ids}`.
    Mooncake,
    /// BurstGPT trace: `Timestamp, Model, Request tokens, Response tokens, Total tokens, Log Type`.
    BurstGpt,
    /// Azure LLM inference trace 2023 and 2024: `TIMESTAMP, ContextTokens, GeneratedTokens`.
    Azure,
    /// Columns by name, and sweepline's own form, whose names need no mapping.
    Columns,
}

impl Format {
    /// All of them.
    pub const ALL: &'static [Format] = Format::VARIANTS;

    /// Its name, as it is written after `--as`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What happens when an entry breaks its format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnBad {
    /// Reading ends with an error that names the line.
    #[default]
    Fail,
    /// The entry is counted and left out.
    Skip,
}

/// How a file is to be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The shape of its entries; `None`: found by the first one.
    pub format: Option<Format>,
    /// Which columns mean what, in a file of the form `columns`.
    pub mapping: Mapping,
    /// What happens when an entry breaks its format.
    pub on_bad: OnBad,
    /// Bytes of the longest entry that is read.
    pub most_bytes: usize,
    /// What is kept.
    pub filter: Filter,
}

impl Default for Options {
    fn default() -> Options {
        let (format, mapping, on_bad, filter) = Default::default();
        Options { format, mapping, on_bad, most_bytes: MOST_ENTRY_BYTES, filter }
    }
}
