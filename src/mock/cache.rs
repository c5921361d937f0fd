//! The prefix cache: which blocks of tokens are kept, and which are evicted first.
//!
//! As in vLLM's automatic prefix caching: only full blocks, found from the front, and the least recently
//! used block is evicted first, within one sequence the last. Unlike there, blocks of running requests do
//! not count towards the capacity: it limits what is kept for later ones.

use std::collections::HashMap;

use super::chain::{Block, Chain};

/// No neighbour.
const NONE: u32 = u32::MAX;

/// The cache's activity since the server's start.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counters {
    /// Tokens that were looked up.
    pub(super) queries: u64,
    /// Those of them that were found.
    pub(super) hits: u64,
    /// Evicted blocks.
    pub(super) evictions: u64,
}

/// A kept block and its neighbors in the order of use, as places.
#[derive(Debug)]
struct Kept {
    block: Block,
    newer: u32,
    older: u32,
}

/// The kept blocks, in the order of their last use.
///
/// Using a block also uses all blocks before it, slightly earlier the further in front a block is. So no
/// block is used later than the one it follows, and the least recently used block is always the last of its
/// sequence: nothing is kept that cannot be found.
#[derive(Debug)]
pub(super) struct Cache {
    /// Tokens of a block.
    size: u32,
    /// Maximum number of kept blocks.
    capacity: usize,
    places: HashMap<Block, u32>,
    /// By place; as long as the largest number that was ever kept.
    kept: Vec<Kept>,
    newest: u32,
    oldest: u32,
    counters: Counters,
}

impl Cache {
    /// Creates an empty cache for `tokens` tokens in blocks of `size`, each at least 1; a remainder smaller
    /// than a block is unused.
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

    /// Returns its activity so far.
    pub(super) fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns how many leading tokens of a prompt need not be computed. The last token must always be
    /// computed, because the next one is predicted from it.
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

    /// Keeps the blocks of a sequence; of one that is longer than the cache, the front.
    pub(super) fn keep(&mut self, sequence: &Chain) {
        let blocks = &sequence.blocks()[..sequence.blocks().len().min(self.capacity)];
        // Its own blocks come to the front first, so that none of them is evicted for another.
        self.touch(blocks);
        for block in blocks {
            if !self.places.contains_key(block) {
                self.add(*block);
            }
        }
        self.touch(blocks);
    }

    /// Forgets all blocks; the counters continue.
    pub(super) fn reset(&mut self) {
        self.places.clear();
        self.kept.clear();
        (self.newest, self.oldest) = (NONE, NONE);
    }

    /// Counts these leading blocks of a sequence as used now, as far as they are kept.
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
