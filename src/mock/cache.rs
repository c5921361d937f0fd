//! The prefix cache, which determines which blocks of tokens are kept and which are evicted first.
//!
//! The cache works like vLLM's automatic prefix caching. Only full blocks are kept, lookups start
//! at the front of a sequence, and the least recently used block is evicted first (within one
//! sequence, the last block). Unlike in vLLM, the capacity limits only the blocks that are kept for
//! later requests, and the blocks of running requests are not counted.

use std::collections::HashMap;

use super::chain::{Block, Chain};

/// Stands for a missing neighbor, in place of its index.
const NONE: u32 = u32::MAX;

/// Counters of the cache's activity since the server started.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counters {
    /// Number of tokens that were looked up.
    pub(super) queries: u64,
    /// Number of looked-up tokens that were found.
    pub(super) hits: u64,
    /// Number of evicted blocks.
    pub(super) evictions: u64,
}

/// A kept block, and the places of its neighbors in the order of last use.
#[derive(Debug)]
struct Kept {
    block: Block,
    newer: u32,
    older: u32,
}

/// The kept blocks, in the order of their last use.
///
/// Using a block also uses all blocks before it in its sequence, where blocks nearer to the end are treated
/// as used slightly earlier. So no block was used later than the block before it, and the least recently used
/// block is always the last one of its sequence. Evicting it never separates a kept block from the blocks
/// before it, so every kept block can be found.
#[derive(Debug)]
pub(super) struct Cache {
    /// Number of tokens in a block.
    size: u32,
    /// Maximum number of kept blocks.
    capacity: usize,
    places: HashMap<Block, u32>,
    /// The kept blocks; a block's place is its index in this list. The list grows to the largest number of
    /// blocks that were kept at the same time.
    kept: Vec<Kept>,
    newest: u32,
    oldest: u32,
    counters: Counters,
}

impl Cache {
    /// Creates an empty cache for `tokens` tokens in blocks of `size` tokens. Both must be at least 1; a
    /// remainder smaller than a block stays unused.
    pub(super) fn new(tokens: u32, size: u32) -> Cache {
        Cache {
            size,
            capacity: (tokens / size) as usize,
            places: HashMap::new(),
            kept: Vec::new(),
            newest: NONE,
            oldest: NONE,
            counters: Counters::default(),
        }
    }

    /// Returns the number of kept blocks.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns the maximum number of kept blocks.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the counters of the cache's activity so far.
    pub(super) fn counters(&self) -> Counters {
        self.counters
    }

    /// Looks up a prompt. Returns how many of its leading tokens need not be computed. The last token must
    /// always be computed, because the next token is predicted from it.
    pub(super) fn look_up(&mut self, prompt: &Chain) -> u64 {
        let size = u64::from(self.size);
        let most = (prompt.tokens().saturating_sub(1) / size) as usize;
        let found = prompt.blocks().iter().take(most).take_while(|block| self.places.contains_key(*block)).count();
        self.touch(&prompt.blocks()[..found]);
        let tokens = found as u64 * size;
        self.counters.queries += prompt.tokens();
        self.counters.hits += tokens;
        tokens
    }

    /// Keeps the blocks of a sequence. If the sequence is longer than the cache's capacity, only its first
    /// blocks are kept.
    pub(super) fn keep(&mut self, sequence: &Chain) {
        let blocks = &sequence.blocks()[..sequence.blocks().len().min(self.capacity)];
        // First, the blocks of the sequence that are already kept are marked as used now, so that none of them
        // is evicted to make room for another one.
        self.touch(blocks);
        for block in blocks {
            if !self.places.contains_key(block) {
                self.add(*block);
            }
        }
        self.touch(blocks);
    }

    /// Removes all blocks. The counters are not reset.
    pub(super) fn reset(&mut self) {
        self.places.clear();
        self.kept.clear();
        (self.newest, self.oldest) = (NONE, NONE);
    }

    /// Marks the blocks at the beginning of a sequence as used now, if they are kept.
    fn touch(&mut self, blocks: &[Block]) {
        for block in blocks.iter().rev() {
            if let Some(&place) = self.places.get(block) {
                self.unlink(place);
                self.link(place);
            }
        }
    }

    fn add(&mut self, block: Block) {
        let new = Kept { block, newer: NONE, older: NONE };
        let place = if self.places.len() == self.capacity {
            let place = self.oldest;
            self.unlink(place);
            let old = std::mem::replace(&mut self.kept[place as usize], new);
            self.places.remove(&old.block);
            self.counters.evictions += 1;
            place
        } else {
            self.kept.push(new);
            self.kept.len() as u32 - 1
        };
        self.places.insert(block, place);
        self.link(place);
    }

    fn unlink(&mut self, place: u32) {
        let Kept { newer, older, .. } = self.kept[place as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.kept[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.kept[older as usize].newer = newer,
        }
    }

    fn link(&mut self, place: u32) {
        let older = std::mem::replace(&mut self.newest, place);
        self.kept[place as usize].newer = NONE;
        self.kept[place as usize].older = older;
        match older {
            NONE => self.oldest = place,
            older => self.kept[older as usize].newer = place,
        }
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
