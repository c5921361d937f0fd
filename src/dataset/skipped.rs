//! What was left out of a data set, and why.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::record::Place;

/// Why an entry is no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Longer than what is read at once.
    TooLong,
    /// No UTF-8.
    NotUtf8,
    /// No JSON, or a CSV line with too few or too many fields.
    Syntax,
    /// A value of another type than the format has, or one that cannot be.
    WrongValue,
    /// A field that the format needs is not there.
    Missing,
    /// A time, length or count below zero.
    Negative,
    /// A time before that of an earlier entry.
    Unsorted,
    /// An id that an earlier entry has.
    Duplicate,
    /// Nothing to send: no user message and no prompt tokens.
    NoPrompt,
    /// Declared output tokens of 0: a request that failed, or that was never answered.
    NoAnswer,
    /// Left out by a filter on lengths.
    Length,
    /// Left out by the filter on languages.
    Language,
    /// Left out by the filter on turns.
    Turns,
}

impl Reason {
    /// What it says, for people.
    pub fn words(self) -> &'static str {
        match self {
            Reason::TooLong => "longer than --max-entry",
            Reason::NotUtf8 => "no UTF-8",
            Reason::Syntax => "not well-formed",
            Reason::WrongValue => "a wrong value",
            Reason::Missing => "a missing field",
            Reason::Negative => "a number below zero",
            Reason::Unsorted => "earlier than the entry before",
            Reason::Duplicate => "an id that came before",
            Reason::NoPrompt => "nothing to send",
            Reason::NoAnswer => "0 output tokens",
            Reason::Length => "filtered by length",
            Reason::Language => "filtered by language",
            Reason::Turns => "filtered by turns",
        }
    }

    /// Whether an entry with it breaks the format, and so ends the reading unless bad entries are to be skipped. The
    /// others are what public files have in plenty, or what a filter asks for: they are always counted and left out.
    pub(crate) fn is_bad(self) -> bool {
        !matches!(self, Reason::NoPrompt | Reason::NoAnswer | Reason::Length | Reason::Language | Reason::Turns)
    }
}

/// How many entries were left out for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Skips {
    /// How many.
    pub count: u64,
    /// Where the first one stands: its line, or its row in a Parquet file.
    pub first: u64,
    /// Which entry of a JSON array the first one is, from 1; absent where every entry has its own line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<u64>,
    /// What is wrong with the first one.
    pub example: String,
}

impl Skips {
    /// Where the first one stands.
    pub fn place(&self) -> Place {
        Place { line: self.first, entry: self.entry }
    }
}

/// What was left out, by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Skipped(pub BTreeMap<Reason, Skips>);

impl Skipped {
    /// How many entries were left out.
    pub fn total(&self) -> u64 {
        self.0.values().map(|skips| skips.count).sum()
    }

    pub(super) fn add(&mut self, reason: Reason, place: Place, text: &str) {
        let Place { line, entry } = place;
        let fresh = || Skips { count: 0, first: line, entry, example: text.to_owned() };
        self.0.entry(reason).or_insert_with(fresh).count += 1;
    }
}
