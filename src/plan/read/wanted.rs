//! The value that a type expects. serde describes it in words; this module converts the words to an
//! enum, on which remedies depend.

use std::fmt;

use crate::plan::model::shorthand;
use crate::units::Share;

/// The expected value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wanted {
    /// A whole number from 0 to this maximum.
    Whole(u64),
    /// Any number.
    Number,
    /// A text.
    Text,
    /// True or false.
    Bool,
    /// A list.
    List,
    /// A table with user-defined names.
    Names,
    /// A table with its own fields.
    Fields,
    /// One value or several, as on an axis.
    ValueOrValues,
    /// A share in percent.
    Share,
    /// An expected value that only the type can describe.
    Other(String),
}

impl Wanted {
    /// Parses the wording of serde's derives and of the types' visitors.
    pub(crate) fn from_words(words: &str) -> Wanted {
        match words {
            "u32" => Wanted::Whole(u32::MAX.into()),
            "u64" => Wanted::Whole(u64::MAX),
            "a number" => Wanted::Number,
            "a string" => Wanted::Text,
            "a boolean" => Wanted::Bool,
            "a sequence" => Wanted::List,
            "a map" => Wanted::Names,
            Share::EXPECTED => Wanted::Share,
            shorthand::VALUE_OR_VALUES => Wanted::ValueOrValues,
            // A derive names the Rust struct.
            name if name.starts_with("struct ") => Wanted::Fields,
            other => Wanted::Other(other.to_owned()),
        }
    }
}

/// Describes the expected value in words for users.
impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Wanted::Whole(_) => "a whole number",
            Wanted::Number => "a number",
            Wanted::Text => "a string",
            Wanted::Bool => "true or false",
            Wanted::List => "a list",
            Wanted::Names => "a table of names and values",
            Wanted::Fields => "a table of fields",
            Wanted::ValueOrValues => shorthand::VALUE_OR_VALUES,
            Wanted::Share => Share::EXPECTED,
            Wanted::Other(words) => words,
        })
    }
}
