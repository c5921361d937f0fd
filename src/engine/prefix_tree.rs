//! Stores the prompts that the server has received, as a tree of their beginnings. It determines how much of
//! each prompt an unlimited prefix cache could serve, that is, the beginning that the prompt shares with an
//! earlier one.
//!
//! Prompts arrive as chunks ([`Trail`]), in the order in which their requests start. A prompt counts as
//! sent as soon as its request starts, whatever phase the request belongs to, however it ends, and even
//! while it is in flight. Two requests that start together are therefore counted as sharing text, although
//! a server that has not finished the first prompt computes both.
//!
//! A path without a fork is one edge. Edges are stored in pages, which are never moved, and a sharded table
//! finds the forks, so only a part of this table is moved when it grows. When the size limit is reached, no
//! further prompts are stored, and the result is unknown for a prompt that may share text with a prompt
//! that was not stored.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::workload::Trail;

/// Size limit of a run's tree, in bytes. This is enough for prompts with a few hundred megabytes of
/// distinct text.
pub(crate) const MOST_BYTES: usize = 64 << 20;
/// Environment variable with a different limit, for tests; only read in builds with debug assertions.
const BOUND_VARIABLE: &str = "SWEEPLINE_PREFIX_TREE_BYTES";

/// Number of items in a page (chunks or nodes), as a power of two.
const PAGE_BITS: u32 = 12;
/// Number of parts of the table of forks. Each part grows separately, so that growing takes little extra
/// memory.
const SHARDS: usize = 64;
/// Bytes per entry of a hash table: the entry itself and one byte for its state. At most 7 of 8 places of a
/// table are used.
const ENTRY_BYTES: usize = (size_of::<((u32, u32), u32)>() + 1) * 8 / 7;

/// A node of the tree, at which prompts diverge or end, with the edge that leads to it.
#[derive(Debug, Clone, Copy)]
struct Node {
    /// The position of the edge's first chunk among all stored chunks.
    from: u32,
    length: u32,
}

/// The number of the root node, to which no edge leads.
const ROOT: u32 = 0;

/// A growing list of items, stored in pages that are never moved.
#[derive(Debug)]
struct Pages<T> {
    pages: Vec<Vec<T>>,
}

/// The beginnings of all sent prompts.
#[derive(Debug)]
pub(crate) struct PrefixTree {
    chunks: Pages<u32>,
    nodes: Pages<Node>,
    /// Finds the child of a node by the node's number and the first chunk of the child's edge.
    forks: Vec<HashMap<(u32, u32), u32>>,
    /// Size of the tables of forks, in bytes.
    fork_bytes: usize,
    most_bytes: usize,
    /// Whether the size limit was reached, so that a prompt was not stored completely.
    is_full: bool,
    /// Whether other processes send prompts that are not stored here.
    has_others: bool,
}

impl<T: Copy> Pages<T> {
    fn new() -> Pages<T> {
        Pages { pages: Vec::new() }
    }

    fn len(&self) -> u32 {
        let full = self.pages.len().saturating_sub(1) << PAGE_BITS;
        (full + self.pages.last().map_or(0, Vec::len)) as u32
    }

    fn get(&self, at: u32) -> T {
        self.pages[(at >> PAGE_BITS) as usize][(at & ((1 << PAGE_BITS) - 1)) as usize]
    }

    fn set(&mut self, at: u32, value: T) {
        self.pages[(at >> PAGE_BITS) as usize][(at & ((1 << PAGE_BITS) - 1)) as usize] = value;
    }

    fn push(&mut self, value: T) {
        if self.pages.last().is_none_or(|page| page.len() == 1 << PAGE_BITS) {
            self.pages.push(Vec::with_capacity(1 << PAGE_BITS));
        }
        if let Some(page) = self.pages.last_mut() {
            page.push(value);
        }
    }

    /// Returns the size of all pages after `more` items are added, in bytes.
    fn bytes_with(&self, more: usize) -> usize {
        (self.len() as usize + more).div_ceil(1 << PAGE_BITS) * ((1 << PAGE_BITS) * size_of::<T>())
    }
}

