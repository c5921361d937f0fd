//! What a type wants to be given: serde says it in words, here they become a choice that remedies decide by.

use std::fmt;

use crate::plan::model::shorthand;
use crate::units::Share;

/// What a value must be.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wanted {
    /// A whole number from 0 to this.
    Whole(u64),
    /// Any number.
    Number,
    /// A text.
    Text,
    /// True or false.
    Bool,
    /// A list.
    List,
    /// A table whose names the user chooses.
    Names,
    /// A table of fields of its own.
    Fields,
    /// A value or several, as on an axis.
    ValueOrValues,
    /// A share in percent.
    Share,
    /// What only the type has words for.
    Other(String),
}

impl Wanted {
    /// From the words of serde's derives and of the types' visitors.
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
            // A derive says which struct of the program it is.
            name if name.starts_with("struct ") => Wanted::Fields,
            other => Wanted::Other(other.to_owned()),
        }
    }
}

/// In a user's words.
impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Wanted::Whole(_) => "a whole number",
            Wanted::Number => "a number",
            Wanted::Text => "a text",
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
