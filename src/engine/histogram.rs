//! Counts durations in buckets. Memory is bounded, and adding a value neither locks nor allocates.
//!
//! Every octave has 16 buckets, so the width of a bucket is at most 1/16 of the values in it, whatever their
//! size. A percentile is reported as the middle of its bucket, which is accurate to within 4 %; the largest
//! value is stored exactly. Only the behavior of the load generator itself is measured in this way. The
//! metrics of requests are computed from the rows, which are exact.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::rows::Spread;

/// Number of binary digits, after the leading one, that select a value's bucket within its octave.
const DIGITS: u32 = 4;
/// Number of buckets in each octave.
const PER_OCTAVE: usize = 1 << DIGITS;
/// Number of buckets that cover all 64-bit values.
const BUCKETS: usize = (64 - DIGITS as usize + 1) * PER_OCTAVE;

/// A histogram of durations in nanoseconds. Any thread may add values.
#[derive(Debug)]
pub(crate) struct Histogram {
    counts: Box<[AtomicU64]>,
    largest: AtomicU64,
}

impl Histogram {
    /// Creates an empty histogram.
    pub(crate) fn new() -> Histogram {
        Histogram { counts: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(), largest: AtomicU64::new(0) }
    }

    /// Counts one value.
    pub(crate) fn add(&self, nanos: u64) {
        self.counts[bucket(nanos)].fetch_add(1, Relaxed);
        self.largest.fetch_max(nanos, Relaxed);
    }

    /// Returns the counts since the last call, and resets them.
    pub(crate) fn take(&self) -> Counted {
        let counts = self.counts.iter().map(|count| count.swap(0, Relaxed)).collect();
        Counted { counts, largest: self.largest.swap(0, Relaxed) }
    }
}

/// The counts of a histogram at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    counts: Vec<u64>,
    largest: u64,
}

impl Counted {
    /// Returns the count, percentiles (nearest rank) and maximum of the values; `None` if there are no
    /// values.
    pub(crate) fn spread(&self) -> Option<Spread> {
        let count: u64 = self.counts.iter().sum();
        (count > 0).then(|| Spread {
            count,
            p50_ns: self.at_rank(count.div_ceil(2)),
            p99_ns: self.at_rank((count * 99).div_ceil(100)),
            max_ns: self.largest,
        })
    }

    fn at_rank(&self, rank: u64) -> u64 {
        let mut below = 0;
        let found = self.counts.iter().position(|count| {
            below += count;
            below >= rank
        });
        found.map_or(self.largest, middle).min(self.largest)
    }

    /// Returns, for each octave that contains values, its upper limit (a power of two) and the number of
    /// values in it.
    pub(crate) fn octaves(&self) -> impl Iterator<Item = (u128, u64)> {
        let counted = |(octave, counts): (usize, &[u64])| (1 << (octave + DIGITS as usize), counts.iter().sum());
        self.counts.chunks(PER_OCTAVE).enumerate().map(counted).filter(|(_, count)| *count > 0)
    }
}

/// Returns the bucket of a value. Small values have one bucket each; larger ones are assigned by their
/// first binary digits.
fn bucket(nanos: u64) -> usize {
    if nanos < PER_OCTAVE as u64 {
        return nanos as usize;
    }
    let octave = 63 - nanos.leading_zeros();
    let place = (nanos >> (octave - DIGITS)) as usize - PER_OCTAVE;
    (octave - DIGITS + 1) as usize * PER_OCTAVE + place
}

/// Returns the value in the middle of a bucket.
fn middle(bucket: usize) -> u64 {
    let (octave, place) = (bucket / PER_OCTAVE, (bucket % PER_OCTAVE) as u64);
    if octave == 0 {
        return place;
    }
    let shift = octave as u32 - 1;
    ((place + PER_OCTAVE as u64) << shift) + ((1 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_rise_without_gap() {
        assert_eq!([0, 15, 16, 31, 32, 33, 34, u64::MAX].map(bucket), [0, 15, 16, 31, 32, 32, 33, BUCKETS - 1]);
        let starts: Vec<u64> = (0..BUCKETS - 1).map(middle).collect();
        assert!(starts.is_sorted_by(|a, b| a < b));
    }

    proptest! {
        #[test]
        fn a_bucket_knows_its_values_within_4_percent(nanos: u64) {
            let (known, shift) = (middle(bucket(nanos)), nanos.checked_ilog2().unwrap_or(0));
            prop_assert!(known.abs_diff(nanos) <= nanos / 25, "{nanos} in 2^{shift} reads as {known}");
        }
    }

    #[test]
    fn percentiles_are_by_nearest_rank_and_taking_empties() {
        let histogram = Histogram::new();
        assert_eq!(histogram.take().spread(), None);
        (1..=100).for_each(|value| histogram.add(value * 1_000_000));
        let counted = histogram.take();
        let spread = counted.spread().unwrap();
        assert_eq!((spread.count, spread.max_ns), (100, 100_000_000));
        assert!(spread.p50_ns.abs_diff(50_000_000) <= 2_000_000, "{spread:?}");
        assert!(spread.p99_ns.abs_diff(99_000_000) <= 4_000_000, "{spread:?}");
        assert_eq!(counted.octaves().map(|(_, count)| count).sum::<u64>(), 100);
        assert_eq!(histogram.take().spread(), None);
    }

    #[test]
    fn octaves_end_at_powers_of_two() {
        let histogram = Histogram::new();
        [0, 15, 16, 1023, 1024, u64::MAX].into_iter().for_each(|value| histogram.add(value));
        let octaves: Vec<(u128, u64)> = histogram.take().octaves().collect();
        assert_eq!(octaves, [(16, 2), (32, 1), (1024, 1), (2048, 1), (1 << 64, 1)]);
    }
}