impl PrefixTree {
    /// Creates an empty tree for one run.
    pub(crate) fn new() -> PrefixTree {
        static BOUND: LazyLock<usize> = LazyLock::new(|| {
            let other = std::env::var(BOUND_VARIABLE).ok().filter(|_| cfg!(debug_assertions));
            other.and_then(|bytes| bytes.parse().ok()).unwrap_or(MOST_BYTES)
        });
        PrefixTree::within(*BOUND)
    }

    fn within(most_bytes: usize) -> PrefixTree {
        let mut nodes = Pages::new();
        nodes.push(Node { from: 0, length: 0 });
        let forks = vec![HashMap::new(); SHARDS];
        PrefixTree { chunks: Pages::new(), nodes, forks, fork_bytes: 0, most_bytes, is_full: false, has_others: false }
    }

    /// Makes the tree return a result only for prompts that this process has sent in full before, because
    /// other processes may have sent any other text.
    pub(crate) fn beside_others(self) -> PrefixTree {
        PrefixTree { has_others: true, ..self }
    }

    /// Stores a prompt. Returns how many leading tokens it shares with an earlier prompt; `None` if it may
    /// share more with prompts that were not stored.
    pub(crate) fn send(&mut self, trail: &Trail) -> Option<u32> {
        let was_full = self.is_full || self.has_others;
        let known = self.take(trail.chunks());
        let is_certain = !was_full || known == trail.chunks().len();
        is_certain.then(|| trail.tokens(known))
    }

    /// Returns how many leading chunks of a prompt are stored already, and stores the others.
    fn take(&mut self, chunks: &[u32]) -> usize {
        let (mut node, mut at) = (ROOT, 0);
        while let Some(chunk) = chunks.get(at) {
            let Some(child) = self.fork(node, *chunk) else {
                self.grow(node, None, &chunks[at..]);
                break;
            };
            let Node { from, length } = self.nodes.get(child);
            let common = (0..length).zip(&chunks[at..]).take_while(|(of, chunk)| self.chunks.get(from + of) == **chunk);
            let common = common.count() as u32;
            at += common as usize;
            if common < length {
                if at < chunks.len() {
                    self.grow(node, Some((child, common)), &chunks[at..]);
                }
                break;
            }
            node = child;
        }
        at
    }

    /// Appends an edge of `chunks` to `node`. If `split` contains a child and a length, the child's edge is
    /// split after that many chunks, and the new edge is appended there.
    fn grow(&mut self, node: u32, split: Option<(u32, u32)>, chunks: &[u32]) {
        let Ok(length) = u32::try_from(chunks.len()) else { return };
        // When a table grows, it doubles its size, and its old and new memory exist at the same time.
        let tables = self.fork_bytes + 6 * (self.fork_bytes / SHARDS + ENTRY_BYTES);
        let bytes = self.chunks.bytes_with(chunks.len()) + self.nodes.bytes_with(2) + tables;
        if self.is_full || bytes > self.most_bytes {
            self.is_full = true;
            return;
        }
        let parent = match split {
            None => node,
            Some((child, upper)) => {
                let Node { from, length } = self.nodes.get(child);
                let middle = self.nodes.len();
                self.nodes.push(Node { from, length: upper });
                self.nodes.set(child, Node { from: from + upper, length: length - upper });
                self.link(node, self.chunks.get(from), middle);
                self.link(middle, self.chunks.get(from + upper), child);
                middle
            }
        };
        let leaf = self.nodes.len();
        self.nodes.push(Node { from: self.chunks.len(), length });
        chunks.iter().for_each(|chunk| self.chunks.push(*chunk));
        self.link(parent, chunks[0], leaf);
    }

    fn fork(&self, node: u32, chunk: u32) -> Option<u32> {
        self.forks[shard(node, chunk)].get(&(node, chunk)).copied()
    }

