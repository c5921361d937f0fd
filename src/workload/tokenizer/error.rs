//! What can go wrong with a tokenizer.

/// Why a tokenizer cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenizerError {
    /// `tokenizer.json` is not what Hugging Face's library reads.
    #[error("tokenizer.json is no tokenizer: {0}")]
    Vocabulary(String),
    /// The tokenizer cuts one text differently each time.
    #[error("tokenizer.json has a dropout of {0}: it cuts one text differently each time, so nothing can be counted")]
    Dropout(String),
    /// `tokenizer_config.json` is not what it should be.
    #[error("tokenizer_config.json cannot be read: {0}")]
    Config(String),
    /// The chat template is no template.
    #[error("the chat template cannot be read: {0}")]
    Template(String),
    /// The chat template failed on a chat.
    #[error("the chat template fails: {0}")]
    Render(String),
    /// The tokenizer failed on a text.
    #[error("the tokenizer fails: {0}")]
    Encode(String),
}

/// The first line of a message of a library, fit for a terminal.
pub(super) fn short(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().filter(|c| !crate::units::text::is_unseen(*c)).take(200).collect()
}
