//! Determines the order in which the records of a data set are drawn.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::units::Seed;

/// Returns the numbers from 0 to `total` − 1 in the order in which they are drawn without replacement. The
/// result depends only on the arguments.
///
/// The order is a Fisher-Yates shuffle with random numbers from ChaCha8, where `pass` selects the stream.
/// When all records have been drawn, the next pass has a different order. The first n numbers of an order
/// are a sample of size n, so a larger sample contains every smaller one.
pub fn order(total: u32, Seed(seed): Seed, pass: u64) -> Vec<u32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(pass);
    let mut order: Vec<u32> = (0..total).collect();
    for at in 0..order.len() {
        let left = (order.len() - at) as u128;
        // The bias is at most left / 2^64, which is too small to show in any sample.
        let chosen = at + ((u128::from(rng.next_u64()) * left) >> 64) as usize;
        order.swap(at, chosen);
    }
    order
}

/// Returns the indexes of a sample of `n` out of `total` records, in the order of the file.
pub fn sample(total: u32, n: u32, seed: Seed) -> Vec<u32> {
    let mut chosen = order(total, seed, 0);
    chosen.truncate(n as usize);
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_is_drawn_once_before_any_is_drawn_again() {
        for pass in 0..3 {
            let mut drawn = order(1000, Seed(7), pass);
            assert_ne!(drawn, order(1000, Seed(7), pass + 1));
            assert_ne!(drawn, order(1000, Seed(8), pass));
            drawn.sort_unstable();
            assert_eq!(drawn, (0..1000).collect::<Vec<_>>());
        }
        assert_eq!(sample(3, 10, Seed(1)), [0, 1, 2], "there are no more");
        let (small, large) = (sample(100, 5, Seed(1)), sample(100, 20, Seed(1)));
        assert!(small.iter().all(|one| large.contains(one)) && small.is_sorted());
    }

    /// A change in these values would change every sample that was ever drawn.
    #[test]
    fn the_order_of_a_seed_is_known() {
        assert_eq!(order(10, Seed(1), 0), [4, 1, 6, 0, 5, 8, 7, 2, 9, 3]);
    }

    #[test]
    fn each_record_is_first_as_often_as_any_other() {
        let mut first = [0u32; 10];
        for seed in 0..20_000 {
            first[order(10, Seed(seed), 0)[0] as usize] += 1;
        }
        // Each record is expected to come first 2 000 times, with a standard deviation of 42; six standard
        // deviations are allowed.
        assert!(first.iter().all(|count| count.abs_diff(2_000) < 260), "{first:?}");
    }
}
