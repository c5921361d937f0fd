//! Settings for counting the tokens of a run's prompts.

use std::sync::Arc;

use crate::protocol::Framing;

use super::tokenizer::Tokenizer;

/// The tokenizer, and the framing that is counted with the texts.
#[derive(Debug, Clone)]
pub struct Counting {
    /// The model's tokenizer.
    pub tokenizer: Arc<Tokenizer>,
    /// How the server frames a prompt: as a chat, or as plain text. The tokens of the framing are also
    /// counted.
    pub framing: Framing,
}
