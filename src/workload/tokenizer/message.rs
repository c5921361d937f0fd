//! One message of a chat.

/// The role of a message, and its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// `system`, `user` or `assistant`.
    pub role: &'static str,
    /// The text.
    pub content: &'a str,
}
