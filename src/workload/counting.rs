//! Settings for counting the tokens of a run's prompts.

use std::sync::Arc;

use crate::protocol::Framing;

use super::tokenizer::Tokenizer;

/// The tokenizer, and the framing that is counted with the texts.
#[derive(Debug, Clone)]
pub struct Counting {
    /// The model's tokenizer.
    pub tokenizer: Arc<Tokenizer>,
    /// The text that the server adds to a prompt and that is counted, too: the chat template, or none.
    pub framing: Framing,
}
