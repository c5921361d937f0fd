//! The order of runs: seeded blocks over repeats, so that a drift of the machine does not look like an effect.
//!
//! What a comparison puts side by side runs one after another, a round. Of two rounds that follow each other the second
//! has the order of the first reversed, AB and BA, so that a drift takes from one arm what it gave it before; which comes
//! first is drawn for every two. Strict alternation would put two runs of one arm together wherever two rounds meet: a
//! machine that remembers its last run would then make equal servers look different in 7.3 of 100 comparisons instead of 5.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

use crate::units::Seed;

/// The order in which repeat `repeat` of the sweep called `sweep` visits its `cells`: each position once.
///
/// It depends on the three names and the number of cells alone, never on what is in the cells or in other sweeps.
pub fn block(seed: Seed, sweep: &str, repeat: u32, cells: usize) -> Vec<usize> {
    shuffled(key(b"sweepline order 1\0", seed, repeat, sweep.as_bytes()), cells)
}

/// The same where the cells of each of `groups` are compared: groups are shuffled, their cells stay together.
pub fn rounds(seed: Seed, sweep: &str, repeat: u32, groups: &[Vec<usize>]) -> Vec<usize> {
    let arms = |at: usize| {
        // Of two repeats the same draw.
        let name = [&(at as u64).to_le_bytes()[..], sweep.as_bytes()].concat();
        let mut arms = shuffled(key(b"sweepline rounds 1\0", seed, repeat / 2, &name), groups[at].len());
        if repeat % 2 == 1 {
            arms.reverse();
        }
        arms.into_iter().map(move |arm| groups[at][arm])
    };
    block(seed, sweep, repeat, groups.len()).into_iter().flat_map(arms).collect()
}

fn shuffled(key: [u8; 32], cells: usize) -> Vec<usize> {
    let mut rng = ChaCha8Rng::from_seed(key);
    let mut order: Vec<usize> = (0..cells).collect();
    // Fisher–Yates written out over a named generator: a library's shuffle may change between releases.
    for last in (1..cells).rev() {
        order.swap(last, below(&mut rng, last as u64 + 1) as usize);
    }
    order
}

fn key(of: &[u8], seed: Seed, repeat: u32, name: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(of);
    hash.update(seed.0.to_le_bytes());
    hash.update(repeat.to_le_bytes());
    // Last, so that its length needs no delimiter.
    hash.update(name);
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
