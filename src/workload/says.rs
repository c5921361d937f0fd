//! What a request contains: one prompt, or several texts.

/// What one request contains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Says {
    /// One prompt; the response consists of tokens.
    #[default]
    Prompt,
    /// This many texts; the response contains a vector for each.
    Inputs(u32),
    /// A query and documents; the response contains a score for each document.
    Documents {
        /// Number of documents.
        count: u32,
        /// Number of tokens of the query.
        query_tokens: u32,
    },
}

impl Says {
    /// Returns the number of requested vectors or scores; 0 if the response consists of tokens.
    pub fn values(self) -> usize {
        match self {
            Says::Prompt => 0,
            Says::Inputs(count) | Says::Documents { count, .. } => count as usize,
        }
    }
}
