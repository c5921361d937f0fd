//! Compares the cache with a naive implementation that stores whole texts and examines all of them
//! each time.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::mock::chain::Kind;

/// The naive cache: the texts of full blocks, each with the step of its last use.
struct Naive {
    size: usize,
    capacity: usize,
    texts: BTreeMap<Vec<u8>, usize>,
    step: usize,
    evictions: u64,
}

impl Naive {
    /// Returns, for each full block, the text from the beginning of `tokens` to the end of the block.
    fn blocks(&self, tokens: &[u8]) -> Vec<Vec<u8>> {
        (1..=tokens.len() / self.size).map(|count| tokens[..count * self.size].to_vec()).collect()
    }

    fn look_up(&mut self, tokens: &[u8]) -> usize {
        self.step += 1;
        let mut found = 0;
        for block in self.blocks(tokens) {
            if block.len() >= tokens.len() || !self.texts.contains_key(&block) {
                break;
            }
            found = block.len();
            self.texts.insert(block, self.step);
        }
        found
    }

    fn keep(&mut self, tokens: &[u8]) {
        self.step += 1;
        let blocks: Vec<_> = self.blocks(tokens).into_iter().take(self.capacity).collect();
        for block in &blocks {
            if let Some(used) = self.texts.get_mut(block) {
                *used = self.step;
            }
        }
        for block in blocks {
            if self.texts.len() == self.capacity && !self.texts.contains_key(&block) {
                self.evict();
            }
            self.texts.insert(block, self.step);
        }
    }

    /// Evicts the least recently used block among those that no other kept block follows.
    fn evict(&mut self) {
        let followed =
            |text: &Vec<u8>| self.texts.keys().any(|other| other.len() > text.len() && other.starts_with(text));
        let leaves = self.texts.iter().filter(|(text, _)| !followed(text));
        let (leaf, _) = leaves.min_by_key(|(_, used)| **used).unwrap();
        let leaf = leaf.clone();
        self.texts.remove(&leaf);
        self.evictions += 1;
    }
}

fn chain(size: usize, tokens: &[u8]) -> Chain {
    let mut chain = Chain::new(size as u32, "m");
    tokens.iter().for_each(|token| chain.push(Kind::Word, &token.to_string()));
    chain
}

#[derive(Debug, Clone)]
enum Step {
    LookUp(Vec<u8>),
    Keep(Vec<u8>),
    Reset,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let tokens = || proptest::collection::vec(0u8..2, 0..20);
    let step = prop_oneof![
        10 => tokens().prop_map(Step::LookUp),
        10 => tokens().prop_map(Step::Keep),
        1 => Just(Step::Reset),
    ];
    proptest::collection::vec(step, 0..60)
}

proptest! {
    #[test]
    fn it_does_what_the_naive_one_does(size in 1usize..4, capacity in 1usize..12, steps in steps()) {
        let mut cache = Cache::new((capacity * size + size - 1) as u32, size as u32);
        let mut naive = Naive { size, capacity, texts: BTreeMap::new(), step: 0, evictions: 0 };
        let (mut queries, mut hits) = (0, 0);
        for step in steps {
            match step {
                Step::LookUp(tokens) => {
                    let found = naive.look_up(&tokens);
                    prop_assert_eq!(cache.look_up(&chain(size, &tokens)), found as u64);
                    queries += tokens.len() as u64;
                    hits += found as u64;
                }
                Step::Keep(tokens) => {
                    naive.keep(&tokens);
                    cache.keep(&chain(size, &tokens));
                }
                Step::Reset => {
                    naive.texts.clear();
                    cache.reset();
                }
            }
            prop_assert!(cache.len() <= capacity && cache.kept.len() <= capacity);
            prop_assert_eq!(cache.counters(), Counters { queries, hits, evictions: naive.evictions });
            let mut kept: Vec<Block> = cache.places.keys().copied().collect();
            let texts = naive.texts.keys();
            let mut expected: Vec<Block> = texts.map(|text| *chain(size, text).blocks().last().unwrap()).collect();
            kept.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(kept, expected);
        }
    }
}

#[test]
fn the_last_token_is_always_computed() {
    let mut cache = Cache::new(100, 4);
    assert_eq!(cache.capacity(), 25);
    cache.keep(&chain(4, &[1; 12]));
    assert_eq!(cache.len(), 3);
    for (tokens, found) in [(0, 0), (4, 0), (5, 4), (8, 4), (11, 8), (12, 8), (13, 12), (40, 12)] {
        assert_eq!(cache.look_up(&chain(4, &vec![1; tokens])), found, "{tokens}");
    }
}

#[test]
fn the_tail_of_what_was_not_used_for_longest_goes_first() {
    let mut cache = Cache::new(6, 1);
    cache.keep(&chain(1, &[1, 2, 3]));
    cache.keep(&chain(1, &[4, 5, 6]));
    assert_eq!(cache.look_up(&chain(1, &[1, 2, 9])), 2);
    // The cache is full. Keeping 7 evicts 3, and keeping the next two blocks evicts 6 and 5.
    cache.keep(&chain(1, &[7]));
    cache.keep(&chain(1, &[8, 8]));
    assert_eq!(cache.look_up(&chain(1, &[1, 2, 3, 0])), 2);
    assert_eq!(cache.look_up(&chain(1, &[4, 5, 6, 0])), 1);
    assert_eq!(cache.counters().evictions, 3);
    // The sequence is longer than the cache, so its front is kept.
    cache.keep(&chain(1, &[3; 9]));
    assert_eq!((cache.len(), cache.look_up(&chain(1, &[3; 9]))), (6, 6));
}