    fn link(&mut self, node: u32, chunk: u32, child: u32) {
        let forks = &mut self.forks[shard(node, chunk)];
        let before = forks.capacity();
        forks.insert((node, chunk), child);
        self.fork_bytes += (forks.capacity() - before) * ENTRY_BYTES;
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.chunks.bytes_with(0) + self.nodes.bytes_with(0) + self.fork_bytes
    }
}

fn shard(node: u32, chunk: u32) -> usize {
    (node.wrapping_mul(0x9e37_79b1) ^ chunk.wrapping_mul(0x85eb_ca6b)) as usize >> 7 & (SHARDS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Role;
    use proptest::prelude::*;

    #[test]
    fn beyond_the_bound_nothing_is_claimed_that_is_not_known() {
        let mut tree = PrefixTree::within(200_000);
        let prompt = |k: u32| (0..40).map(|at| if at < 20 { 7 + at } else { k * 100 + at }).collect::<Vec<_>>();
        let kept = (0..).take_while(|k| {
            tree.take(&prompt(*k));
            !tree.is_full
        });
        let kept = kept.count() as u32;
        assert!(kept > 100, "{kept} prompts");
        assert!(tree.bytes() <= 200_000, "{} bytes", tree.bytes());
        for k in 0..1_000_000 {
            tree.take(&prompt(kept + k));
        }
        assert!(tree.bytes() <= 200_000, "{} bytes after a million prompts", tree.bytes());
        assert_eq!(tree.take(&prompt(kept - 1)), 40, "kept prompts are found");
        assert_eq!(tree.take(&prompt(kept + 3)), 20, "of the others only the common start");
    }

    #[test]
    fn the_bound_holds_for_what_a_run_may_have() {
        // All prompts are distinct: short questions, for which tables and nodes take much of the memory, and
        // long prompts.
        for (bytes, least) in [(200, 80_000_000), (10_000, 350_000_000)] {
            let mut trail = Trail::new(0);
            trail.say(Role::User, &"x".repeat(bytes), 1);
            let mut tree = PrefixTree::within(MOST_BYTES);
            let mut prompts = 0u32;
            while !tree.is_full {
                let first = [7, 7, prompts.wrapping_mul(0x9e37_79b1)];
                let chunks: Vec<u32> = first.into_iter().chain(trail.chunks().iter().skip(3).copied()).collect();
                tree.take(&chunks);
                prompts += 1;
            }
            assert!(tree.bytes() <= MOST_BYTES, "{} bytes for {prompts} prompts", tree.bytes());
            let text = prompts as usize * bytes;
            assert!(text > least, "{prompts} prompts of {bytes} bytes");
            println!("{prompts} prompts of {bytes} bytes: {} bytes of {}", tree.bytes(), trail.chunks().len());
        }
    }

    proptest! {
        #[test]
        fn the_tree_says_what_comparing_all_prompts_says(prompts in proptest::collection::vec(proptest::collection::vec(0u32..3, 0..12), 0..60)) {
            let mut tree = PrefixTree::within(MOST_BYTES);
            for (at, prompt) in prompts.iter().enumerate() {
                let common = |other: &Vec<u32>| other.iter().zip(prompt).take_while(|(a, b)| a == b).count();
                let longest = prompts[..at].iter().map(common).max().unwrap_or(0);
                prop_assert_eq!(tree.take(prompt), longest, "{:?}", &prompts[..=at]);
            }
        }

        #[test]
        fn a_small_tree_claims_no_more_than_is_true(prompts in proptest::collection::vec(proptest::collection::vec(0u32..3, 0..12), 0..60), keep in 0usize..60) {
            let mut tree = PrefixTree::within(MOST_BYTES);
            for (at, prompt) in prompts.iter().enumerate() {
                tree.is_full |= at >= keep;
                let common = |other: &Vec<u32>| other.iter().zip(prompt).take_while(|(a, b)| a == b).count();
                let longest = prompts[..at].iter().map(common).max().unwrap_or(0);
                let found = tree.take(prompt);
                prop_assert!(found <= longest);
                prop_assert!(at > keep || found == longest);
            }
        }
    }
}
