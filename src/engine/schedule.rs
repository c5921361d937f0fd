//! When requests of an open loop are wanted: a pure function of load, phases and seed, known before the first request.
//!
//! Unit gaps (mean 1) come from a seeded stream; their running sum is the time at which a process of rate 1 would
//! arrive. The rate scales it, and during fill the rate rises linearly from 0, so that the expected number of arrivals
//! by time t is Λ(t) = q·t²/2F within fill and q·(t − F/2) after it; arrival k is Λ⁻¹ of the k-th sum (time change of a
//! Poisson process: Lewis & Shedler 1979).

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::plan::Arrivals;

/// The arrivals of an open loop, in order, as nanoseconds since the run's start. Endless; a copy goes on from where the
/// original is.
#[derive(Debug, Clone)]
pub struct Schedule {
    rng: ChaCha8Rng,
    arrivals: Arrivals,
    /// Arrivals per second.
    rate: f64,
    /// Length of fill in seconds.
    fill: f64,
    /// Running sum of unit gaps.
    sum: f64,
    next: u64,
}

impl Schedule {
    /// The schedule of `qps` arrivals per second after a linear rise over `fill_ns`.
    pub fn new(arrivals: Arrivals, qps: f64, fill_ns: u64, seed: [u8; 32]) -> Schedule {
        let rng = ChaCha8Rng::from_seed(seed);
        let mut schedule = Schedule { rng, arrivals, rate: qps, fill: fill_ns as f64 / 1e9, sum: 0.0, next: 0 };
        schedule.advance();
        schedule
    }

    /// The next arrival, without taking it.
    pub fn peek(&self) -> u64 {
        self.next
    }

    /// Takes the next arrival.
    pub fn take(&mut self) -> u64 {
        let at = self.next;
        self.advance();
        at
    }

    fn advance(&mut self) {
        self.sum += match self.arrivals {
            Arrivals::Constant => 1.0,
            // Inverse transform over 53 random bits: exponential gaps that no library release can change.
            Arrivals::Poisson => -(1.0 - (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64).ln(),
        };
        let by_fill = self.rate * self.fill / 2.0;
        let seconds = if self.sum < by_fill {
            (2.0 * self.fill * self.sum / self.rate).sqrt()
        } else {
            self.fill / 2.0 + self.sum / self.rate
        };
        self.next = (seconds * 1e9).round() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn until(mut schedule: Schedule, end: u64) -> Vec<u64> {
        std::iter::from_fn(|| (schedule.peek() < end).then(|| schedule.take())).collect()
    }

    #[test]
    fn constant_arrivals_are_evenly_spaced_after_fill() {
        let times = until(Schedule::new(Arrivals::Constant, 10.0, 2_000_000_000, [0; 32]), 12_000_000_000);
        let steady: Vec<u64> = times.iter().copied().filter(|t| *t >= 2_000_000_000).collect();
        assert_eq!(steady.len(), 100);
        assert!(steady.windows(2).all(|w| (w[1] - w[0]).abs_diff(100_000_000) <= 1), "{steady:?}");
        let filling = times.len() - steady.len();
        assert!((9..=10).contains(&filling), "half the full rate on average over fill, got {filling}");
    }

    #[test]
    fn poisson_gaps_are_exponential() {
        // Kolmogorov–Smirnov against 1 − e^(−x): the bound is the 99.9 % point for n = 20 000.
        let times = until(Schedule::new(Arrivals::Poisson, 1000.0, 0, [7; 32]), 20_000_000_000);
        let mut gaps: Vec<f64> = times.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e6).collect();
        gaps.sort_by(f64::total_cmp);
        let n = gaps.len() as f64;
        let ks = gaps
            .iter()
            .enumerate()
            .map(|(i, x)| {
                let cdf = 1.0 - (-x).exp();
                (cdf - i as f64 / n).abs().max((cdf - (i + 1) as f64 / n).abs())
            })
            .fold(0.0, f64::max);
        assert!(ks < 1.95 / n.sqrt(), "KS {ks} over {n} gaps");
    }

    #[test]
    fn the_rate_scales_the_same_gaps() {
        let slow = until(Schedule::new(Arrivals::Poisson, 5.0, 0, [3; 32]), 100_000_000_000);
        let fast = until(Schedule::new(Arrivals::Poisson, 50.0, 0, [3; 32]), 10_000_000_000);
        assert_eq!(slow.len(), fast.len());
        assert!(slow.iter().zip(&fast).all(|(s, f)| (s / 10).abs_diff(*f) <= 1));
    }

    proptest! {
        #[test]
        fn arrivals_never_go_back(qps in 0.1f64..5_000.0, fill in 0u64..5_000_000_000, seed: u8) {
            let mut schedule = Schedule::new(Arrivals::Poisson, qps, fill, [seed; 32]);
            let times: Vec<u64> = (0..500).map(|_| schedule.take()).collect();
            prop_assert!(times.windows(2).all(|w| w[0] <= w[1]));
        }
    }
}
