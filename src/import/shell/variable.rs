//! The variables of a script.

use std::collections::HashMap;

use crate::units::text::is_variable;

/// The value of a variable.
#[derive(Debug, Clone)]
pub(super) enum Variable {
    /// One text.
    Text(String),
    /// An array.
    List(Vec<String>),
    /// A value that is set in a branch that may or may not run.
    Branched,
}

/// The variables of a script so far.
pub(super) type Variables = HashMap<String, Variable>;

/// Returns the name and the value of an assignment `NAME=value`; `None` for other words.
pub(super) fn assignment(word: &str) -> Option<(&str, &str)> {
    word.split_once('=').filter(|(name, _)| is_variable(name))
}
