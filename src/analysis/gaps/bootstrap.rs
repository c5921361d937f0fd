//! Intervals of what is made of gaps. Gaps of one request are not independent, so requests are resampled, not gaps.
//!
//! A table says how many gaps of each group of requests lie in each of at most 4 096 blocks of rising gaps, so a resample
//! costs no more however long the run was. Up to 200 requests each is a group of its own; beyond, requests are dealt at random
//! into 200 equal groups and groups are resampled, which estimates the same spread. Inside a block ranks go on in
//! proportion; a resampled percentile is exact to one part in 4 096.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::analysis::quantile;
use crate::analysis::stats::{Interval, Ordered};

use super::histogram::Histogram;

/// Fewest requests from which a bootstrap says something (METRICS).
const FEWEST_REQUESTS: usize = 30;
const GROUPS: usize = 200;
const MOST_BLOCKS: usize = 4096;
const RESAMPLES: usize = 500;
/// A fixed seed: the same rows must always give the same interval.
const SEED: u64 = 0x5eed;

/// Counts by block and group, while gaps come a second time.
pub(super) struct Bootstrap {
    /// The group of each request that has gaps, in their order.
    deal: Vec<u8>,
    groups: usize,
    /// How many blocks there are.
    height: usize,
    /// The block of each bucket up to the highest that holds something.
    blocks: Vec<u16>,
    /// Gaps of each group by block; a row of zeros before them.
    below: Vec<u32>,
}

impl Bootstrap {
    /// Of `requests` requests that have gaps.
    pub fn new(histogram: &Histogram, requests: usize) -> Bootstrap {
        let mut deal: Vec<u8> = (0..requests).map(|request| (request % GROUPS) as u8).collect();
        deal.shuffle(&mut ChaCha8Rng::seed_from_u64(SEED));
        let groups = requests.min(GROUPS);
        let highest = histogram.buckets.last().map_or(0, |bucket| bucket.bucket + 1);
        let height = histogram.buckets.len().clamp(1, MOST_BLOCKS);
        let mut blocks = vec![0; highest];
        for bucket in &histogram.buckets {
            blocks[bucket.bucket] = (u128::from(bucket.before) * height as u128 / u128::from(histogram.n)) as u16;
        }
        let rows = if requests >= FEWEST_REQUESTS { height + 1 } else { 0 };
        Bootstrap { deal, groups, height, blocks, below: vec![0; rows * groups] }
    }

    /// Takes a gap of the `request`-th request that has gaps.
    pub fn take(&mut self, request: usize, bucket: usize) {
        if !self.below.is_empty() {
            let row = usize::from(self.blocks[bucket]) + 1;
            self.below[row * self.groups + usize::from(self.deal[request])] += 1;
        }
    }

    /// The six percentiles of each resample, in nanoseconds; none from too few requests.
    pub fn resample(mut self, histogram: &Histogram) -> Vec<[f64; 6]> {
        if self.below.is_empty() {
            return Vec::new();
        }
        for at in self.groups..self.below.len() {
            self.below[at] += self.below[at - self.groups];
        }
        let sizes = self.row(self.height).to_vec();
        let mut rng = ChaCha8Rng::seed_from_u64(SEED ^ 1);
        let mut weights = vec![0u64; self.groups];
        let mut draw = || {
            weights.fill(0);
            (0..self.groups).for_each(|_| weights[rng.random_range(0..self.groups)] += 1);
            let total = dot(&sizes, &weights);
            quantile::ALL.map(|percentile| {
                let rank = total.saturating_sub(1) * quantile::permille(percentile) / 1000;
                histogram.about(self.locate(&weights, rank).min(histogram.n - 1))
            })
        };
        (0..RESAMPLES).map(|_| draw()).collect()
    }

    /// How many gaps of each group lie before a block.
    fn row(&self, block: usize) -> &[u32] {
        &self.below[block * self.groups..(block + 1) * self.groups]
    }

    /// The rank, among all gaps, of the gap at `rank` of a weighted sample: bisect the blocks, then go on in proportion.
    fn locate(&self, weights: &[u64], rank: u64) -> u64 {
        let before = |block: usize| dot(self.row(block), weights);
        let (mut low, mut high) = (0, self.height);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if before(middle) <= rank { low = middle } else { high = middle }
        }
        let all = |block: usize| self.row(block).iter().map(|count| u64::from(*count)).sum::<u64>();
        let (first, last) = (before(low), before(high));
        let width = all(high) - all(low);
        let step = (rank - first) as f64 / (last - first).max(1) as f64 * width as f64;
        all(low) + step as u64
    }
}

fn dot(counts: &[u32], weights: &[u64]) -> u64 {
    counts.iter().zip(weights).map(|(count, weight)| u64::from(*count) * weight).sum()
}

/// The middle 95 % of resampled values.
pub(super) fn spread(values: impl Iterator<Item = f64>) -> Option<Interval> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    let at = |index: u64| values[index as usize];
    let ordered = Ordered { observed: values.len() as u64, at: &at, failures: 0, largest: None };
    (!values.is_empty()).then(|| Interval { low: ordered.quantile(25), high: ordered.quantile(975) })
}
