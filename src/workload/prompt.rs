//! The texts of one request.

use std::sync::Arc;

/// The new texts of one request; in a conversation the history is added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The system message, if the scenario has one.
    pub system: Option<Arc<str>>,
    /// The user's message.
    pub user: String,
    /// Further texts of the request, if it has several.
    pub more: Vec<String>,
    /// In a cold scenario: opens the whole request, including the history, instead of the nonce of its
    /// first message.
    pub own_nonce: Option<String>,
    /// Tokens to send. By [`estimate`](super::estimate): system, history and user, without the chat
    /// template; with a tokenizer: everything that the model receives, as it was encoded, and a real
    /// history by the estimate.
    pub intended_prompt_tokens: u32,
    /// How many of these belong to the system message.
    pub system_tokens: u32,
    /// How many leading tokens of the intended ones the server has seen in the same conversation: received
    /// or written by it.
    pub seen_tokens: u32,
    /// The part with which other requests of the run may begin as well.
    pub common: Common,
    /// Requested tokens.
    pub output_tokens: u32,
}

/// How much of a prompt, from its front, may be shared by requests outside its own conversation. It states
/// what is worth comparing, not what is equal: that is determined from the sent text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Common {
    /// Nothing, by construction: no other request has the same opening.
    #[default]
    Nothing,
    /// At most this many bytes of its first message; the rest is unique by construction.
    Front(usize),
    /// Any part of it.
    All,
    /// All of it, which is the same in every request of the scenario.
    Same,
}

/// The length of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    /// Tokens of the user's text.
    pub prompt_tokens: u32,
    /// Requested tokens.
    pub output_tokens: u32,
}
