//! The order of runs: seeded blocks over repeats, so that a drift of the machine does not look like an effect.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

use crate::units::Seed;

/// The order in which repeat `repeat` of the sweep called `sweep` visits its `cells`: each position once.
///
/// It depends on the three names and the number of cells alone, never on what is in the cells or in other sweeps.
pub fn block(seed: Seed, sweep: &str, repeat: u32, cells: usize) -> Vec<usize> {
    let mut rng = ChaCha8Rng::from_seed(key(seed, sweep, repeat));
    let mut order: Vec<usize> = (0..cells).collect();
    // Fisher–Yates written out over a named generator: a library's shuffle may change between releases.
    for last in (1..cells).rev() {
        order.swap(last, below(&mut rng, last as u64 + 1) as usize);
    }
    order
}

fn key(seed: Seed, sweep: &str, repeat: u32) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"sweepline order 1\0");
    hash.update(seed.0.to_le_bytes());
    hash.update(repeat.to_le_bytes());
    // Last, so that its length needs no delimiter.
    hash.update(sweep.as_bytes());
    hash.finalize().into()
}

/// A number below `bound`, uniformly: draws that would favour the low numbers are thrown away.
fn below(rng: &mut ChaCha8Rng, bound: u64) -> u64 {
    let fair = u64::MAX - u64::MAX % bound;
    loop {
        let draw = rng.next_u64();
        if draw < fair {
            return draw % bound;
        }
    }
}
