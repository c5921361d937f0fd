//! A completed turn of a conversation.

use super::trail::{Role, Trail};

/// A completed turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The user's message.
    pub user: String,
    /// The server's response.
    pub answer: String,
    /// Number of tokens of both.
    pub tokens: u32,
    /// Number of these tokens that belong to the response.
    pub(crate) answer_tokens: u32,
}

impl Exchange {
    /// Appends both messages to the trail.
    pub(super) fn say(&self, trail: &mut Trail) {
        trail.say(Role::User, &self.user, self.tokens.saturating_sub(self.answer_tokens));
        trail.say(Role::Assistant, &self.answer, self.answer_tokens);
    }
}
