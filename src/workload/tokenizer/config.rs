//! Reads `tokenizer_config.json`: the special tokens by name, the tokens around a text, and the chat
//! template.

use serde::Deserialize;

use super::error::{TokenizerError, short};

/// The parts of the file that affect the tokens of a prompt.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Config {
    bos_token: Option<Token>,
    eos_token: Option<Token>,
    unk_token: Option<Token>,
    sep_token: Option<Token>,
    pad_token: Option<Token>,
    cls_token: Option<Token>,
    mask_token: Option<Token>,
    add_bos_token: Option<bool>,
    add_eos_token: Option<bool>,
    chat_template: Option<Templates>,
}

/// A special token, given as its text or as a table that contains the text.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Token {
    Text(String),
    Table { content: String },
}

/// One chat template, or several with names.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Templates {
    One(String),
    Named(Vec<Named>),
}

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
    template: String,
}

impl Config {
    /// Parses the content of `tokenizer_config.json`.
    pub(crate) fn read(bytes: &[u8]) -> Result<Config, TokenizerError> {
        serde_json::from_slice(bytes).map_err(|error| TokenizerError::Config(short(&error.to_string())))
    }

    /// Returns the special tokens that have a name and a text.
    pub(crate) fn special_tokens(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("bos_token", &self.bos_token),
            ("eos_token", &self.eos_token),
            ("unk_token", &self.unk_token),
            ("sep_token", &self.sep_token),
            ("pad_token", &self.pad_token),
            ("cls_token", &self.cls_token),
            ("mask_token", &self.mask_token),
        ];
        all.into_iter().filter_map(|(name, token)| Some((name, token.as_ref()?.text())))
    }

    /// Returns the number of special tokens that are added around a text; `None` if the file does not
    /// specify whether a first and a last token are added. If it does, Hugging Face's library (version 5)
    /// ignores the specification in `tokenizer.json`.
    pub(crate) fn around(&self) -> Option<usize> {
        if self.add_bos_token.is_none() && self.add_eos_token.is_none() {
            return None;
        }
        let added = |flag: Option<bool>, token: &Option<Token>| usize::from(flag == Some(true) && token.is_some());
        Some(added(self.add_bos_token, &self.bos_token) + added(self.add_eos_token, &self.eos_token))
    }

    /// Returns the chat template; if there are several, the one named `default`. `None` without a template.
    pub(crate) fn template(&self) -> Result<Option<&str>, TokenizerError> {
        match &self.chat_template {
            None => Ok(None),
            Some(Templates::One(source)) => Ok(Some(source)),
            Some(Templates::Named(all)) => match all.iter().find(|one| one.name == "default") {
                Some(one) => Ok(Some(&one.template)),
                None => Err(TokenizerError::Template("tokenizer_config.json has no template named default".to_owned())),
            },
        }
    }
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Token::Text(text) | Token::Table { content: text } => text,
        }
    }
}
