//! What is said of one request.

use std::sync::Arc;

/// What one request says anew; in a conversation the history comes on top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The system message, where the scenario has one.
    pub system: Option<Arc<str>>,
    /// The user's message.
    pub user: String,
    /// What opens the request, history and all, in the place of the nonce that its first message has: in a cold scenario.
    pub own_nonce: Option<String>,
    /// Tokens that are meant to be sent. By [`estimate`](super::estimate): system, history and user, without the chat
    /// template; with a tokenizer: all that the model is given, as it was encoded, and a real history by the estimate.
    pub intended_prompt_tokens: u32,
    /// Of these, the leading ones that an earlier request of the run carries too, where the scenario declares so: what an
    /// endless prefix cache could give back. All of a prompt at most; a server always computes its last token.
    pub reusable_tokens: u32,
    /// Tokens asked for.
    pub output_tokens: u32,
}

/// How long a request is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    /// Tokens of the user's text.
    pub prompt_tokens: u32,
    /// Tokens asked for.
    pub output_tokens: u32,
}
