//! Assigns requests of a mix to classes.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

use crate::units::Seed;

/// Assigns a class to each request of a mix. The class of each request is drawn independently, and depends
/// only on seed, repeat and the request's number.
#[derive(Debug, Clone)]
pub(crate) struct Mix {
    key: [u8; 32],
    /// The cumulative weights: the end of each class on a scale from 0 to the sum of the weights.
    ends: Vec<u64>,
}

impl Mix {
    /// Creates the assignment to classes with these weights, each above 0.
    pub(crate) fn new(weights: impl IntoIterator<Item = u64>, Seed(seed): Seed, repeat: u32) -> Mix {
        let mut hash = Sha256::new();
        hash.update(b"sweepline classes 1\0");
        hash.update(seed.to_le_bytes());
        hash.update(repeat.to_le_bytes());
        let ends = weights.into_iter().scan(0u64, |sum, weight| {
            *sum += weight;
            Some(*sum)
        });
        Mix { key: hash.finalize().into(), ends: ends.collect() }
    }

    /// Returns the class of request `k`, counted from 0.
    pub(crate) fn class(&self, k: u64) -> usize {
        let mut rng = ChaCha8Rng::from_seed(self.key);
        rng.set_stream(k);
        let all = self.ends.last().copied().unwrap_or(1);
        // The bias is at most `all / 2^64`, which is negligible.
        let drawn = ((u128::from(rng.next_u64()) * u128::from(all)) >> 64) as u64;
        self.ends.partition_point(|end| *end <= drawn)
    }
}

/// Iterates over the requests of a run. For each, it returns the class and the number of earlier requests
/// of that class.
#[derive(Debug, Clone)]
pub(crate) struct Lineup {
    mix: Option<Mix>,
    next: u64,
    of_class: Vec<u64>,
    /// One in `stride` requests is returned.
    stride: u32,
}

impl Lineup {
    /// Creates the iterator at the first request. Without a mix, all requests are of class 0.
    pub(crate) fn new(mix: Option<Mix>) -> Lineup {
        let classes = mix.as_ref().map_or(1, |mix| mix.ends.len());
        Lineup { mix, next: 0, of_class: vec![0; classes], stride: 1 }
    }

    /// Limits the iterator to one in `stride` requests, beginning with number `first`. The iterator must
    /// not have been advanced.
    pub(crate) fn every(mut self, first: u32, stride: u32) -> Lineup {
        for _ in 0..first {
            self.one();
        }
        self.stride = stride;
        self
    }

    /// Returns the class of the next request, and its number within that class.
    pub(crate) fn step(&mut self) -> (usize, u64) {
        let place = self.one();
        for _ in 1..self.stride {
            self.one();
        }
        place
    }

    fn one(&mut self) -> (usize, u64) {
        let class = self.mix.as_ref().map_or(0, |mix| mix.class(self.next));
        self.next += 1;
        self.of_class[class] += 1;
        (class, self.of_class[class] - 1)
    }
}

impl Iterator for Lineup {
    type Item = (usize, u64);

    /// Returns the next item. The sequence is endless.
    fn next(&mut self) -> Option<(usize, u64)> {
        Some(self.step())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_come_as_often_as_they_weigh_and_not_in_step() {
        let mix = Mix::new([5, 3, 2], Seed(7), 0);
        let count = 100_000;
        let (mut found, mut after) = ([0u64; 3], [0u64; 3]);
        for k in 0..count {
            found[mix.class(k)] += 1;
            after[mix.class(k + 1)] += u64::from(mix.class(k) == 0);
        }
        // The tolerance is five standard deviations of a binomial count; one mix in a million would exceed
        // it.
        for (counts, of) in [(found, count), (after, found[0])] {
            for (count, share) in counts.into_iter().zip([0.5, 0.3, 0.2]) {
                let (expected, sd) = (of as f64 * share, (of as f64 * share * (1.0 - share)).sqrt());
                assert!((count as f64 - expected).abs() < 5.0 * sd, "{counts:?} of {of}");
            }
        }
        let others = [Mix::new([5, 3, 2], Seed(8), 0), Mix::new([5, 3, 2], Seed(7), 1)];
        for other in others {
            assert!((0..100).any(|k| other.class(k) != mix.class(k)));
        }
    }

    #[test]
    fn a_lineup_numbers_each_class_by_itself() {
        let mix = Mix::new([1, 1], Seed(1), 0);
        let lineup: Vec<(usize, u64)> = Lineup::new(Some(mix.clone())).take(50).collect();
        let mut counts = [0, 0];
        for (k, (class, number)) in lineup.into_iter().enumerate() {
            assert_eq!((class, number), (mix.class(k as u64), counts[class]));
            counts[class] += 1;
        }
        assert!(Lineup::new(None).take(3).eq([(0, 0), (0, 1), (0, 2)]));
        let whole: Vec<(usize, u64)> = Lineup::new(Some(mix.clone())).take(30).collect();
        let third: Vec<(usize, u64)> = Lineup::new(Some(mix)).every(2, 3).take(10).collect();
        assert_eq!(third, whole.into_iter().skip(2).step_by(3).collect::<Vec<_>>());
    }
}
