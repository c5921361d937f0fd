//! Where a tokenizer's counts come from.

use tokenizers::{EncodeInput, Tokenizer as Encoder};

use super::error::{TokenizerError, short};
use super::learned::Learned;
use super::template::ChatTemplate;

/// What a server puts around a text that is no chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Around {
    /// What `tokenizer.json` says.
    AsWritten,
    /// So many tokens, said by `tokenizer_config.json`, which wins.
    Tokens(usize),
}

/// Where counts come from.
pub(super) enum Source {
    /// The model's files.
    Files { encoder: Box<Encoder>, template: Option<Box<ChatTemplate>>, around: Around },
    /// What a server counted.
    Learned(Learned),
}

/// Tokens of a text; with what `tokenizer.json` puts around it where `around` says so.
pub(super) fn encode<'t>(
    encoder: &Encoder,
    text: impl Into<EncodeInput<'t>>,
    around: bool,
) -> Result<u32, TokenizerError> {
    let encoding = encoder.encode_fast(text, around);
    let encoding = encoding.map_err(|error| TokenizerError::Encode(short(&error.to_string())))?;
    Ok(u32::try_from(encoding.len()).unwrap_or(u32::MAX))
}
