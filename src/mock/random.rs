//! Random numbers that are the same in every run with the same seed.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Returns a pseudo-random stream for one purpose and one request, so that one purpose never shifts
/// the numbers of another.
pub(super) fn random(seed: u64, purpose: &[u8; 4], number: u64) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ (u64::from(u32::from_le_bytes(*purpose)) << 32));
    random.set_stream(number);
    random
}
