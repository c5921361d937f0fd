//! The files of a tokenizer: where they lie, what they hold, and the digest that stands for them in a run's identity.
//!
//! Here they are only read; `workload` makes a tokenizer of them. So a plan is expanded without building a vocabulary.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::model::file_ref::FileRef;

/// Where a model's tokenizer lies, relative to the text that names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TokenizerPath(pub(crate) FileRef<FoundTokenizer>);

/// What is written in the place of a path: the server's own count is asked for.
const SERVER: &str = "server";

/// A tokenizer that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundTokenizer {
    /// Its file or folder, without links.
    pub path: PathBuf,
    /// SHA-256 over the names, lengths and bytes of its files, as 64 hex digits.
    pub digest: String,
}

impl TokenizerPath {
    /// The server's own count, by its `/tokenize`.
    pub const SERVER: &str = SERVER;

    /// What was there when the plan was loaded.
    pub fn found(&self) -> Option<&FoundTokenizer> {
        self.0.found()
    }

    /// What stands for it in a run's identity: the digest of its files, or [`TokenizerPath::SERVER`].
    pub fn identity(&self) -> Option<&str> {
        if self.is_server() { Some(SERVER) } else { self.found().map(|found| found.digest.as_str()) }
    }

    /// Whether the server is to count, and there is no file. A file of that name is `./server`.
    pub(crate) fn is_server(&self) -> bool {
        self.0.written() == SERVER
    }
}
