//! How the tokens of a run's prompts are counted.

use std::sync::Arc;

use crate::protocol::Framing;

use super::tokenizer::Tokenizer;

/// The tokenizer that counts, and the framing that it counts around texts.
#[derive(Debug, Clone)]
pub struct Counting {
    /// The model's tokenizer.
    pub tokenizer: Arc<Tokenizer>,
    /// How the server counts a prompt; the count of a chat includes the chat template.
    pub framing: Framing,
}
