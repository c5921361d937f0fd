//! Exact binomial probabilities, used for order-statistic intervals and for the test of a service level
//! objective.

use statrs::distribution::{Binomial, DiscreteCDF};
use statrs::function::beta::beta_reg;

/// Returns the probability that B ≤ k, for B ~ Binomial(n, p).
pub fn at_most(n: u64, p: f64, k: u64) -> f64 {
    distribution(n, p).cdf(k)
}

/// Returns the probability that B ≥ k, for B ~ Binomial(n, p).
pub fn at_least(n: u64, p: f64, k: u64) -> f64 {
    match k {
        0 => 1.0,
        _ => distribution(n, p).sf(k - 1),
    }
}

/// Returns the probability that B ≤ x, for n and x that need not be whole, such as the effective size of a
/// dependent sample. Uses the regularized incomplete beta function, which equals the binomial distribution
/// for whole numbers.
pub fn worth_at_most(n: f64, p: f64, x: f64) -> f64 {
    if x >= n { 1.0 } else { beta_reg(n - x, x + 1.0, 1.0 - p) }
}

/// Returns the probability that B ≥ x, for n and x that need not be whole.
pub fn worth_at_least(n: f64, p: f64, x: f64) -> f64 {
    if x <= 0.0 { 1.0 } else { beta_reg(x, n - x + 1.0, p) }
}

/// Returns Clopper and Pearson's 95 % interval for a share observed as `share` in `worth` independent trials.
/// It never extends below 0 or above 1, and a share of 0 still has an upper end above 0. If `worth` is the
/// effective number of dependent trials, this is the interval of Korn and Graubard (1998).
pub(crate) fn share_interval(worth: f64, share: f64) -> [f64; 2] {
    const TAIL: f64 = 0.025;
    let seen = worth * share;
    // Both tail probabilities are monotone in the share, so bisection finds the share at which each equals
    // `TAIL`.
    let bisect = |is_below: &dyn Fn(f64) -> bool| {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if is_below(middle) { low = middle } else { high = middle }
        }
        high
    };
    let low = if share <= 0.0 { 0.0 } else { bisect(&|p| worth_at_least(worth, p, seen) < TAIL) };
    let high = if share >= 1.0 { 1.0 } else { bisect(&|p| worth_at_most(worth, p, seen) > TAIL) };
    [low.min(share), high.max(share)]
}

fn distribution(n: u64, p: f64) -> Binomial {
    Binomial::new(p, n).expect("shares lie between 0 and 1")
}

/// Returns the ranks (from 1) of the order statistics that enclose the quantile with 95 % probability, with
/// at most 2.5 % on either side: the largest `l` with P(B < l) ≤ 2.5 % and the smallest `u` with P(B ≥ u) ≤
/// 2.5 %, B ~ Binomial(n, p). `None` if n is too small for either rank.
pub(crate) fn interval_ranks(n: u64, p: f64) -> Option<(u64, u64)> {
    const TAIL: f64 = 0.025;
    // As k grows, each condition becomes true once and stays true, so bisection finds the first such k.
    let low = first(0, n, |k| at_most(n, p, k) > TAIL);
    let high = first(1, n + 1, |k| at_least(n, p, k) <= TAIL);
    (low >= 1 && high <= n).then_some((low, high))
}

/// Returns the first k in `from..to` for which `holds(k)` is true, or `to` if there is none. `holds` must not
/// become false again after it has become true.
fn first(from: u64, to: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (from, to);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::quantile;

    /// scipy 1.x: l = first k with binom.cdf(k, n, p) > .025; u = first k ≥ 1 with binom.sf(k - 1, n, p) <= .025.
    #[test]
    fn ranks_match_scipy() {
        for (n, p, ranks) in RANKS {
            assert_eq!(interval_ranks(*n, *p), Some(*ranks), "n={n} p={p}");
        }
    }

    #[test]
    fn intervals_begin_exactly_where_metrics_says() {
        for percentile in quantile::ALL {
            let (n, p) = (quantile::need(percentile), quantile::share(percentile));
            assert!(interval_ranks(n, p).is_some());
            assert_eq!(interval_ranks(n - 1, p), None);
        }
    }

    #[test]
    fn tails_add_up() {
        for k in 1..=40 {
            assert!((at_most(40, 0.3, k - 1) + at_least(40, 0.3, k) - 1.0).abs() < 1e-12);
        }
        assert!((at_most(299, 0.01, 0) - 0.99f64.powi(299)).abs() < 1e-12);
    }

    /// scipy: `binomtest(k, n).proportion_ci(method="exact")`.
    #[test]
    fn a_share_has_both_ends() {
        let close = |found: [f64; 2], expected: [f64; 2]| {
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-4), "{found:?} {expected:?}");
        };
        close(share_interval(100.0, 0.05), [0.01643, 0.11283]);
        close(share_interval(100.0, 0.0), [0.0, 0.03622]);
        close(share_interval(20.0, 1.0), [0.83157, 1.0]);
    }

    #[test]
    fn whole_numbers_are_a_special_case() {
        for (n, p, k) in [(10, 0.3, 4), (299, 0.01, 2), (59, 0.05, 1), (1_000, 0.5, 510)] {
            assert!((worth_at_most(n as f64, p, k as f64) - at_most(n, p, k)).abs() < 1e-10);
            assert!((worth_at_least(n as f64, p, k as f64) - at_least(n, p, k)).abs() < 1e-10);
        }
        assert_eq!((worth_at_most(3.5, 0.1, 3.5), worth_at_least(3.5, 0.1, 0.0)), (1.0, 1.0));
    }

    #[rustfmt::skip]
    const RANKS: &[(u64, f64, (u64, u64))] = &[
        (6, 0.5, (1, 6)), (13, 0.75, (7, 13)), (36, 0.9, (29, 36)), (72, 0.95, (64, 72)),
        (368, 0.99, (360, 368)), (3688, 0.999, (3680, 3688)), (10, 0.5, (2, 9)), (100, 0.5, (40, 61)),
        (100, 0.9, (84, 96)), (1000, 0.99, (983, 997)), (1000, 0.5, (469, 532)), (5000, 0.999, (4990, 5000)),
        (100000, 0.99, (98938, 99062)), (1000000, 0.999, (998938, 999062)), (777, 0.75, (559, 607)), (59, 0.9, (48, 58)),
    ];
}
