//! The text that prompts of a profile share at their beginnings.
//!
//! Requests are divided into categories by the number of other requests with the same beginning. A
//! prompt cannot share more tokens than it has, so categories that share more tokens get the longer
//! prompts. The numbers of shared tokens are scaled so that the share of all prompt tokens that an
//! unlimited cache could reuse equals the share in the profile.

use serde::{Deserialize, Serialize};

use crate::dataset::profile::Prefixes;
use crate::plan::model::lengths::resolved::{Joint, Range, Row, Rows};
use crate::plan::model::lengths::{LEAST_PROMPT, MOST_TOKENS};
use crate::units::Decimal;

/// A category of requests whose groups are of similar size. Each group has its own shared beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sharing {
    /// Number of requests in this category, which is also its weight.
    pub requests: u64,
    /// Number of groups that these requests form. There are at most as many groups as requests, because
    /// each group has at least one request.
    pub groups: u64,
    /// Number of tokens that the requests of a group share at their beginnings, if their prompts are long
    /// enough.
    pub tokens: u32,
}

impl Row for Sharing {
    fn weight(&self) -> Decimal {
        Decimal::new(i64::try_from(self.requests).unwrap_or(i64::MAX), 0)
    }
    fn canonical(&self) -> String {
        format!("{} {} {}", self.requests, self.groups, self.tokens)
    }
}

impl Sharing {
    /// Number of tokens that a prompt of `prompt` tokens shares with the other prompts of its group. A
    /// minimum part of each prompt stays unique.
    pub(crate) fn shared_of(&self, prompt: u32) -> u32 {
        match self.groups < self.requests {
            true => self.tokens.min(prompt.saturating_sub(LEAST_PROMPT)),
            false => 0,
        }
    }

    /// Share of the requests whose beginning occurred in an earlier request.
    fn again(&self) -> f64 {
        1.0 - self.groups as f64 / self.requests as f64
    }
}

/// The categories of a profile; `None` if nothing is shared.
pub(crate) fn rows(prefixes: &Prefixes, lengths: &Rows<Joint>) -> Option<Rows<Sharing>> {
    let of_class = prefixes.classes.iter().filter(|class| class.requests > 0 && class.groups > 0);
    let of_class = of_class.map(|class| (class.requests, class.groups, f64::from(class.shared_tokens)));
    // Groups that are too rare for a category are unknown, so their requests are assumed to share nothing.
    let rare = (prefixes.suppressed > 0).then_some((prefixes.suppressed, prefixes.suppressed, 0.0));
    let all: Vec<(u64, u64, f64)> = of_class.chain(rare).collect();
    let scaled = |factor: f64| -> Vec<Sharing> {
        let tokens = |tokens: f64| (tokens * factor).round().clamp(0.0, f64::from(MOST_TOKENS)) as u32;
        all.iter()
            .map(|(requests, groups, shared)| Sharing { requests: *requests, groups: *groups, tokens: tokens(*shared) })
            .collect()
    };
    let wanted = prefixes.reusable_share;
    if wanted <= 0.0 || all.iter().all(|(_, _, shared)| *shared == 0.0) {
        return None;
    }
    // More tokens give a larger share, so bisection finds the factor.
    let (mut low, mut high) = (0.0, MOST_FACTOR);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if reusable_share(&Rows::new(scaled(middle)), lengths) < wanted { low = middle } else { high = middle }
    }
    Some(Rows::new(scaled(high)))
}

/// Maximum factor by which the profile's numbers of shared tokens are scaled.
const MOST_FACTOR: f64 = 16.0;

/// The expected share of prompt tokens that were also at the beginning of an earlier request.
fn reusable_share(sharing: &Rows<Sharing>, lengths: &Rows<Joint>) -> f64 {
    let all: f64 = sharing.rows().iter().map(|row| row.requests as f64).sum();
    let (mut shared, mut sum) = (0.0, 0.0);
    for (category, rows) in sharing.rows().iter().zip(coupled(sharing, lengths)) {
        let weight: f64 = rows.rows().iter().map(|row| row.weight.to_f64()).sum();
        for row in rows.rows() {
            let share = category.requests as f64 / all * row.weight.to_f64() / weight;
            shared += share * category.again() * mean(row.prompt, |prompt| category.shared_of(prompt));
            sum += share * mean(row.prompt, |prompt| prompt);
        }
    }
    if sum > 0.0 { shared / sum } else { 0.0 }
}

/// The mean of `of` over a range, estimated from the midpoints of its sixteenths.
fn mean(range: Range, of: impl Fn(u32) -> u32) -> f64 {
    let width = f64::from(range.max - range.min);
    let at = |part: u32| f64::from(range.min) + width * (f64::from(part) + 0.5) / 16.0;
    (0..16).map(|part| f64::from(of(at(part).round() as u32))).sum::<f64>() / 16.0
}

