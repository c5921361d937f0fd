//! Draws gaps between arrivals, with a mean of 1, from a seeded stream of random bits.
//!
//! All numbers are derived here from the bits of ChaCha8, so that no new release of a library changes the
//! arrivals of a run. Exponential gaps use the inverse transform. Gamma gaps use the method of Marsaglia &
//! Tsang (2000), which needs a normal variate from Marsaglia's polar method. The golden values in
//! `schedule_tests` pin the results.

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::plan::Process;

/// An endless stream of gaps; a clone continues from the position of the original.
#[derive(Debug, Clone)]
pub(crate) struct UnitGaps {
    rng: ChaCha8Rng,
    law: Law,
}

/// The distribution of the gaps.
#[derive(Debug, Clone, Copy)]
enum Law {
    Equal,
    Exponential,
    Gamma { shape: f64 },
}

impl UnitGaps {
    /// Creates the gaps of an arrival process for this seed.
    pub(crate) fn new(process: Process, seed: [u8; 32]) -> UnitGaps {
        let law = match process {
            // A trace draws no random gaps, because its instants are given.
            Process::Constant | Process::Trace => Law::Equal,
            Process::Poisson => Law::Exponential,
            Process::Gamma(gamma) => Law::Gamma { shape: gamma.shape() },
        };
        UnitGaps { rng: ChaCha8Rng::from_seed(seed), law }
    }

    /// Returns the next gap, in units of the mean gap.
    pub(crate) fn next(&mut self) -> f64 {
        match self.law {
            Law::Equal => 1.0,
            Law::Exponential => -(1.0 - self.uniform()).ln(),
            // The mean of a gamma variate of scale 1 is its shape, so dividing by the shape gives a mean of
            // 1.
            Law::Gamma { shape } => self.gamma(shape) / shape,
        }
    }

    /// Returns a uniform variate on [0, 1), from 53 random bits.
    fn uniform(&mut self) -> f64 {
        (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a standard normal variate.
    fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let squared = x * x + y * y;
            if squared > 0.0 && squared < 1.0 {
                // The second variate of the pair is discarded because a stream without stored variates is
                // simpler to clone.
                return x * (-2.0 * squared.ln() / squared).sqrt();
            }
        }
    }

    /// Returns a gamma variate of scale 1. A shape below 1 is handled by drawing with the shape plus 1 and
    /// multiplying by a power of a uniform variate.
    fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            let above = self.gamma(shape + 1.0);
            return above * (1.0 - self.uniform()).powf(1.0 / shape);
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && (1.0 - self.uniform()).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }
}
