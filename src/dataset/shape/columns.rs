//! Fields by name: any file of one object or row per request, and sweepline's own form.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::dataset::error::Bad;
use crate::dataset::record::{BLOCK_TOKENS, Record, Role, Turn};
use crate::dataset::skipped::Reason;
use crate::dataset::value::{Fields, count, get, instant, label, text};
use crate::units::UnitError;

use super::{Draft, messages, trace};

/// What a column can mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    /// The user's message.
    Prompt,
    /// The model's answer.
    Output,
    /// The system message.
    System,
    /// The whole conversation: a list of `{role, content}` or `{from, value}`.
    Messages,
    /// Prompt tokens.
    InputTokens,
    /// Output tokens.
    OutputTokens,
    /// When the request came.
    Time,
    /// Names of the prompt's blocks of 512 tokens.
    HashIds,
    /// What ties requests together as one conversation.
    Conversation,
    /// A name that must not come twice.
    Id,
    /// The language.
    Language,
}

impl Field {
    /// All of them.
    pub const ALL: [Field; 11] = [
        Field::Prompt,
        Field::Output,
        Field::System,
        Field::Messages,
        Field::InputTokens,
        Field::OutputTokens,
        Field::Time,
        Field::HashIds,
        Field::Conversation,
        Field::Id,
        Field::Language,
    ];

    /// Its name, as it is written in a mapping.
    pub fn name(self) -> &'static str {
        match self {
            Field::Prompt => "prompt",
            Field::Output => "output",
            Field::System => "system",
            Field::Messages => "messages",
            Field::InputTokens => "input_tokens",
            Field::OutputTokens => "output_tokens",
            Field::Time => "time",
            Field::HashIds => "hash_ids",
            Field::Conversation => "conversation",
            Field::Id => "id",
            Field::Language => "language",
        }
    }

    /// The column of sweepline's own form.
    fn own(self) -> &'static str {
        if self == Field::Time { "offset_ns" } else { self.name() }
    }
}

impl FromStr for Field {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Field, UnitError> {
        let known = || Field::ALL.map(Field::name).join(", ");
        let found = Field::ALL.into_iter().find(|field| field.name() == text);
        found.ok_or_else(|| UnitError(format!("`{text}` is nothing that a column can mean: write one of {}", known())))
    }
}

/// What the numbers of a time column count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeUnit {
    /// Seconds.
    #[default]
    S,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
}

impl TimeUnit {
    /// How many nanoseconds one is.
    fn nanos(self) -> u64 {
        match self {
            TimeUnit::S => 1_000_000_000,
            TimeUnit::Ms => 1_000_000,
            TimeUnit::Us => 1_000,
            TimeUnit::Ns => 1,
        }
    }
}

/// Which columns mean what. In JSON and Parquet a dot leads into an object (`request.body.prompt`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// The column of each field that is mapped; the others are looked for under the names of sweepline's own form.
    pub columns: BTreeMap<Field, String>,
    /// What the numbers of a mapped time column count; dates need no unit.
    pub time_unit: TimeUnit,
}

impl Mapping {
    /// The column of a field: the mapped one, else that of its own name where this is not mapped to another field.
    pub(in crate::dataset) fn column(&self, field: Field) -> Option<&str> {
        let taken = |name: &str| self.columns.values().any(|column| column == name);
        let own = || Some(field.own()).filter(|name| !taken(name));
        self.columns.get(&field).map(String::as_str).or_else(own)
    }

    /// The columns of all fields.
    pub(in crate::dataset) fn all(&self) -> impl Iterator<Item = &str> {
        Field::ALL.into_iter().filter_map(|field| self.column(field))
    }

    /// Column and value of a field, where an entry has it.
    fn get<'a>(&'a self, fields: &'a Fields, field: Field) -> Option<(&'a str, &'a Value)> {
        let name = self.column(field)?;
        Some((name, get(fields, name)?))
    }

    fn unit(&self) -> u64 {
        if self.columns.contains_key(&Field::Time) { self.time_unit.nanos() } else { TimeUnit::Ns.nanos() }
    }
}

impl fmt::Display for Mapping {
    /// `prompt=question,output=answer`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> =
            self.columns.iter().map(|(field, column)| format!("{}={column}", field.name())).collect();
        f.pad(&parts.join(","))
    }
}

pub(super) fn read(fields: &Fields, mapping: &Mapping) -> Result<Draft, Bad> {
    let named = |field: Field| mapping.get(fields, field).map(|(name, value)| label(name, value)).transpose();
    let tokens = |field: Field| mapping.get(fields, field).map(|(name, value)| count(name, value)).transpose();
    let time = mapping.get(fields, Field::Time).map(|(name, time)| instant(name, time, mapping.unit())).transpose()?;
    let hash_ids = mapping.get(fields, Field::HashIds).map(|(name, _)| trace::hash_ids(fields, name)).transpose()?;
    let record = Record {
        id: named(Field::Id)?,
        turns: turns(fields, mapping)?,
        input_tokens: tokens(Field::InputTokens)?,
        output_tokens: tokens(Field::OutputTokens)?,
        hash_ids: hash_ids.unwrap_or_default(),
        conversation: named(Field::Conversation)?,
        language: named(Field::Language)?,
        ..Record::default()
    };
    let room = record.input_tokens.unwrap_or(0).div_ceil(BLOCK_TOKENS) as usize;
    if record.hash_ids.len() > room {
        let text = format!("{} hash_ids name more blocks than the prompt's tokens fill", record.hash_ids.len());
        return Err(Bad::new(Reason::WrongValue, text));
    }
    Ok(Draft { record, time })
}

/// The turns: the list of messages where there is one, else system, prompt and output.
fn turns(fields: &Fields, mapping: &Mapping) -> Result<Vec<Turn>, Bad> {
    if let Some((name, _)) = mapping.get(fields, Field::Messages) {
        return messages::read(fields, name);
    }
    let parts = [(Field::System, Role::System), (Field::Prompt, Role::User), (Field::Output, Role::Assistant)];
    let mut turns = Vec::new();
    for (field, role) in parts {
        if let Some((name, value)) = mapping.get(fields, field) {
            turns.push(Turn { role, text: text(name, value)?.to_owned() });
        }
    }
    Ok(messages::regular(turns))
}