/// The lengths of each category, in the order of the categories. The categories that share the most get
/// the longest prompts, and all categories together have the lengths `lengths`.
pub(crate) fn coupled(sharing: &Rows<Sharing>, lengths: &Rows<Joint>) -> Vec<Rows<Joint>> {
    let (categories, rows) = (sharing.rows(), lengths.rows());
    let mut by_tokens: Vec<usize> = (0..categories.len()).collect();
    by_tokens.sort_by_key(|at| categories[*at].shared_of(u32::MAX));
    let mut by_length: Vec<&Joint> = rows.iter().collect();
    by_length.sort_by_key(|row| (row.prompt.min, row.prompt.max));
    let all_requests: f64 = categories.iter().map(|one| one.requests as f64).sum();
    let all_weights: f64 = rows.iter().map(|row| row.weight.to_f64()).sum();
    let mut left = by_length.into_iter().map(|row| (row, row.weight.to_f64() / all_weights)).peekable();
    let mut given: Vec<Vec<Joint>> = vec![Vec::new(); categories.len()];
    for at in by_tokens {
        let mut wanted = categories[at].requests as f64 / all_requests;
        while let Some((row, share)) = left.peek_mut() {
            let taken = share.min(wanted);
            given[at].push(Joint { weight: Decimal::new((taken * 1e12).round() as i64, 12), ..**row });
            (*share, wanted) = (*share - taken, wanted - taken);
            // Rounding residue of a row or a category is ignored.
            if *share > 1e-12 {
                break;
            }
            left.next();
            if wanted <= 1e-12 {
                break;
            }
        }
    }
    // A category that has no row after rounding gets the longest row.
    let rest = rows.iter().max_by_key(|row| row.prompt.max).map(|row| Joint { weight: Decimal::from(1), ..*row });
    given.into_iter().map(Rows::new).map(|rows| if rows.rows().is_empty() { Rows::new(rest) } else { rows }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::profile::PrefixClass;

    fn lengths(rows: &[(u32, u32, u32)]) -> Rows<Joint> {
        let row = |(min, max, weight): &(u32, u32, u32)| Joint {
            prompt: Range { min: *min, max: *max },
            output: Range::one(8),
            weight: Decimal::from(*weight),
        };
        Rows::new(rows.iter().map(row))
    }

    fn prefixes(classes: &[(u64, u64, u32)], reusable_share: f64) -> Prefixes {
        let class = |(requests, groups, shared_tokens): &(u64, u64, u32)| PrefixClass {
            size: [1, 1],
            groups: *groups,
            requests: *requests,
            shared_tokens: *shared_tokens,
        };
        let classes: Vec<PrefixClass> = classes.iter().map(class).collect();
        let requests = classes.iter().map(|class| class.requests).sum();
        Prefixes { block_tokens: 512, requests, reusable_share, classes, suppressed: 0 }
    }

    #[test]
    fn the_longest_prompts_go_to_those_that_share_most() {
        let lengths = lengths(&[(100, 200, 50), (1000, 2000, 30), (4000, 4000, 20)]);
        let category = |requests, groups, tokens| Sharing { requests, groups, tokens };
        let rows = coupled(&Rows::new([category(40, 4, 900), category(60, 60, 0)]), &lengths);
        let told = |at: usize| -> Vec<(u32, String)> {
            rows[at].rows().iter().map(|row| (row.prompt.min, row.weight.to_string())).collect()
        };
        assert_eq!(told(0), [(1000, "0.2".to_owned()), (4000, "0.2".to_owned())]);
        assert_eq!(told(1), [(100, "0.5".to_owned()), (1000, "0.1".to_owned())]);
    }

    #[test]
    fn the_reusable_share_is_that_of_the_profile() {
        let lengths = lengths(&[(100, 200, 50), (1000, 2000, 30), (4000, 6000, 20)]);
        for (classes, share) in [
            (&[(500, 500, 0), (500, 20, 1024)][..], 0.4),
            (&[(100, 100, 0), (300, 30, 512), (600, 6, 2048)], 0.55),
            (&[(1000, 1, 100)], 0.07),
        ] {
            let sharing = rows(&prefixes(classes, share), &lengths).unwrap();
            let found = reusable_share(&sharing, &lengths);
            assert!((found - share).abs() < 2e-3, "{found} for {share}: {sharing:?}");
        }
        assert_eq!(rows(&prefixes(&[(500, 500, 0)], 0.0), &lengths), None);
    }
}
