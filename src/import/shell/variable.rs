//! The variables of a script.

use std::collections::HashMap;

use crate::units::text::is_variable;

/// What a variable holds.
#[derive(Debug, Clone)]
pub(super) enum Variable {
    /// One text.
    Text(String),
    /// An array.
    List(Vec<String>),
    /// A value that a branch gave it of which only running the script would tell whether it is taken.
    Branched,
}

/// The variables of a script so far.
pub(super) type Variables = HashMap<String, Variable>;

/// `NAME=value`.
pub(super) fn assignment(word: &str) -> Option<(&str, &str)> {
    word.split_once('=').filter(|(name, _)| is_variable(name))
}
