//! Tokenizers that models name: each is read once, however many models name it.

use std::collections::HashMap;
use std::io;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::files::disk::Files;
use crate::plan::files::loader::Loader;
use crate::plan::model::plan::Plan;
use crate::plan::model::tokenizer::FoundTokenizer;
use crate::plan::text::tree::{Node, Step};

/// The main file, as Hugging Face's libraries write it.
const TOKENIZER: &str = "tokenizer.json";

/// Beside it: special tokens, what is put in front of a text, and the chat template.
const CONFIG: &str = "tokenizer_config.json";

/// The chat template in a file of its own, which wins over the one in the configuration.
const TEMPLATE: &str = "chat_template.jinja";

/// Bytes of the largest `tokenizer.json` that is read; those of 250 000 tokens have 35 MB.
const MOST_TOKENIZER: usize = 256 << 20;

/// Bytes of the largest other file.
const MOST_OTHER: usize = 4 << 20;

/// Finds the tokenizers that the plan's models name; each is read once, however many models name it.
pub(crate) fn find(plan: &mut Plan, tree: &Node, folder: &Path, loader: &mut Loader<'_>) {
    let mut known: HashMap<PathBuf, FoundTokenizer> = HashMap::new();
    for (name, model) in &mut plan.models {
        let Some(tokenizer) = model.tokenizer.as_mut().filter(|tokenizer| !tokenizer.is_server()) else { continue };
        match one(&tokenizer.written, folder, loader, &mut known) {
            Ok(found) => tokenizer.found = Some(found),
            Err(diagnostic) => {
                let place = tree.walk(&[Step::from("models"), Step::from(name.as_str()), Step::from("tokenizer")]);
                if !place.broken {
                    loader.found.push((*diagnostic).at(Some(place.span())).with(place.related()));
                }
            }
        }
    }
}

fn one(
    written: &str,
    folder: &Path,
    loader: &Loader<'_>,
    known: &mut HashMap<PathBuf, FoundTokenizer>,
) -> Result<FoundTokenizer, Box<Diagnostic>> {
    let path = folder.join(written);
    let path = loader.files().canonical(&path).map_err(|error| {
        let message = format!("the tokenizer `{written}` cannot be read: {error}");
        Diagnostic::new(Code::File, message).remedy("paths are relative to the plan's file")
    })?;
    if !loader.may_read(&path) {
        let message = format!("the tokenizer `{written}` is outside of the plan's folder");
        let remedy = "put it into the plan's folder, or allow it with --allow-outside";
        return Err(Diagnostic::new(Code::PathOutside, message).remedy(remedy).into());
    }
    if let Some(found) = known.get(&path) {
        return Ok(found.clone());
    }
    let files = TokenizerFiles::read(loader.files(), &path).map_err(|error| {
        let remedy = "name a tokenizer.json, or a folder that has one; its owner publishes it with the model";
        Diagnostic::new(Code::File, format!("`{written}` is no tokenizer: {error}")).remedy(remedy)
    })?;
    let found = FoundTokenizer { path: path.clone(), digest: files.digest() };
    known.insert(path, found.clone());
    Ok(found)
}

/// The bytes of a tokenizer's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenizerFiles {
    /// `tokenizer.json`.
    pub tokenizer: Vec<u8>,
    /// `tokenizer_config.json`, where the tokenizer is a folder that has one.
    pub config: Option<Vec<u8>>,
    /// `chat_template.jinja`, where the tokenizer is a folder that has one.
    pub template: Option<Vec<u8>>,
}

/// Why files are no tokenizer.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerFilesError {
    /// A file cannot be read.
    #[error("{path} cannot be read: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is larger than any of its kind.
    #[error("{path} has more than {most} bytes")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The most that is read.
        most: usize,
    },
    /// A folder without the main file.
    #[error("the folder {path} has no {TOKENIZER}")]
    NoTokenizer {
        /// The folder.
        path: PathBuf,
    },
}

impl TokenizerFiles {
    /// Reads a `tokenizer.json`, or a folder that has one and what belongs to it.
    pub fn read(files: &dyn Files, path: &Path) -> Result<TokenizerFiles, TokenizerFilesError> {
        if let Some(tokenizer) = optional(files, path.join(TOKENIZER), MOST_TOKENIZER)? {
            let config = optional(files, path.join(CONFIG), MOST_OTHER)?;
            let template = optional(files, path.join(TEMPLATE), MOST_OTHER)?;
            return Ok(TokenizerFiles { tokenizer, config, template });
        }
        match optional(files, path.to_owned(), MOST_TOKENIZER) {
            Ok(Some(tokenizer)) => Ok(TokenizerFiles { tokenizer, config: None, template: None }),
            Ok(None) => Err(TokenizerFilesError::Read { path: path.to_owned(), source: ErrorKind::NotFound.into() }),
            // What is there and is no file is a folder without the file.
            Err(TokenizerFilesError::Read { source, .. }) if !is_refused(&source) => {
                Err(TokenizerFilesError::NoTokenizer { path: path.to_owned() })
            }
            Err(error) => Err(error),
        }
    }

    /// SHA-256 over name, length and bytes of each file that is there, as 64 hex digits.
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

fn is_refused(error: &io::Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied
}

/// The bytes of a file; none where there is no such file.
fn optional(files: &dyn Files, path: PathBuf, most: usize) -> Result<Option<Vec<u8>>, TokenizerFilesError> {
    match files.read(&path, most + 1) {
        Ok(bytes) if bytes.len() > most => Err(TokenizerFilesError::TooLarge { path, most }),
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(source) => Err(TokenizerFilesError::Read { path, source }),
    }
}
