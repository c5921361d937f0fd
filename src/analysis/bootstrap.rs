//! The pooled gaps between token events. Gaps of one request are not independent, so their intervals come from a
//! bootstrap over requests.
//!
//! A run may hold 10⁷ gaps. They are sorted once; each resample then reads a table of how many gaps of each group of
//! requests lie below 4 096 cut points, so a resample costs the same however long the run was. Up to 200 requests each is
//! a group of its own; beyond, requests are dealt at random into 200 equal groups and groups are resampled, which
//! estimates the same spread.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::plan::Percentile;

use super::quantile;
use super::stats::{Interval, Ordered, Summary};

/// Fewest requests from which a bootstrap says something (METRICS).
const FEWEST_REQUESTS: usize = 30;
const GROUPS: usize = 200;
const BLOCKS: usize = 4096;
const RESAMPLES: usize = 500;
/// Low bits of a packed gap that carry its group; the rest holds up to 78 hours in nanoseconds.
const GROUP_BITS: u32 = 16;
/// A fixed seed: the same rows must always give the same interval.
const SEED: u64 = 0x5eed;

/// All gaps of a set of requests, sorted.
pub struct Gaps {
    packed: Vec<u64>,
    requests: usize,
    groups: usize,
}

/// ITL and jitter of a run.
pub struct GapMetrics {
    /// ITL in milliseconds, every gap pooled.
    pub itl: Summary,
    /// p99(ITL) / p50(ITL); null when either is null or p50 is 0.
    pub jitter: Option<f64>,
    /// Bootstrap interval of the jitter ratio; null with it, and below 30 requests.
    pub jitter_interval: Option<Interval>,
}

impl Gaps {
    /// Pools the gaps of requests; those without a gap do not count as requests here.
    pub fn pool<'a>(requests: impl Iterator<Item = &'a [u64]>) -> Gaps {
        let with_gaps: Vec<&[u64]> = requests.filter(|gaps| !gaps.is_empty()).collect();
        let mut deal: Vec<usize> = (0..with_gaps.len()).collect();
        deal.shuffle(&mut ChaCha8Rng::seed_from_u64(SEED));
        let mut packed = Vec::with_capacity(with_gaps.iter().map(|gaps| gaps.len()).sum());
        for (request, place) in with_gaps.iter().zip(&deal) {
            let group = (place % GROUPS) as u64;
            packed.extend(request.iter().map(|gap| (gap.min(&(u64::MAX >> GROUP_BITS)) << GROUP_BITS) | group));
        }
        packed.sort_unstable();
        Gaps { packed, requests: with_gaps.len(), groups: with_gaps.len().min(GROUPS) }
    }

    fn millis(&self, index: usize) -> f64 {
        (self.packed[index] >> GROUP_BITS) as f64 / 1e6
    }

    /// The metrics made of gaps.
    pub fn metrics(&self) -> GapMetrics {
        let resamples = if self.requests >= FEWEST_REQUESTS { self.resample() } else { Vec::new() };
        let at = |index: u64| self.millis(index as usize);
        let largest = self.packed.len().checked_sub(1).map(|last| self.millis(last));
        let ordered = Ordered { observed: self.packed.len() as u64, at: &at, failures: 0, largest };
        let estimate = |percentile: Percentile| {
            ordered.estimate(percentile, || spread(resamples.iter().map(|sample| sample[percentile as usize])))
        };
        let itl = Summary::assemble(&ordered, quantile::ALL.map(estimate));
        let jitter = itl.tail_ratio();
        let ratios =
            resamples.iter().map(|sample| (sample[Percentile::P99 as usize], sample[Percentile::P50 as usize]));
        let ratios = ratios.filter(|(_, median)| *median > 0.0).map(|(tail, median)| tail / median);
        GapMetrics { jitter_interval: jitter.and_then(|_| spread(ratios)), itl, jitter }
    }

    /// The six percentiles of each resample, in ms.
    fn resample(&self) -> Vec<[f64; 6]> {
        let below = self.count_below();
        let sizes = &below[below.len() - self.groups..];
        let mut rng = ChaCha8Rng::seed_from_u64(SEED ^ 1);
        let mut weights = vec![0u64; self.groups];
        let mut draw = || {
            weights.fill(0);
            (0..self.groups).for_each(|_| weights[rng.random_range(0..self.groups)] += 1);
            let total = dot(sizes, &weights);
            quantile::ALL.map(|percentile| {
                let rank = total.saturating_sub(1) * quantile::permille(percentile) / 1000;
                self.millis(self.locate(&below, &weights, rank))
            })
        };
        (0..RESAMPLES).map(|_| draw()).collect()
    }

    /// Row by row for each cut point: how many gaps of each group lie before it.
    fn count_below(&self) -> Vec<u32> {
        let mut rows = Vec::with_capacity((BLOCKS + 1) * self.groups);
        let mut counts = vec![0u32; self.groups];
        let mut next = 0;
        for block in 0..=BLOCKS {
            for packed in &self.packed[next..self.cut(block)] {
                counts[(packed & ((1 << GROUP_BITS) - 1)) as usize] += 1;
            }
            next = self.cut(block);
            rows.extend_from_slice(&counts);
        }
        rows
    }

    /// Index of the first gap at or after a cut point.
    fn cut(&self, block: usize) -> usize {
        self.packed.len() * block / BLOCKS
    }

    /// Index of the gap at `rank` of a weighted sample: bisect the cut points, then go on in proportion.
    fn locate(&self, below: &[u32], weights: &[u64], rank: u64) -> usize {
        let before = |block: usize| dot(&below[block * self.groups..(block + 1) * self.groups], weights);
        let (mut low, mut high) = (0, BLOCKS);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if before(middle) <= rank { low = middle } else { high = middle }
        }
        let (first, last) = (before(low), before(high));
        let width = self.cut(high) - self.cut(low);
        let step = (rank - first) as f64 / (last - first).max(1) as f64 * width as f64;
        (self.cut(low) + step as usize).min(self.packed.len() - 1)
    }
}

