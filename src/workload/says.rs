//! How many texts a request says.

/// What one request says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Says {
    /// A prompt, which is answered by tokens.
    #[default]
    Prompt,
    /// So many texts, each of which becomes a vector.
    Inputs(u32),
    /// A query, and documents each of which gets a score.
    Documents {
        /// Documents.
        count: u32,
        /// Tokens of the query.
        query_tokens: u32,
    },
}

impl Says {
    /// Vectors or scores that are asked for; 0 where tokens are.
    pub fn values(self) -> usize {
        match self {
            Says::Prompt => 0,
            Says::Inputs(count) | Says::Documents { count, .. } => count as usize,
        }
    }
}
