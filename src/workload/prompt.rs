//! The texts of one request.

use std::sync::Arc;

/// The new texts of one request; in a conversation, they are added to the history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The system message, if the scenario has one.
    pub system: Option<Arc<str>>,
    /// The user's message.
    pub user: String,
    /// Further texts of the request, if it has several.
    pub more: Vec<String>,
    /// In a cold scenario, the nonce that opens the whole request, including the history, instead of
    /// the nonce of its first message.
    pub own_nonce: Option<String>,
    /// Number of tokens to send. By [`estimate`](super::estimate), this covers system message,
    /// history and user's message, without the chat template. With a tokenizer, it covers everything
    /// that the model receives, as encoded; only a real history is counted by the estimate.
    pub intended_prompt_tokens: u32,
    /// Number of these tokens that belong to the system message.
    pub system_tokens: u32,
    /// Number of leading tokens of the prompt that the server has seen in the same conversation, because
    /// it has received or written them.
    pub seen_tokens: u32,
    /// The part with which other requests of the run may also begin.
    pub common: Common,
    /// Number of requested output tokens.
    pub output_tokens: u32,
}

/// How much of a prompt, from its front, may be shared by requests outside its own conversation. It limits
/// which part is worth comparing; whether the texts are equal is determined from the sent text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Common {
    /// Nothing is shared, because by construction no other request has the same opening.
    #[default]
    Nothing,
    /// At most this many bytes of the first message; the rest is unique by construction.
    Front(usize),
    /// Any part of the prompt may be shared.
    All,
    /// The whole prompt is shared: it is the same in every request of the scenario.
    Same,
}

/// The length of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    /// Number of tokens of the user's text.
    pub prompt_tokens: u32,
    /// Number of requested output tokens.
    pub output_tokens: u32,
}
