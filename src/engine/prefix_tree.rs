//! The prompts that the server has received, as a tree of their beginnings. An unlimited prefix cache over
//! the run could serve the part that a prompt has in common with an earlier one.
//!
//! Prompts come as chunks ([`Trail`]), in the order in which their requests start. A prompt counts as sent
//! as soon as its request starts, whatever phase the request belongs to, however it ends, and even while it
//! is in flight. Two requests that start together therefore share text by this count, although a server
//! that has not finished the first prompt computes both.
//!
//! A path without a fork is one edge. Edges are stored in pages, and forks are found by a table. Only
//! parts of the table are ever moved. When the size limit is reached, no further prompts are kept, and no
//! claims are made about prompts that were not kept.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::workload::Trail;

/// Size limit of a run's tree in bytes, enough for prompts with some hundred megabytes of distinct
/// text.
pub(crate) const MOST_BYTES: usize = 64 << 20;
/// A different limit for tests, in builds with debug assertions.
const BOUND_VARIABLE: &str = "SWEEPLINE_PREFIX_TREE_BYTES";

/// Chunks in a page of edges, and nodes in a page of nodes, as a power of two.
const PAGE_BITS: u32 = 12;
/// Parts of the table of forks. Each part grows separately, so that growing takes little memory.
const SHARDS: usize = 64;
/// Bytes per entry of a table: the entry and one byte for its state, with at most 7 of 8 places used.
const ENTRY_BYTES: usize = (size_of::<((u32, u32), u32)>() + 1) * 8 / 7;

/// The end of an edge, where prompts diverge or end.
#[derive(Debug, Clone, Copy)]
struct Node {
    /// The position of the node's edge among the chunks.
    from: u32,
    length: u32,
}

/// The root, which has no edge.
const ROOT: u32 = 0;

/// Items by number, in pages that are never moved.
#[derive(Debug)]
struct Pages<T> {
    pages: Vec<Vec<T>>,
}

/// The beginnings of all sent prompts.
#[derive(Debug)]
pub(crate) struct PrefixTree {
    chunks: Pages<u32>,
    nodes: Pages<Node>,
    /// The child of a node whose edge begins with a given chunk.
    forks: Vec<HashMap<(u32, u32), u32>>,
    /// Size of the tables of forks in bytes.
    fork_bytes: usize,
    most_bytes: usize,
    /// Whether a prompt was not kept completely.
    is_full: bool,
    /// Whether other processes also send prompts that are not kept here.
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

    /// Returns the size of the items in bytes if `more` of them are added.
    fn bytes_with(&self, more: usize) -> usize {
        (self.len() as usize + more).div_ceil(1 << PAGE_BITS) * ((1 << PAGE_BITS) * size_of::<T>())
    }
}

impl PrefixTree {
    /// Creates a tree for one run.
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

    /// Stops making claims about text that other processes may have sent: only prompts that were fully
    /// seen here are certain.
    pub(crate) fn beside_others(self) -> PrefixTree {
        PrefixTree { has_others: true, ..self }
    }

    /// Returns how many leading tokens a prompt shares with an earlier one, and keeps the prompt; `None` if
    /// prompts that were not kept may have shared more.
    pub(crate) fn send(&mut self, trail: &Trail) -> Option<u32> {
        let was_full = self.is_full || self.has_others;
        let known = self.take(trail.chunks());
        let is_certain = !was_full || known == trail.chunks().len();
        is_certain.then(|| trail.tokens(known))
    }

    /// Returns how many leading chunks an earlier prompt shares; the others are kept.
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

    /// Appends an edge of `chunks` to `node`; if `split` is a child and a length, it is appended
    /// after that length of the child's edge.
    fn grow(&mut self, node: u32, split: Option<(u32, u32)>, chunks: &[u32]) {
        let Ok(length) = u32::try_from(chunks.len()) else { return };
        // A growing table doubles its size, and exists twice while it grows.
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
        // Short questions, for which tables and nodes take much of the memory, and long prompts.
        // All of them are distinct.
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
