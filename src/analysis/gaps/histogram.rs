//! Counts of gaps by approximate length. The counts suffice to find the bucket of any rank, and the memory
//! they need does not grow with the length of the run.

/// Number of bits after the leading one bit that a bucket keeps: values in the same bucket differ by
/// less than one part in 4 096.
const DIGITS: u32 = 12;

/// Returns the bucket of a value. Each value below 8 192 ns has its own bucket; higher values have
/// higher buckets.
pub(super) fn bucket(value: u64) -> usize {
    let shift = shift(value);
    ((u64::from(shift) << DIGITS) + (value >> shift)) as usize
}

/// Returns the smallest value of a bucket, and the number of values it covers.
pub(super) fn span(bucket: usize) -> (u64, u64) {
    let shift = (bucket as u64 >> DIGITS).saturating_sub(1);
    let low = (bucket as u64 - (shift << DIGITS)) << shift;
    (low, 1 << shift)
}

fn shift(value: u64) -> u32 {
    (u64::BITS - value.leading_zeros()).saturating_sub(DIGITS + 1)
}

/// The contents of one bucket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bucket {
    /// The index of the bucket.
    pub bucket: usize,
    /// Number of values in lower buckets.
    pub before: u64,
    /// Number of values in the bucket.
    pub count: u64,
    /// The smallest value of the bucket.
    pub least: u64,
    /// The largest value of the bucket.
    pub most: u64,
}

/// Counts by bucket, to which values are still being added.
#[derive(Debug, Default)]
pub(super) struct Counting {
    /// Count, minimum and maximum of each bucket up to the highest bucket used.
    buckets: Vec<(u64, u64, u64)>,
}

impl Counting {
    /// Adds a value.
    pub(super) fn add(&mut self, value: u64) {
        let bucket = bucket(value);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, (0, u64::MAX, 0));
        }
        let (count, least, most) = &mut self.buckets[bucket];
        *count += 1;
        *least = (*least).min(value);
        *most = (*most).max(value);
    }

    /// Returns the histogram after all values have been added.
    pub(super) fn finish(self) -> Histogram {
        let mut before = 0;
        let filled = self.buckets.into_iter().enumerate().filter(|(_, (count, ..))| *count > 0);
        let buckets = filled.map(|(bucket, (count, least, most))| {
            before += count;
            Bucket { bucket, before: before - count, count, least, most }
        });
        let buckets = buckets.collect();
        Histogram { buckets, n: before }
    }
}

/// The non-empty buckets, in rising order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Histogram {
    /// The buckets.
    pub buckets: Vec<Bucket>,
    /// Total number of values.
    pub n: u64,
}

impl Histogram {
    /// Returns the bucket of the value with the given rank, counted from 0. The rank must exist.
    pub(crate) fn of_rank(&self, rank: u64) -> &Bucket {
        &self.buckets[self.buckets.partition_point(|bucket| bucket.before + bucket.count <= rank)]
    }

    /// Returns the approximate value at a rank: exact if the values of its bucket are equal, otherwise
    /// within the width of the bucket.
    pub(super) fn about(&self, rank: u64) -> f64 {
        let Bucket { before, count, least, most, .. } = *self.of_rank(rank);
        let share = (rank - before) as f64 / (count - 1).max(1) as f64;
        least as f64 + (most - least) as f64 * share
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_value_lies_in_its_bucket(value in prop_oneof![0..20_000u64, any::<u64>()]) {
            let (low, width) = span(bucket(value));
            prop_assert!(low <= value && value - low < width);
            prop_assert!(width == 1 || u128::from(width) * 4096 <= u128::from(low));
        }

        #[test]
        fn buckets_rise_with_values(a in any::<u64>(), b in any::<u64>()) {
            prop_assert!((a <= b) == (bucket(a) <= bucket(b)) || bucket(a) == bucket(b));
        }

        #[test]
        fn ranks_are_found(mut values in prop::collection::vec(prop_oneof![0..5u64, 0..1_000_000_000u64], 1..200)) {
            let mut counting = Counting::default();
            values.iter().for_each(|value| counting.add(*value));
            let histogram = counting.finish();
            values.sort_unstable();
            for (rank, value) in values.iter().enumerate() {
                let found = histogram.of_rank(rank as u64);
                prop_assert!((found.least..=found.most).contains(value));
                let about = histogram.about(rank as u64);
                prop_assert!((about - *value as f64).abs() <= *value as f64 / 4096.0);
            }
        }
    }
}
