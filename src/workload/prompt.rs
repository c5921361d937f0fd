//! What is said of one request.

use std::sync::Arc;

/// What one request says anew; in a conversation the history comes on top.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The system message, where the scenario has one.
    pub system: Option<Arc<str>>,
    /// The user's message.
    pub user: String,
    /// Further texts of the request, where it says several things at once.
    pub more: Vec<String>,
    /// What opens the request, history and all, in the place of the nonce that its first message has: in a cold scenario.
    pub own_nonce: Option<String>,
    /// Tokens that are meant to be sent. By [`estimate`](super::estimate): system, history and user, without the chat
    /// template; with a tokenizer: all that the model is given, as it was encoded, and a real history by the estimate.
    pub intended_prompt_tokens: u32,
    /// Of these, those of the system message.
    pub system_tokens: u32,
    /// Of the intended tokens, the leading ones that the server has seen in the same conversation: sent to it, or written by it.
    pub seen_tokens: u32,
    /// What other requests of the run may begin with too.
    pub common: Common,
    /// Tokens asked for.
    pub output_tokens: u32,
}

/// How much of a prompt, from its front, other requests than those of its own conversation may begin with too. It says what
/// is worth comparing, never what is the same: that is found in what is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Common {
    /// Nothing, by construction: it opens with what no other request opens with.
    #[default]
    Nothing,
    /// So many bytes of its first message at most; all behind them is its own by construction.
    Front(usize),
    /// Any part of it.
    All,
    /// All of it, which is the same in every request of the scenario.
    Same,
}

/// How long a request is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    /// Tokens of the user's text.
    pub prompt_tokens: u32,
    /// Tokens asked for.
    pub output_tokens: u32,
}
