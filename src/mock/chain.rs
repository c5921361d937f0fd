//! Tokens into blocks that are known by all tokens up to their end.

use sha2::{Digest, Sha256};

/// A full block, known by the hash over its tokens and all before them: two blocks are equal only where the whole
/// texts up to their ends are. Half of SHA-256 leaves no collisions to think of.
pub(super) type Block = [u8; 16];

/// What a token is, so that a word of a text is never taken for a mark of the template or for an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text.
    Word,
    /// A token id as completions take them.
    Id,
    /// A mark of the chat template.
    Mark,
    /// The role of a chat message.
    Role,
}

/// A sequence of tokens, as blocks.
#[derive(Debug)]
pub(super) struct Chain {
    /// Tokens of a block.
    size: u32,
    blocks: Vec<Block>,
    /// All before the block that is not yet full, and its tokens.
    open: Sha256,
    filled: u32,
    tokens: u64,
}

impl Chain {
    /// An empty sequence of `model`, whose blocks have `size` tokens: models share nothing.
    pub(super) fn new(size: u32, model: &str) -> Chain {
        let open = Sha256::new().chain_update(b"sweepline mock prefix 1\0").chain_update(model);
        Chain { size, blocks: Vec::new(), open, filled: 0, tokens: 0 }
    }

    /// Appends a token.
    pub(super) fn push(&mut self, kind: Kind, token: &str) {
        self.open.update([kind as u8]);
        self.open.update((token.len() as u64).to_le_bytes());
        self.open.update(token);
        self.tokens += 1;
        self.filled += 1;
        if self.filled == self.size {
            let digest = std::mem::take(&mut self.open).finalize();
            self.blocks.push(std::array::from_fn(|at| digest[at]));
            self.open.update(digest);
            self.filled = 0;
        }
    }

    /// The full blocks.
    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Tokens so far, those behind the last full block too.
    pub(super) fn tokens(&self) -> u64 {
        self.tokens
    }
}
