//! One turn of a conversation that is over.

use super::trail::{Role, Trail};

/// One turn that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// What the user said.
    pub user: String,
    /// What the server answered.
    pub answer: String,
    /// Tokens of both.
    pub tokens: u32,
    /// Of these, those of the answer.
    pub(crate) answer_tokens: u32,
}

impl Exchange {
    /// Appends both to what is compared with what others begin with.
    pub(super) fn say(&self, trail: &mut Trail) {
        trail.say(Role::User, &self.user, self.tokens.saturating_sub(self.answer_tokens));
        trail.say(Role::Assistant, &self.answer, self.answer_tokens);
    }
}
