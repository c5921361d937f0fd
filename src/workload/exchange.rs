//! Completed turns of conversations.

use super::trail::{Role, Trail};

/// A completed turn of a conversation: the user's message and the response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The user's message.
    pub user: String,
    /// The server's response.
    pub answer: String,
    /// Number of tokens of the message and the response together.
    pub tokens: u32,
    /// Number of the turn's tokens that belong to the response.
    pub(crate) answer_tokens: u32,
}

impl Exchange {
    /// Appends the message and the response to the trail.
    pub(super) fn say(&self, trail: &mut Trail) {
        trail.say(Role::User, &self.user, self.tokens.saturating_sub(self.answer_tokens));
        trail.say(Role::Assistant, &self.answer, self.answer_tokens);
    }
}
