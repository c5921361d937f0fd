//! Assigns meanings to the columns of a file.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{EnumMessage, IntoStaticStr, VariantArray};

use super::value::{Fields, get};
use crate::units::UnitError;

/// A possible meaning of a column.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    EnumMessage,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Field {
    /// The column with the user's message.
    Prompt,
    /// The column with the model's response.
    Output,
    /// The column with the system message.
    System,
    /// The column with the whole conversation: a list of {role, content} or {from, value}.
    Messages,
    /// The column with the number of prompt tokens.
    InputTokens,
    /// The column with the number of response tokens.
    OutputTokens,
    /// The column with the arrival time of the request: a date, or a number.
    Time,
    /// The column with the names of the prompt's blocks of 512 tokens.
    HashIds,
    /// The column that links requests of one conversation.
    Conversation,
    /// The column with a unique name for each record.
    Id,
    /// The column with the language.
    Language,
}

impl Field {
    /// All meanings.
    pub const ALL: &'static [Field] = Field::VARIANTS;

    /// Returns the name of the meaning in a mapping.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns a description of the column, for users.
    pub fn meaning(self) -> &'static str {
        self.get_documentation().unwrap_or_default()
    }

    /// Returns the name of the column in sweepline's own format.
    fn own(self) -> &'static str {
        if self == Field::Time { "offset_ns" } else { self.name() }
    }
}

impl FromStr for Field {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Field, UnitError> {
        let known = || Field::ALL.iter().map(|field| field.name()).collect::<Vec<_>>().join(", ");
        let found = Field::ALL.iter().copied().find(|field| field.name() == text);
        found.ok_or_else(|| UnitError(format!("`{text}` is not a known column meaning: write one of {}", known())))
    }
}

/// The unit of numbers in a time column.
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
    /// Returns the length of one unit, in nanoseconds.
    fn nanos(self) -> u64 {
        match self {
            TimeUnit::S => 1_000_000_000,
            TimeUnit::Ms => 1_000_000,
            TimeUnit::Us => 1_000,
            TimeUnit::Ns => 1,
        }
    }
}

/// Assigns columns to meanings. In JSON and Parquet files, a dot in a column's name accesses a field of an
/// object (`request.body.prompt`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// The column of each mapped field. Other fields are looked up by their names in sweepline's own
    /// format.
    pub columns: BTreeMap<Field, String>,
    /// The unit of numbers in a mapped time column; dates need no unit.
    pub time_unit: TimeUnit,
}

impl Mapping {
    /// Returns the column of a field: the mapped column, or else the column with the name that the field
    /// has in sweepline's own format. `None` if that column is mapped to another field.
    pub(super) fn column(&self, field: Field) -> Option<&str> {
        let taken = |name: &str| self.columns.values().any(|column| column == name);
        let own = || Some(field.own()).filter(|name| !taken(name));
        self.columns.get(&field).map(String::as_str).or_else(own)
    }

    /// Returns the columns of all fields that have one.
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        Field::ALL.iter().copied().filter_map(|field| self.column(field))
    }

    /// Returns the column and the value of a field; `None` if the entry does not have the field.
    pub(super) fn get<'a>(&'a self, fields: &'a Fields, field: Field) -> Option<(&'a str, &'a Value)> {
        let name = self.column(field)?;
        Some((name, get(fields, name)?))
    }

    /// Returns the length of one unit of the numbers in the time column, in nanoseconds.
    pub(super) fn unit(&self) -> u64 {
        if self.columns.contains_key(&Field::Time) { self.time_unit.nanos() } else { TimeUnit::Ns.nanos() }
    }
}

impl fmt::Display for Mapping {
    /// Formats the mapping like `prompt=question,output=answer`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> =
            self.columns.iter().map(|(field, column)| format!("{}={column}", field.name())).collect();
        f.pad(&parts.join(","))
    }
}
