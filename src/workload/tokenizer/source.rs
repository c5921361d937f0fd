//! The source of a tokenizer's counts.

use tokenizers::{EncodeInput, Tokenizer as Encoder};

use super::error::{TokenizerError, short};
use super::learned::Learned;
use super::template::ChatTemplate;

/// The tokens that a server adds around a text outside of chats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Around {
    /// As specified in `tokenizer.json`.
    AsWritten,
    /// A fixed number of tokens, as specified in `tokenizer_config.json`, which takes precedence.
    Tokens(usize),
}

/// The source of counts.
pub(super) enum Source {
    /// The model's files.
    Files { encoder: Box<Encoder>, template: Option<Box<ChatTemplate>>, around: Around },
    /// A server's counts.
    Learned(Learned),
}

/// Encodes a text, including the additions of `tokenizer.json` if `around` selects them.
pub(super) fn encode<'t>(
    encoder: &Encoder,
    text: impl Into<EncodeInput<'t>>,
    around: bool,
) -> Result<u32, TokenizerError> {
    let encoding = encoder.encode_fast(text, around);
    let encoding = encoding.map_err(|error| TokenizerError::Encode(short(&error.to_string())))?;
    Ok(u32::try_from(encoding.len()).unwrap_or(u32::MAX))
}
