//! Groups tokens into blocks that are identified by all tokens up to their end.

use sha2::{Digest, Sha256};

/// A full block, identified by a hash over its own tokens and all tokens before them. Two blocks are equal
/// only if the entire texts up to their ends are equal. Collisions of half a SHA-256 are negligible.
pub(super) type Block = [u8; 16];

/// The kind of a token, so that a word of a text is never mistaken for a mark of the template or for an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text.
    Word,
    /// A token id in a completions request.
    Id,
    /// A mark of the chat template.
    Mark,
    /// The role of a chat message.
    Role,
}

/// A sequence of tokens, divided into blocks.
#[derive(Debug)]
pub(super) struct Chain {
    /// Number of tokens in a block.
    size: u32,
    blocks: Vec<Block>,
    /// The hash state: the tokens of the block that is not full yet, and everything before it.
    open: Sha256,
    filled: u32,
    tokens: u64,
}

impl Chain {
    /// Creates an empty sequence for `model` with blocks of `size` tokens. Different models share no
    /// blocks.
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

    /// Returns the full blocks.
    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Returns the number of tokens so far, including those after the last full block.
    pub(super) fn tokens(&self) -> u64 {
        self.tokens
    }
}
