//! Determines the text that prompts share according to a profile: the category of each request, its group,
//! and how much text it shares.
//!
//! The requests of the categories are evenly mixed. Among the first n requests, each category has its share
//! of n, to within one request for each category before it. A short run therefore shares as much as a long
//! one. A category has at most [`BESIDE`] concurrent groups. When all requests of a group have been sent,
//! another group takes its place. Everything is computed from the number of a request; nothing is drawn at
//! random, and nothing depends on earlier requests.

use crate::plan::model::lengths::{Joint, Lengths, Rows};
use crate::plan::model::profiled::{Sharing, TurnCount, coupled};

use super::lengths::{Sampler, Table};
use super::prompt::Lengths as Drawn;
use super::prose::Dice;

/// Maximum number of concurrent groups of a category, whose requests alternate.
const BESIDE: u64 = 8;

/// The categories of a run's requests. An item is a request or a conversation.
#[derive(Debug, Clone)]
pub(super) struct Categories {
    rows: Rows<Sharing>,
    /// For each category, its share of the requests that do not belong to the previous categories.
    shares: Vec<f64>,
    /// For each category, the sampler of the lengths of first prompts, if the lengths are a joint table;
    /// otherwise empty.
    samplers: Vec<Sampler>,
}

/// An item's membership in a group with a common beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    /// The category of the item.
    pub category: usize,
    /// The group of the item, with a number that is unique among all categories.
    pub group: u32,
}

impl Categories {
    /// Creates the categories of `rows`; if `lengths` is a joint table, the lengths within each category
    /// are drawn with `key`.
    pub(super) fn new(rows: &Rows<Sharing>, lengths: Option<&Lengths>, key: [u8; 32]) -> Categories {
        let mut left: f64 = rows.rows().iter().map(|row| row.requests as f64).sum();
        let share = |row: &Sharing| {
            let share = row.requests as f64 / left;
            left -= row.requests as f64;
            share
        };
        let shares = rows.rows().iter().map(share).collect();
        let of_each = |joint: &Rows<Joint>| coupled(rows, joint).into_iter().map(Lengths::Joint).collect();
        let of_each: Vec<Lengths> = match lengths {
            Some(Lengths::Joint(joint)) => of_each(joint),
            _ => Vec::new(),
        };
        let samplers = of_each.iter().map(|lengths| Sampler::new(lengths, key)).collect();
        Categories { rows: rows.clone(), shares, samplers }
    }

    /// Returns the category and group of `item`.
    pub(super) fn member(&self, item: u64) -> Member {
        let (category, number) = self.category(item);
        let Sharing { requests, groups, .. } = self.rows.rows()[category];
        let size = requests as f64 / groups as f64;
        let lanes = BESIDE.min(groups).max(1);
        let (lane, number) = (number % lanes, number / lanes);
        // The requests of group g of a lane begin with number ⌈g × size⌉.
        let group = (number as f64 / size) as u64;
        let group = if first_of(group + 1, size) <= number { group + 1 } else { group };
        let name = (group * lanes + lane) * self.rows.rows().len() as u64 + category as u64;
        // A run would take years to have more groups than a u32 can number.
        Member { category, group: name as u32 }
    }

    /// Returns the category of `item`, and the number of earlier items in that category.
    fn category(&self, item: u64) -> (usize, u64) {
        let mut number = item;
        for (category, share) in self.shares.iter().enumerate() {
            let before = (number as f64 * share) as u64;
            let with = ((number + 1) as f64 * share) as u64;
            if with > before || category + 1 == self.shares.len() {
                return (category, before.min(number));
            }
            number -= before;
        }
        (0, item)
    }

    /// Returns the number of leading tokens that `item` shares with its group, if its prompt has
    /// `prompt` tokens.
    pub(super) fn tokens(&self, item: u64, prompt: u32) -> u32 {
        self.rows.rows()[self.member(item).category].shared_of(prompt)
    }

    /// Returns the length of the longest text that a group in this category shares, in tokens.
    pub(super) fn most_tokens(&self, category: usize) -> u32 {
        self.rows.rows()[category].shared_of(u32::MAX)
    }

    /// Returns the lengths of `item`'s first request, including the shared text; `None` if they do not
    /// depend on the category.
    pub(super) fn lengths(&self, item: u64) -> Option<Drawn> {
        Some(self.samplers.get(self.member(item).category)?.draw(item, 0))
    }
}

/// Returns the number of the first request of group `group` within its lane.
fn first_of(group: u64, size: f64) -> u64 {
    (group as f64 * size).ceil() as u64
}

/// Draws the number of turns of each conversation of a run.
#[derive(Debug, Clone)]
pub(super) struct TurnCounts {
    table: Table<TurnCount>,
    key: [u8; 32],
}

impl TurnCounts {
    pub(super) fn new(rows: &Rows<TurnCount>, key: [u8; 32]) -> TurnCounts {
        TurnCounts { table: Table::new(rows, rows.rows().to_vec()), key }
    }

    /// Returns the number of turns of conversation `item`, which depends only on key and item.
    pub(super) fn at(&self, item: u64) -> u32 {
        let mut dice = Dice::new(&self.key, item, 0);
        let (row, inside) = self.table.at(dice.unit());
        row.at(inside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn categories(rows: &[(u64, u64, u32)]) -> Categories {
        let row = |(requests, groups, tokens): &(u64, u64, u32)| Sharing {
            requests: *requests,
            groups: *groups,
            tokens: *tokens,
        };
        Categories::new(&Rows::new(rows.iter().map(row)), None, [7; 32])
    }

    #[test]
    fn categories_have_their_share_of_every_beginning() {
        let rows = [(500, 500, 0), (300, 100, 600), (173, 20, 900), (27, 1, 2000)];
        let categories = categories(&rows);
        let mut counts = [0u64; 4];
        for item in 0..5_000u64 {
            let (category, before) = categories.category(item);
            assert_eq!(before, counts[category], "{item}");
            counts[category] += 1;
            for (count, row) in counts.iter().zip(rows) {
                let share = (item + 1) as f64 * row.0 as f64 / 1000.0;
                assert!((*count as f64 - share).abs() <= 4.0, "{counts:?} after {item}");
            }
        }
    }

    #[test]
    fn groups_have_their_size() {
        for (requests, groups) in [(300u64, 100u64), (173, 20), (27, 1), (1000, 1000), (7, 5)] {
            let categories = categories(&[(requests, groups, 600), (100, 100, 0)]);
            let mut sizes: HashMap<u32, u64> = HashMap::new();
            let (mut all, mut new) = (0.0, 0.0);
            for item in 0..20_000 {
                let member = categories.member(item);
                let size = sizes.entry(member.group).or_default();
                *size += 1;
                if member.category == 0 {
                    all += 1.0;
                    new += f64::from(u8::from(*size == 1));
                }
                let mean = requests as f64 / groups as f64;
                assert!(member.category == 1 || *size as f64 <= mean.ceil(), "{member:?} has {size}");
            }
            let wanted = groups as f64 / requests as f64;
            // The tolerance allows for groups in progress, which are counted like complete ones.
            let error = BESIDE as f64 / all;
            assert!((new / all - wanted).abs() <= error, "{} for {wanted}", new / all);
        }
    }
}
