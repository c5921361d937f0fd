//! Assigns requests to groups that begin with the same text.

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::sync::Arc;

use crate::plan::{Prefix, PrefixOrder};

use super::prose::Dice;

/// Maximum size of the cached shared texts, in bytes. Texts that were removed because of this limit are
/// written again when needed.
const KEPT_BYTES: usize = 64 << 20;

/// The groups of a run, each with a shared text, to which items are assigned. An item is a request or a
/// conversation.
#[derive(Debug, Clone)]
pub(super) struct Groups {
    prefix: Prefix,
    key: [u8; 32],
    /// Cumulative weights of the groups, for orders in which groups have unequal shares; otherwise empty.
    cumulative: Vec<f64>,
}

/// The text with which an item begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// The text of a group, which its items share.
    Shared {
        /// The index of the group, counted from 0.
        group: u32,
    },
    /// The item's own text.
    Own,
}

impl Groups {
    /// Creates the groups that `prefix` declares; items are assigned to them with `key`.
    pub(super) fn new(prefix: Prefix, key: [u8; 32]) -> Groups {
        let mut sum = 0.0;
        let zipf = (1..=prefix.groups).map(|rank| {
            sum += 1.0 / f64::from(rank);
            sum
        });
        let cumulative = if prefix.order == PrefixOrder::Zipf { zipf.collect() } else { Vec::new() };
        Groups { prefix, key, cumulative }
    }

    /// Returns the number of tokens of each shared text.
    pub(super) fn tokens(&self) -> u32 {
        self.prefix.tokens
    }

    /// Returns the text with which `item` begins.
    pub(super) fn opening(&self, item: u64) -> Opening {
        self.group(item).map_or(Opening::Own, |group| Opening::Shared { group })
    }

    /// Whether a text is assumed to have left the server's cache when it is repeated.
    pub(super) fn are_tiles(&self) -> bool {
        self.prefix.order == PrefixOrder::Tile
    }

    /// Returns the group of `item`; `None` if it has none. The result depends only on key and item.
    fn group(&self, item: u64) -> Option<u32> {
        let mut dice = Dice::new(&self.key, item, 0);
        if dice.unit() >= self.prefix.share.to_f64() {
            return None;
        }
        let groups = self.prefix.groups;
        Some(match self.prefix.order {
            PrefixOrder::Uniform => ((dice.unit() * f64::from(groups)) as u32).min(groups - 1),
            PrefixOrder::Zipf => {
                let at = dice.unit() * self.cumulative.last().copied().unwrap_or_default();
                (self.cumulative.partition_point(|sum| *sum <= at) as u32).min(groups - 1)
            }
            PrefixOrder::Cycle | PrefixOrder::Tile => (item % u64::from(groups)) as u32,
        })
    }
}

/// A size-limited cache of the groups' texts.
#[derive(Debug, Clone, Default)]
pub(super) struct Texts {
    texts: HashMap<u32, (Arc<str>, u32)>,
    oldest_first: VecDeque<u32>,
    bytes: usize,
}

impl Texts {
    /// Returns the text of `group` and its number of tokens. If the text is not cached, `write` creates it.
    pub(super) fn get(&mut self, group: u32, write: impl FnOnce() -> (String, u32)) -> (Arc<str>, u32) {
        if let Entry::Occupied(entry) = self.texts.entry(group) {
            return entry.get().clone();
        }
        let (text, tokens) = write();
        let made = (Arc::<str>::from(text), tokens);
        self.bytes += made.0.len();
        self.texts.insert(group, made.clone());
        self.oldest_first.push_back(group);
        while self.bytes > KEPT_BYTES && self.oldest_first.len() > 1 {
            let gone = self.oldest_first.pop_front().and_then(|oldest| self.texts.remove(&oldest));
            self.bytes -= gone.map_or(0, |(text, _)| text.len());
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Share;

    fn groups(share: i64, groups: u32, order: PrefixOrder) -> Groups {
        Groups::new(Prefix { share: Share::percent(share), tokens: 64, groups, order }, [7; 32])
    }

    fn counts(groups: &Groups, items: u64) -> Vec<usize> {
        let mut counts = vec![0; groups.prefix.groups as usize];
        (0..items).filter_map(|item| groups.group(item)).for_each(|group| counts[group as usize] += 1);
        counts
    }

    #[test]
    fn shares_are_as_declared() {
        // The counts are within four standard deviations of a binomial count.
        for share in [0, 25, 60, 100] {
            let n = 20_000;
            let shared: usize = counts(&groups(share, 8, PrefixOrder::Uniform), n).iter().sum();
            let p = share as f64 / 100.0;
            let error = (shared as f64 - p * n as f64).abs();
            assert!(error <= 4.0 * (n as f64 * p * (1.0 - p)).sqrt(), "{shared} of {n} for {share} %");
        }
    }

    #[test]
    fn orders_spread_as_they_say() {
        let n = 40_000.0;
        for (order, weight) in [(PrefixOrder::Uniform, (|_| 1.0) as fn(f64) -> f64), (PrefixOrder::Zipf, |k| 1.0 / k)] {
            let sum: f64 = (1..=8).map(|k| weight(f64::from(k))).sum();
            for (k, count) in (1..).zip(counts(&groups(100, 8, order), n as u64)) {
                let p = weight(f64::from(k)) / sum;
                let error = (count as f64 - n * p).abs();
                assert!(error <= 4.0 * (n * p * (1.0 - p)).sqrt(), "{order:?}, group {k}: {count}");
            }
        }
        let cycle = groups(100, 3, PrefixOrder::Cycle);
        assert_eq!((0..7).map(|item| cycle.group(item).unwrap()).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn texts_stay_within_their_bytes() {
        let mut texts = Texts::default();
        let big = || ("x".repeat(KEPT_BYTES / 3), 1);
        (0..10).for_each(|group| drop(texts.get(group, big)));
        assert!(texts.bytes <= KEPT_BYTES && texts.texts.len() == 3, "{} bytes", texts.bytes);
        let written = std::cell::Cell::new(false);
        texts.get(9, || {
            written.set(true);
            big()
        });
        assert!(!written.get(), "the newest is still cached");
    }
}
