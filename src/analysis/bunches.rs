//! Tests whether the failures of a run are clustered: whether, for a while, a much larger share of
//! requests failed than before and after.
//!
//! Model: every request fails with the same probability. The requests are taken in the order in which
//! they ended, and the stretch that contradicts the model most is found by its likelihood ratio
//! (Kulldorff, A spatial scan statistic, 1997). A stretch consists of whole blocks of the window's requests.
//! The limit was determined by simulation, because the data themselves select the stretch
//! (`docs/METRICS.md`, Steadiness).

use super::series::{PARTS, edges};

/// Minimum number of failures for a finding.
const FEWEST: usize = 5;
/// Minimum logarithm of the likelihood ratio for a finding, high enough that chance alone does not reach it.
const LIMIT: f64 = 13.0;
/// A burst contains at most this share of the requests; a longer stretch is a change of level.
const BUNCH: f64 = 0.25;
/// A burst that contains fewer failures than this share of all requests is not reported, because it
/// affects no percentile up to p99.9.
const LEAST: f64 = 0.001;

/// A stretch of requests in which more failed than elsewhere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stretch {
    /// Index of the first request in the stretch.
    pub from: usize,
    /// Index of the first request after the stretch.
    pub to: usize,
    /// Number of failures in the stretch.
    pub failed: usize,
    /// Total number of failures, in the stretch and outside it.
    pub of: usize,
    /// Total number of requests, in the stretch and outside it.
    pub requests: usize,
}

impl Stretch {
    /// Returns the failed share inside and outside the stretch.
    pub(crate) fn shares(&self) -> [f64; 2] {
        let inside = self.to - self.from;
        let outside = self.requests - inside;
        [self.failed as f64 / inside as f64, (self.of - self.failed) as f64 / outside.max(1) as f64]
    }

    /// Returns whether the stretch is a burst rather than a lasting change of level.
    pub(crate) fn is_bunch(&self) -> bool {
        (self.to - self.from) as f64 <= BUNCH * self.requests as f64
    }
}

/// Finds the stretch of requests in which more failed than chance explains; `None` if the failures may be
/// evenly spread. `failed` has a value for each request, in the order in which the requests ended.
pub(crate) fn find(failed: &[bool]) -> Option<Stretch> {
    let (requests, of) = (failed.len(), failed.iter().filter(|failed| **failed).count());
    if of < FEWEST {
        return None;
    }
    let edges = edges(requests, PARTS);
    let mut counts = vec![0];
    for edge in edges.windows(2) {
        let inside = failed[edge[0]..edge[1]].iter().filter(|failed| **failed).count();
        counts.push(counts[counts.len() - 1] + inside);
    }
    let none = likelihood(of, requests);
    let mut best: Option<(f64, Stretch)> = None;
    for first in 0..edges.len() - 1 {
        for last in first + 1..edges.len() {
            let stretch =
                Stretch { from: edges[first], to: edges[last], failed: counts[last] - counts[first], of, requests };
            let ratio = stretch.likelihood() - none;
            if stretch.failed >= FEWEST && best.is_none_or(|(most, _)| ratio > most) && stretch.is_worse() {
                best = Some((ratio, stretch));
            }
        }
    }
    let told = |stretch: &Stretch| stretch.failed as f64 >= LEAST * requests as f64;
    best.filter(|(ratio, _)| *ratio > LIMIT).map(|(_, stretch)| stretch).filter(told)
}

impl Stretch {
    fn likelihood(&self) -> f64 {
        let inside = self.to - self.from;
        likelihood(self.failed, inside) + likelihood(self.of - self.failed, self.requests - inside)
    }

    fn is_worse(&self) -> bool {
        let [inside, outside] = self.shares();
        inside > outside
    }
}

/// Returns the logarithm of the maximum likelihood of `failed` failures among `of` requests.
fn likelihood(failed: usize, of: usize) -> f64 {
    let part = |count: usize| if count == 0 { 0.0 } else { count as f64 * (count as f64 / of as f64).ln() };
    part(failed) + part(of - failed)
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn a_burst_is_found_and_told_from_a_level_that_lasts() {
        let burst: Vec<bool> = (0..300).map(|at| (150..170).contains(&at) || at == 20).collect();
        let found = find(&burst).unwrap();
        assert_eq!((found.from, found.to, found.failed, found.of, found.is_bunch()), (150, 170, 20, 21, true));
        let lasting: Vec<bool> = (0..300).map(|at| at >= 150 && at % 4 == 0).collect();
        let found = find(&lasting).unwrap();
        assert!(!found.is_bunch() && found.shares()[1] == 0.0, "{found:?}");
        let few: Vec<bool> = (0..300).map(|at| (150..154).contains(&at)).collect();
        assert_eq!((find(&few), find(&[])), (None, None));
        let all = [true; 30];
        assert_eq!(find(&all), None);
    }

    /// Failures that occur at random rarely look like a burst.
    #[test]
    fn failures_by_chance_are_no_bunch() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut found = 0;
        for run in 0..200 {
            let (requests, share) = ([200, 500, 1_000, 3_000][run % 4], [0.01, 0.05, 0.2, 0.5][run / 4 % 4]);
            let failed: Vec<bool> = (0..requests).map(|_| rng.random::<f64>() < share).collect();
            found += usize::from(find(&failed).is_some());
        }
        assert!(found <= 1, "{found} of 200");
    }
}
