//! The order of runs: one seeded, shuffled block per repeat, so that a drift of the machine does not look
//! like an effect.
//!
//! The cells of a comparison run one after another, as a round. Of every four consecutive rounds, two are
//! reversed (BA instead of AB), so that a drift affects both arms alike. Which two are reversed is drawn at
//! random. If each run is influenced by the previous run on the machine, equal servers look different in more
//! than the nominal 5 of 100 comparisons. The more regularly rounds alternate, the more often this happens:
//! in up to 7.1 of 100 comparisons with strict alternation, which puts two runs of one arm next to each other
//! at every boundary between rounds; in up to 6.4 if one of every two rounds is reversed; and in up to 5.8
//! with this scheme. After any number of rounds, the number of rounds in which an arm came first differs by
//! at most two between the arms, and after three rounds, no arm has come first in all of them. The order of a
//! round does not depend on the number of rounds, because repeats may be added later.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

use crate::units::Seed;

/// Returns the order in which repeat `repeat` of the sweep called `sweep` visits its `cells`: each position
/// once.
///
/// The order depends only on the seed, the name, the repeat and the number of cells, never on the content of
/// cells or on other sweeps.
pub fn block(seed: Seed, sweep: &str, repeat: u32, cells: usize) -> Vec<usize> {
    shuffled(&mut rng(b"sweepline order 1\0", seed, repeat, sweep.as_bytes()), cells)
}

/// Returns the order in which repeat `repeat` of a sweep visits compared cells: `groups` are shuffled, and
/// the cells of a group stay together.
pub fn rounds(seed: Seed, sweep: &str, repeat: u32, groups: &[Vec<usize>]) -> Vec<usize> {
    let arms = |at: usize| {
        // Four consecutive repeats share the same random draw.
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

/// Number of consecutive rounds of which half are reversed.
const ROUNDS: u32 = 4;

fn shuffled(rng: &mut ChaCha8Rng, cells: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..cells).collect();
    // Fisher–Yates with a named generator, because the shuffle of a library may change between releases.
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
    // The name comes last, so that it needs no delimiter.
    hash.update(name);
    ChaCha8Rng::from_seed(hash.finalize().into())
}

/// A uniform random number below `bound`. Draws that would favor low numbers are discarded.
fn below(rng: &mut ChaCha8Rng, bound: u64) -> u64 {
    let fair = u64::MAX - u64::MAX % bound;
    loop {
        let draw = rng.next_u64();
        if draw < fair {
            return draw % bound;
        }
    }
}
