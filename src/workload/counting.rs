//! Who counts the tokens of a run's prompts.

use std::sync::Arc;

use crate::protocol::Framing;

use super::tokenizer::Tokenizer;

/// By what, and with what around them, tokens are counted.
#[derive(Debug, Clone)]
pub struct Counting {
    /// The model's tokenizer.
    pub tokenizer: Arc<Tokenizer>,
    /// How the server counts a prompt: a chat has its template around it.
    pub framing: Framing,
}
