//! Options for reading a file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr, VariantArray};

use super::filter::Filter;
use super::mapping::Mapping;

/// Default limit on the size of an entry, in bytes. An entry is a line, an element of an array, or a row.
pub(crate) const MOST_ENTRY_BYTES: usize = 10_000_000;

/// The format of the entries in a file.
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
    /// Columns by name. This includes sweepline's own format, whose names need no mapping.
    Columns,
}

impl Format {
    /// All formats.
    pub const ALL: &'static [Format] = Format::VARIANTS;

    /// Returns the name of the format for `--as`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// How an entry that violates its format is handled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnBad {
    /// Reading ends with an error that names the line.
    #[default]
    Fail,
    /// The entry is counted and skipped.
    Skip,
}

/// Options for reading a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The format of the entries; `None` detects it from the first entry.
    pub format: Option<Format>,
    /// The meaning of columns, in a file of the format `columns`.
    pub mapping: Mapping,
    /// How an entry that violates its format is handled.
    pub on_bad: OnBad,
    /// Maximum size of an entry, in bytes.
    pub most_bytes: usize,
    /// The conditions that records must satisfy to be kept.
    pub filter: Filter,
}

impl Default for Options {
    fn default() -> Options {
        let (format, mapping, on_bad, filter) = Default::default();
        Options { format, mapping, on_bad, most_bytes: MOST_ENTRY_BYTES, filter }
    }
}
