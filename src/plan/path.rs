//! Places in a plan, as paths from its root: what errors, `why` and `diff` point at.

use std::fmt;

/// One step of a path into a plan file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Into a table, by key.
    Key(String),
    /// Into a list, by position from 0.
    Index(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Step::Key(key.to_owned())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Step::Index(index)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Key(key) => f.pad(key),
            Step::Index(index) => write!(f, "{index}"),
        }
    }
}
