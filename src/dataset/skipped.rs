//! The skipped entries of a data set, with the reasons.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::record::Place;

/// Why an entry is not a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The entry exceeds the size limit.
    TooLong,
    /// The entry is not UTF-8.
    NotUtf8,
    /// The entry is not JSON, or it is a CSV line with too few or too many fields.
    Syntax,
    /// A value is impossible, or has a type that the format does not allow.
    WrongValue,
    /// A field that the format requires is missing.
    Missing,
    /// A time, length or count is below zero.
    Negative,
    /// The time of the entry is before that of an earlier entry.
    Unsorted,
    /// The entry has the same id as an earlier one.
    Duplicate,
    /// There is nothing to send: no user message and no prompt tokens.
    NoPrompt,
    /// The file declares 0 output tokens, so the request failed or had no response.
    NoAnswer,
    /// The entry was removed by a filter on lengths.
    Length,
    /// The entry was removed by the filter on languages.
    Language,
    /// The entry was removed by the filter on turns.
    Turns,
}

impl Reason {
    /// Returns the description of the reason for users.
    pub fn words(self) -> &'static str {
        match self {
            Reason::TooLong => "longer than --max-entry",
            Reason::NotUtf8 => "not UTF-8",
            Reason::Syntax => "not well-formed",
            Reason::WrongValue => "a wrong value",
            Reason::Missing => "a missing field",
            Reason::Negative => "a number below zero",
            Reason::Unsorted => "earlier than the previous entry",
            Reason::Duplicate => "a duplicate id",
            Reason::NoPrompt => "nothing to send",
            Reason::NoAnswer => "0 output tokens",
            Reason::Length => "filtered by length",
            Reason::Language => "filtered by language",
            Reason::Turns => "filtered by turns",
        }
    }

    /// Whether an entry with this reason violates the format, so that it ends the reading unless bad
    /// entries are skipped. Entries with the other reasons are common in public files or excluded by a
    /// filter; they are always counted and skipped.
    pub(crate) fn is_bad(self) -> bool {
        !matches!(self, Reason::NoPrompt | Reason::NoAnswer | Reason::Length | Reason::Language | Reason::Turns)
    }
}

/// The entries skipped for one reason: their number, and the first of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Skips {
    /// The number of entries.
    pub count: u64,
    /// The place of the first entry skipped for this reason: its line, or its row in a Parquet
    /// file.
    pub first: u64,
    /// The position in a JSON array of the first entry skipped for this reason, from 1; absent if
    /// every entry has its own line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<u64>,
    /// The problem of the first entry skipped for this reason.
    pub example: String,
}

impl Skips {
    /// Returns the place of the first entry skipped for this reason.
    pub fn place(&self) -> Place {
        Place { line: self.first, entry: self.entry }
    }
}

/// Skipped entries, by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Skipped(pub BTreeMap<Reason, Skips>);

impl Skipped {
    /// Returns the number of skipped entries.
    pub fn total(&self) -> u64 {
        self.0.values().map(|skips| skips.count).sum()
    }

    pub(super) fn add(&mut self, reason: Reason, place: Place, text: &str) {
        let Place { line, entry } = place;
        let fresh = || Skips { count: 0, first: line, entry, example: text.to_owned() };
        self.0.entry(reason).or_insert_with(fresh).count += 1;
    }
}
