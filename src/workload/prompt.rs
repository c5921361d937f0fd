//! The texts of one request.

use std::sync::Arc;

/// The new texts of one request; in a conversation, they are added to the history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The system message; `None` if there is none.
    pub system: Option<Arc<str>>,
    /// The user's message.
    pub user: String,
    /// The other texts of the request, if it contains several.
    pub more: Vec<String>,
    /// In a cold scenario, the nonce with which the whole request begins, including the history. It
    /// replaces the nonce of the first message.
    pub own_nonce: Option<String>,
    /// Number of tokens to send. Without a tokenizer, this is the [`estimate`](super::estimate) for the
    /// system message, the history and the user's message, without the chat template. With a tokenizer, it
    /// is the encoded length of everything that the model receives; only a real history is estimated.
    pub intended_prompt_tokens: u32,
    /// Number of the prompt's tokens that belong to the system message.
    pub system_tokens: u32,
    /// Number of leading tokens of the prompt that the server has seen in the same conversation, because it
    /// has received or generated them.
    pub seen_tokens: u32,
    /// How much of the prompt's beginning other requests of the run may share.
    pub common: Common,
    /// Number of requested output tokens.
    pub output_tokens: u32,
}

/// How much of a prompt's beginning may be shared by requests outside its own conversation. This only
/// limits the part that must be compared; the sent texts determine whether it is equal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Common {
    /// Nothing is shared, because by construction no other request has the same beginning.
    #[default]
    Nothing,
    /// At most this many bytes of the first message; the rest is unique by construction.
    Front(usize),
    /// Any part of the prompt may be shared.
    All,
    /// The whole prompt is shared: it is the same in every request of the scenario.
    Same,
}

/// The lengths of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    /// Number of tokens of the user's text.
    pub prompt_tokens: u32,
    /// Number of requested output tokens.
    pub output_tokens: u32,
}
