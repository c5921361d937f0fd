//! Wilcoxon's signed-rank test, for readers who do not trust the assumption that differences are
//! normally distributed. Differences of 0 are dropped (Wilcoxon's own rule), and tied differences share
//! their mean rank.

use crate::analysis::student;

/// Minimum number of nonzero differences: with five, the smallest p-value is 6.25 %.
pub(crate) const FEWEST: usize = 6;
/// Up to this number of differences, the exact distribution (including ties) is used; beyond it,
/// the normal approximation.
const MOST_EXACT: usize = 25;

/// The result of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SignedRank {
    /// Number of nonzero differences.
    pub n: usize,
    /// The smaller of the two sums of ranks.
    pub(crate) statistic: f64,
    /// Two-sided p-value.
    pub p: f64,
    /// Whether the p-value is exact.
    pub exact: bool,
}

/// Tests whether differences are symmetric around zero; `None` for fewer than [`FEWEST`].
pub(crate) fn signed_rank(differences: &[f64]) -> Option<SignedRank> {
    let mut sizes: Vec<(f64, bool)> =
        differences.iter().filter(|one| **one != 0.0).map(|one| (one.abs(), *one > 0.0)).collect();
    sizes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let n = sizes.len();
    if n < FEWEST {
        return None;
    }
    // Ranks are doubled to keep them whole, because tied values may share a half-integer rank.
    let (mut doubled, mut ties) = (Vec::with_capacity(n), 0.0);
    for group in sizes.chunk_by(|a, b| a.0 == b.0) {
        let (first, count) = (doubled.len(), group.len());
        doubled.extend(std::iter::repeat_n(2 * first + count + 1, count));
        ties += (count * count * count - count) as f64;
    }
    let positive: usize = doubled.iter().zip(&sizes).filter(|(_, (_, above))| *above).map(|(rank, _)| rank).sum();
    let smaller = positive.min(n * (n + 1) - positive);
    let exact = n <= MOST_EXACT;
    let p = if exact { exactly(&doubled, smaller) } else { about(n, smaller as f64 / 2.0, ties) };
    Some(SignedRank { n, statistic: smaller as f64 / 2.0, p, exact })
}

/// Returns twice the share of the 2ⁿ sign assignments whose sum of ranks is at most `smaller`.
fn exactly(doubled: &[usize], smaller: usize) -> f64 {
    let mut ways = vec![0.0f64; smaller + 1];
    ways[0] = 1.0;
    for rank in doubled {
        for sum in (*rank..=smaller).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    (2.0 * ways.iter().sum::<f64>() / 2.0f64.powi(doubled.len() as i32)).min(1.0)
}

/// Uses the normal approximation, corrected for ties and continuity.
fn about(n: usize, statistic: f64, ties: f64) -> f64 {
    let n = n as f64;
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - ties / 48.0;
    let away = (n * (n + 1.0) / 4.0 - statistic - 0.5).max(0.0);
    (2.0 * student::upper(away / variance.sqrt())).min(1.0)
}
