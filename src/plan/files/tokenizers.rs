//! Reads the tokenizers of models. Each is read once, however many models name it.

use std::collections::HashMap;
use std::io;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::files::disk::Files;
use crate::plan::files::loader::Loader;
use crate::plan::files::tables::Found;
use crate::plan::model::tokenizer::FoundTokenizer;
use crate::plan::text::span::Span;

/// The main file of a tokenizer, as written by Hugging Face's libraries.
const TOKENIZER: &str = "tokenizer.json";

/// The file with the special tokens, the rules by which they are added to texts, and the chat template.
const CONFIG: &str = "tokenizer_config.json";

/// The chat template in a separate file, which overrides the template in the configuration.
const TEMPLATE: &str = "chat_template.jinja";

/// Maximum size of a `tokenizer.json` in bytes. The file of a tokenizer with 250 000 tokens is 35 MB in size.
const MOST_TOKENIZER: usize = 256 << 20;

/// Maximum size of any other file of a tokenizer in bytes.
const MOST_OTHER: usize = 4 << 20;

/// The tokenizers of a plan, each read once.
#[derive(Default)]
pub(crate) struct Tokenizers {
    known: HashMap<PathBuf, FoundTokenizer>,
}

impl Tokenizers {
    /// Reads the tokenizer at the path `written` in the plan.
    pub(crate) fn read(&mut self, written: &str, span: &Span, loader: &Loader<'_>) -> Found<FoundTokenizer> {
        let (_, path) = loader.locate(written, span)?;
        if let Some(found) = self.known.get(&path) {
            return Ok((found.clone(), path));
        }
        let files = TokenizerFiles::read(loader.files(), &path).map_err(|error| {
            let remedy = "name a tokenizer.json, or a folder that contains one; publishers of models provide it with \
                          the model";
            Diagnostic::new(Code::File, format!("`{written}` is not a tokenizer: {error}")).remedy(remedy)
        })?;
        let found = FoundTokenizer { path: path.clone(), digest: files.digest() };
        self.known.insert(path.clone(), found.clone());
        Ok((found, path))
    }
}

/// The bytes of a tokenizer's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenizerFiles {
    /// `tokenizer.json`.
    pub tokenizer: Vec<u8>,
    /// `tokenizer_config.json`, if the tokenizer is a folder that contains one.
    pub config: Option<Vec<u8>>,
    /// `chat_template.jinja`, if the tokenizer is a folder that contains one.
    pub template: Option<Vec<u8>>,
}

/// The reason why files are not a tokenizer.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerFilesError {
    /// A file cannot be read.
    #[error("{path} cannot be read: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file is too large.
    #[error("{path} has more than {most} bytes")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The maximum size.
        most: usize,
    },
    /// A folder without a `tokenizer.json`.
    #[error("the folder {path} has no {TOKENIZER}")]
    NoTokenizer {
        /// The folder.
        path: PathBuf,
    },
}

impl TokenizerFiles {
    /// Reads a `tokenizer.json`, or a folder that contains one and its related files.
    pub fn read(files: &dyn Files, path: &Path) -> Result<TokenizerFiles, TokenizerFilesError> {
        if let Some(tokenizer) = optional(files, path.join(TOKENIZER), MOST_TOKENIZER)? {
            let config = optional(files, path.join(CONFIG), MOST_OTHER)?;
            let template = optional(files, path.join(TEMPLATE), MOST_OTHER)?;
            return Ok(TokenizerFiles { tokenizer, config, template });
        }
        match optional(files, path.to_owned(), MOST_TOKENIZER) {
            Ok(Some(tokenizer)) => Ok(TokenizerFiles { tokenizer, config: None, template: None }),
            Ok(None) => Err(TokenizerFilesError::Read { path: path.to_owned(), source: ErrorKind::NotFound.into() }),
            Err(TokenizerFilesError::Read { source, .. }) if source.kind() == ErrorKind::IsADirectory => {
                Err(TokenizerFilesError::NoTokenizer { path: path.to_owned() })
            }
            Err(error) => Err(error),
        }
    }

    /// SHA-256 over the name, length and bytes of each existing file, as 64 hex digits.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(b"sweepline tokenizer 1\0");
        let TokenizerFiles { tokenizer, config, template } = self;
        let all = [(TOKENIZER, Some(tokenizer)), (CONFIG, config.as_ref()), (TEMPLATE, template.as_ref())];
        for (name, bytes) in all.into_iter().filter_map(|(name, bytes)| Some((name, bytes?))) {
            hash.update(name);
            hash.update([0]);
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The bytes of a file; `None` if it does not exist.
fn optional(files: &dyn Files, path: PathBuf, most: usize) -> Result<Option<Vec<u8>>, TokenizerFilesError> {
    match files.read(&path, most + 1) {
        Ok(bytes) if bytes.len() > most => Err(TokenizerFilesError::TooLarge { path, most }),
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(source) => Err(TokenizerFilesError::Read { path, source }),
    }
}
