//! The files of a tokenizer: their location, their content, and the digest that represents them in a
//! run's identity.
//!
//! Loading a plan only reads the files; `workload` builds a tokenizer from them. Expanding a plan therefore
//! does not require building a vocabulary.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::model::file_ref::FileRef;

/// The location of a model's tokenizer, relative to the text that names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TokenizerPath(pub(crate) FileRef<FoundTokenizer>);

/// The word that is written in place of a path to select the server's own token count.
const SERVER: &str = "server";

/// A tokenizer that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundTokenizer {
    /// The file or folder of the tokenizer, with links resolved.
    pub path: PathBuf,
    /// SHA-256 over the names, lengths and bytes of the tokenizer's files, as 64 hex digits.
    pub digest: String,
}

impl TokenizerPath {
    /// The word that selects the server's own count, which its `/tokenize` returns.
    pub const SERVER: &str = SERVER;

    /// The tokenizer that was found when the plan was loaded; `None` if there is none.
    pub fn found(&self) -> Option<&FoundTokenizer> {
        self.0.found()
    }

    /// How a run's identity represents the tokenizer: by the digest of its files, or by
    /// [`TokenizerPath::SERVER`]. `None` if its files were not found.
    pub fn identity(&self) -> Option<&str> {
        if self.is_server() { Some(SERVER) } else { self.found().map(|found| found.digest.as_str()) }
    }

    /// Whether the server counts the tokens, so that there is no file. The path of a file called `server` must
    /// be written as `./server`.
    pub(crate) fn is_server(&self) -> bool {
        self.0.written() == SERVER
    }
}
