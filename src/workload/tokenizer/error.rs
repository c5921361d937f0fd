//! Errors of tokenizers.

/// Why a tokenizer cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenizerError {
    /// Hugging Face's library cannot read `tokenizer.json`.
    #[error("tokenizer.json is not a valid tokenizer: {0}")]
    Vocabulary(String),
    /// The tokenizer has a dropout, so it splits the same text differently each time.
    #[error(
        "tokenizer.json has a dropout of {0}: it splits the same text differently each time, so tokens cannot be \
         counted"
    )]
    Dropout(String),
    /// `tokenizer_config.json` is not valid.
    #[error("tokenizer_config.json cannot be read: {0}")]
    Config(String),
    /// The chat template is not valid.
    #[error("the chat template cannot be read: {0}")]
    Template(String),
    /// The chat template failed on a chat.
    #[error("the chat template fails: {0}")]
    Render(String),
    /// The tokenizer failed on a text.
    #[error("the tokenizer fails: {0}")]
    Encode(String),
}

/// Returns the first line of a library's message, cleaned for a terminal.
pub(super) fn short(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().filter(|c| !crate::units::text::is_unseen(*c)).take(200).collect()
}
