//! A value and the words that specify it.

/// A value and the words that specify it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Said<T> {
    /// The value.
    pub value: T,
    /// The words: an option with its value, or a field with its line.
    pub origin: String,
}

impl<T> Said<T> {
    /// Creates a value that the source does not specify, with words that explain it.
    pub(crate) fn default(value: T, origin: impl Into<String>) -> Said<T> {
        Said { value, origin: origin.into() }
    }

    /// Returns another value with the same words.
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Said<U> {
        Said { value: change(self.value), origin: self.origin }
    }
}
