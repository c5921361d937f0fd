//! The order of runs: seeded blocks over repeats, so that a drift of the machine does not look like an effect.
//!
//! What a comparison puts side by side runs one after another, a round. Of four rounds that follow each other two have the
//! order of the others reversed, AB and BA, so that a drift takes from one arm what it gave it before; which two is drawn
//! for every four. On a machine that remembers its last run, the more regularly rounds turn, the more often equal servers
//! look different, instead of in 5 of 100 comparisons: in up to 7.1 with strict alternation, which puts two runs of
//! one arm together wherever two rounds meet; in up to 6.4 where one of every two rounds turns; in up to 5.8 so. After any
//! number of rounds one arm has come first at most two times more often than the other, and of three rounds never in all.
//! The order of a round does not depend on how many there are, for repeats may be added later.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

use crate::units::Seed;

/// The order in which repeat `repeat` of the sweep called `sweep` visits its `cells`: each position once.
///
/// It depends on the three names and the number of cells alone, never on what is in the cells or in other sweeps.
pub fn block(seed: Seed, sweep: &str, repeat: u32, cells: usize) -> Vec<usize> {
    shuffled(&mut rng(b"sweepline order 1\0", seed, repeat, sweep.as_bytes()), cells)
}

/// The same where the cells of each of `groups` are compared: groups are shuffled, their cells stay together.
pub fn rounds(seed: Seed, sweep: &str, repeat: u32, groups: &[Vec<usize>]) -> Vec<usize> {
    let arms = |at: usize| {
        // Of four repeats the same draw.
        let name = [&(at as u64).to_le_bytes()[..], sweep.as_bytes()].concat();
        let mut rng = rng(b"sweepline rounds 2\0", seed, repeat / ROUNDS, &name);
        let mut arms = shuffled(&mut rng, groups[at].len());
        let place = shuffled(&mut rng, ROUNDS as usize)[(repeat % ROUNDS) as usize];
        if place % 2 == 1 {
            arms.reverse();
        }
        arms.into_iter().map(move |arm| groups[at][arm])
    };
    block(seed, sweep, repeat, groups.len()).into_iter().flat_map(arms).collect()
}

/// Rounds of which half are reversed.
const ROUNDS: u32 = 4;

fn shuffled(rng: &mut ChaCha8Rng, cells: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..cells).collect();
    // Fisher–Yates written out over a named generator: a library's shuffle may change between releases.
    for last in (1..cells).rev() {
        order.swap(last, below(rng, last as u64 + 1) as usize);
    }
    order
}

fn rng(of: &[u8], seed: Seed, number: u32, name: &[u8]) -> ChaCha8Rng {
    let mut hash = Sha256::new();
    hash.update(of);
    hash.update(seed.0.to_le_bytes());
    hash.update(number.to_le_bytes());
    // Last, so that its length needs no delimiter.
    hash.update(name);
    ChaCha8Rng::from_seed(hash.finalize().into())
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
