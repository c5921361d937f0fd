//! A model's own tokenizer: the exact number of tokens of a text or a chat, as servers count them.
//!
//! `config` reads the file next to the vocabulary, `template` renders a chat as Hugging Face's library
//! does, `words` contains the costs of words, `draft` creates texts with them, and `fit` creates a text
//! of an exact length. If there are no files, `learned` uses the counts of a server.

mod config;
pub(super) mod draft;
mod error;
mod fillers;
mod fit;
mod learned;
mod message;
mod patch;
mod python;
mod source;
mod template;
mod word_costs;

use tokenizers::models::ModelWrapper;
use tokenizers::{AddedToken, Tokenizer as Encoder};

use crate::plan::TokenizerFiles;

use config::Config;
use error::short;
use learned::Learned;
use source::{Around, Source, encode};
use template::ChatTemplate;
use word_costs::WordCosts;

pub use error::TokenizerError;
pub use learned::{Frames, Lesson, Table};
pub use message::Message;

/// Counts tokens as a model's servers do.
pub struct Tokenizer {
    source: Source,
    digest: String,
    words: WordCosts,
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer").field("digest", &self.digest).finish_non_exhaustive()
    }
}

impl Tokenizer {
    /// Creates the tokenizer that these files describe.
    pub fn new(files: &TokenizerFiles) -> Result<Tokenizer, TokenizerError> {
        let mut encoder = Encoder::from_bytes(&files.tokenizer)
            .map_err(|error| TokenizerError::Vocabulary(short(&error.to_string())))?;
        refuse_dropout(&encoder)?;
        // Truncation and padding are meant for training batches; a server applies neither of them
        // to prompts.
        encoder.with_padding(None);
        encoder.with_truncation(None).map_err(|error| TokenizerError::Vocabulary(short(&error.to_string())))?;
        let config = files.config.as_deref().map(Config::read).transpose()?.unwrap_or_default();
        let known = encoder.get_added_tokens_decoder();
        let new = config.special_tokens().filter(|(_, text)| !known.values().any(|token| token.content == **text));
        let new: Vec<AddedToken> = new.map(|(_, text)| AddedToken::from(text.to_owned(), true)).collect();
        encoder.add_special_tokens(new).map_err(|error| TokenizerError::Config(short(&error.to_string())))?;
        let template = match &files.template {
            Some(bytes) => Some(
                String::from_utf8(bytes.clone())
                    .map_err(|_| TokenizerError::Template("chat_template.jinja is not UTF-8 text".to_owned()))?,
            ),
            None => config.template()?.map(str::to_owned),
        };
        let template = template.map(|source| ChatTemplate::new(source, &config).map(Box::new)).transpose()?;
        let around = config.around().map_or(Around::AsWritten, Around::Tokens);
        let source = Source::Files { encoder: Box::new(encoder), template, around };
        Ok(Tokenizer { source, digest: files.digest(), words: WordCosts::default() })
    }

    /// Creates a tokenizer from these word costs, for prompts with `frames` around them.
    pub fn learned(table: &Table, frames: Frames) -> Tokenizer {
        let source = Source::Learned(Learned::new(table, frames));
        Tokenizer { source, digest: String::new(), words: WordCosts::default() }
    }

    /// Whether the tokenizer is based on a server's counts rather than the model's files.
    pub(crate) fn is_learned(&self) -> bool {
        matches!(self.source, Source::Learned(_))
    }

    /// Returns the digest of the files, see [`TokenizerFiles::digest`]; empty without files.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Whether the tokenizer has a chat template.
    pub fn has_template(&self) -> bool {
        matches!(&self.source, Source::Files { template: Some(_), .. })
    }

    /// Returns the number of tokens of a text as a completions API counts them, including the
    /// tokens that the server adds around the text.
    pub fn text_tokens(&self, text: &str) -> Result<u32, TokenizerError> {
        match &self.source {
            Source::Files { encoder, around: Around::AsWritten, .. } => encode(encoder, text, true),
            Source::Files { encoder, around: Around::Tokens(tokens), .. } => {
                Ok(encode(encoder, text, false)?.saturating_add(*tokens as u32))
            }
            Source::Learned(learned) => Ok(learned.text(text)),
        }
    }

    /// Returns the number of tokens of a chat as a chat API counts them, up to the beginning of the
    /// response. Without a template, only the texts are counted, because the server's additions are
    /// unknown.
    pub fn chat_tokens(&self, messages: &[Message]) -> Result<u32, TokenizerError> {
        match &self.source {
            // The template itself writes the beginning of a prompt.
            Source::Files { encoder, template: Some(template), .. } => {
                encode(encoder, template.render(messages)?, false)
            }
            Source::Files { encoder, template: None, .. } => messages
                .iter()
                .try_fold(0u32, |sum, message| Ok(sum.saturating_add(encode(encoder, message.content, false)?))),
            Source::Learned(learned) => Ok(learned.chat(messages)),
        }
    }

    /// Renders a chat with the chat template, if there is one.
    pub fn rendered(&self, messages: &[Message]) -> Option<Result<String, TokenizerError>> {
        match &self.source {
            Source::Files { template, .. } => template.as_ref().map(|template| template.render(messages)),
            Source::Learned(_) => None,
        }
    }

    /// Returns the number of tokens of a text alone.
    pub(crate) fn bare_tokens(&self, text: &str) -> Result<u32, TokenizerError> {
        match &self.source {
            Source::Files { encoder, .. } => encode(encoder, text, false),
            Source::Learned(learned) => Ok(learned.bare(text)),
        }
    }
}

/// A count must be the same each time, here and on the server.
fn refuse_dropout(encoder: &Encoder) -> Result<(), TokenizerError> {
    match encoder.get_model() {
        ModelWrapper::BPE(model) => match model.dropout {
            Some(dropout) if dropout > 0.0 => Err(TokenizerError::Dropout(dropout.to_string())),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}
