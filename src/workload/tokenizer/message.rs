//! One message of a chat.

/// Who says a message, and what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// `system`, `user` or `assistant`.
    pub role: &'static str,
    /// The text.
    pub content: &'a str,
}
