//! Who counts the tokens of a run's prompts.

use std::sync::Arc;

use crate::plan::Api;

use super::tokenizer::Tokenizer;

/// By what, and for which API, tokens are counted.
#[derive(Debug, Clone)]
pub struct Counting {
    /// The model's tokenizer.
    pub tokenizer: Arc<Tokenizer>,
    /// Which API is called: a chat has its template around it.
    pub api: Api,
}
