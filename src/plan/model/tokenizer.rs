//! The files of a tokenizer: their location, their content, and the digest that represents them in a
//! run's identity.
//!
//! The files are only read here; `workload` builds a tokenizer from them. Expanding a plan therefore
//! does not require building a vocabulary.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::model::file_ref::FileRef;

/// The location of a model's tokenizer, relative to the text that names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TokenizerPath(pub(crate) FileRef<FoundTokenizer>);

/// The word that stands for a path and selects the server's own token count.
const SERVER: &str = "server";

/// A tokenizer that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundTokenizer {
    /// Its file or folder, with links resolved.
    pub path: PathBuf,
    /// SHA-256 over the names, lengths and bytes of its files, as 64 hex digits.
    pub digest: String,
}

impl TokenizerPath {
    /// The word that selects the server's own count, by its `/tokenize`.
    pub const SERVER: &str = SERVER;

    /// The tokenizer found when the plan was loaded.
    pub fn found(&self) -> Option<&FoundTokenizer> {
        self.0.found()
    }

    /// Its representation in a run's identity: the digest of its files, or [`TokenizerPath::SERVER`].
    pub fn identity(&self) -> Option<&str> {
        if self.is_server() { Some(SERVER) } else { self.found().map(|found| found.digest.as_str()) }
    }

    /// Whether the server counts and there is no file. A file with this name must be written as
    /// `./server`.
    pub(crate) fn is_server(&self) -> bool {
        self.0.written() == SERVER
    }
}