fn dot(counts: &[u32], weights: &[u64]) -> u64 {
    counts.iter().zip(weights).map(|(count, weight)| u64::from(*count) * weight).sum()
}

/// The middle 95 % of resampled values.
fn spread(values: impl Iterator<Item = f64>) -> Option<Interval> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    let at = |index: u64| values[index as usize];
    let ordered = Ordered { observed: values.len() as u64, at: &at, failures: 0, largest: None };
    (!values.is_empty()).then(|| Interval { low: ordered.quantile(25), high: ordered.quantile(975) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Estimate, Value};

    /// `requests` streams of 50 gaps; each has a pace of its own, so gaps of one request are alike.
    fn streams(requests: u64, seed: u64) -> Vec<Vec<u64>> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut stream = || {
            let pace = rng.random_range(8_000_000..12_000_000u64);
            (0..50).map(|_| pace + rng.random_range(0..100_000u64)).collect()
        };
        (0..requests).map(|_| stream()).collect()
    }

    fn median(requests: &[Vec<u64>]) -> Estimate {
        Gaps::pool(requests.iter().map(Vec::as_slice)).metrics().itl.percentile(Percentile::P50)
    }

    #[test]
    fn intervals_begin_at_thirty_requests() {
        assert_eq!(median(&streams(29, 1)).interval(), None);
        assert!(median(&streams(30, 1)).interval().is_some());
    }

    #[test]
    fn intervals_cover_although_gaps_of_a_request_are_alike() {
        // The true median of the pace is 10 ms and half the spread of the jitter on top.
        let truth = 10.05;
        let covered = (0..40).filter(|seed| {
            let Interval { low, high } = median(&streams(300, *seed)).interval().unwrap();
            low.or_infinity() <= truth && truth <= high.or_infinity()
        });
        // 38 of 40 expected; order statistics over gaps as if independent would cover about 8.
        assert!((34..=40).contains(&covered.count()));
    }

    #[test]
    fn jitter_is_null_when_the_median_is_zero() {
        let gaps = Gaps::pool([vec![0u64; 500]].iter().map(Vec::as_slice)).metrics();
        assert_eq!((gaps.jitter, gaps.jitter_interval), (None, None));
        let steady = vec![vec![4_000_000u64; 20]; 40];
        let gaps = Gaps::pool(steady.iter().map(Vec::as_slice)).metrics();
        assert_eq!(gaps.jitter, Some(1.0));
        assert_eq!(gaps.jitter_interval, Some(Interval { low: Value::Exact(1.0), high: Value::Exact(1.0) }));
    }

    #[test]
    fn no_gaps_say_nothing() {
        let gaps = Gaps::pool([vec![], vec![]].iter().map(Vec::as_slice)).metrics();
        assert_eq!((gaps.itl.n, gaps.itl.mean, gaps.jitter), (0, None, None));
    }
}
