//! One message of a chat.

/// One message of a chat: its role and its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// `system`, `user` or `assistant`.
    pub role: &'static str,
    /// The text of the message.
    pub content: &'a str,
}
