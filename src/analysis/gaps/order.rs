//! Exact order statistics from a second pass over the values: only the buckets of requested ranks are
//! kept.

use std::collections::BTreeMap;

use super::histogram::{self, Bucket, Histogram};

/// The values of one bucket, stored exactly in the form that needs the least memory.
#[derive(Debug)]
enum Kept {
    /// All values are equal, so none is stored.
    One,
    /// The frequency of each possible value. Used if the bucket contains more values than it has possible
    /// values.
    Counts(Vec<u64>),
    /// Every value.
    Values(Vec<u64>),
}

/// The values at the requested ranks.
#[derive(Debug)]
pub(super) struct Order {
    buckets: BTreeMap<usize, (Bucket, Kept)>,
}

impl Order {
    /// Prepares to find the values of `ranks`, each below the number of values.
    pub(super) fn of(histogram: &Histogram, ranks: impl Iterator<Item = u64>) -> Order {
        let keep = |rank| {
            let bucket = *histogram.of_rank(rank);
            let (_, width) = histogram::span(bucket.bucket);
            let kept = match bucket {
                Bucket { least, most, .. } if least == most => Kept::One,
                Bucket { count, .. } if count > width => Kept::Counts(vec![0; width as usize]),
                Bucket { count, .. } => Kept::Values(Vec::with_capacity(count as usize)),
            };
            (bucket.bucket, (bucket, kept))
        };
        Order { buckets: ranks.map(keep).collect() }
    }

    /// Adds a value of `bucket`.
    pub(super) fn take(&mut self, bucket: usize, value: u64) {
        match self.buckets.get_mut(&bucket) {
            Some((_, Kept::Counts(counts))) => counts[(value - histogram::span(bucket).0) as usize] += 1,
            Some((_, Kept::Values(values))) => values.push(value),
            Some((_, Kept::One)) | None => {}
        }
    }

    /// Sorts the stored values after all values have been added.
    pub(super) fn finish(&mut self) {
        for (_, kept) in self.buckets.values_mut() {
            if let Kept::Values(values) = kept {
                values.sort_unstable();
            }
        }
    }

    /// Returns the value of a requested rank.
    pub(super) fn at(&self, rank: u64) -> u64 {
        let of_rank = |(bucket, _): &&(Bucket, Kept)| (bucket.before..bucket.before + bucket.count).contains(&rank);
        let (bucket, kept) = self.buckets.values().find(of_rank).expect("the rank was requested");
        let mut left = rank - bucket.before;
        match kept {
            Kept::One => bucket.least,
            Kept::Values(values) => values[left as usize],
            Kept::Counts(counts) => {
                let place = counts.iter().position(|count| {
                    let here = left < *count;
                    left -= if here { 0 } else { *count };
                    here
                });
                histogram::span(bucket.bucket).0 + place.expect("as many as were counted") as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::histogram::{Counting, bucket};
    use super::*;

    proptest! {
        #[test]
        fn every_rank_is_exact(
            mut values in prop::collection::vec(prop_oneof![Just(600_000u64), 0..3u64, 600_000..601_000u64, any::<u64>()], 1..300),
        ) {
            let mut counting = Counting::default();
            values.iter().for_each(|value| counting.add(*value));
            let histogram = counting.finish();
            let mut order = Order::of(&histogram, 0..values.len() as u64);
            values.iter().for_each(|value| order.take(bucket(*value), *value));
            order.finish();
            values.sort_unstable();
            for (rank, value) in (0..).zip(&values) {
                prop_assert_eq!(order.at(rank), *value);
            }
        }
    }
}
