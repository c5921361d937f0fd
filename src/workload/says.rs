//! The number of texts in a request.

/// The content of one request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Says {
    /// One prompt; the response consists of tokens.
    #[default]
    Prompt,
    /// This many texts, each of which becomes a vector.
    Inputs(u32),
    /// A query and documents, each of which gets a score.
    Documents {
        /// Number of documents.
        count: u32,
        /// Tokens of the query.
        query_tokens: u32,
    },
}

impl Says {
    /// Returns the number of requested vectors or scores; 0 if the request asks for tokens.
    pub fn values(self) -> usize {
        match self {
            Says::Prompt => 0,
            Says::Inputs(count) | Says::Documents { count, .. } => count as usize,
        }
    }
}
