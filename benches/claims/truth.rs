//! The true values of a queue: the distribution of the requests' times, from one long simulation.

use super::queue::{Chain, Queue};

/// Mantissa bits of a class: classes are 1/2 048 of an octave wide.
const BITS: u32 = 11;
const SHIFT: u32 = 52 - BITS;
/// Octaves from 2⁻³² to 2³².
const LOWEST: u64 = (1023 - 32) << BITS;
const CLASSES: usize = 64 << BITS;

/// A distribution, as counts in classes. Values of exactly 1, the service time of `M/D/k` without a wait,
/// are counted separately.
#[derive(Debug, Clone)]
pub struct Distribution {
    counts: Vec<u64>,
    ones: u64,
    all: u64,
}

impl Distribution {
    pub fn new() -> Distribution {
        Distribution { counts: vec![0; CLASSES], ones: 0, all: 0 }
    }

    pub fn add(&mut self, value: f64) {
        self.all += 1;
        if value == 1.0 {
            self.ones += 1;
        } else {
            self.counts[class(value)] += 1;
        }
    }

    /// Returns the level above which a share of the values lies; `None` if no level has this share to within
    /// 1 % because many values are equal.
    pub fn limit(&self, above: f64) -> Option<f64> {
        let level = self.quantile(1.0 - above);
        let is_one = level == 1.0 && (self.above_one() / above - 1.0).abs() > 0.01;
        (!is_one).then_some(level)
    }

    /// Returns the value below which a share of the values lies.
    pub fn quantile(&self, share: f64) -> f64 {
        let wanted = share * self.all as f64;
        let mut below = 0.0;
        for (class, count) in self.counts.iter().enumerate() {
            if class == class_of_one() && self.ones > 0 {
                below += self.ones as f64;
                if below >= wanted {
                    return 1.0;
                }
            }
            let count = *count as f64;
            if count > 0.0 && below + count >= wanted {
                let within = ((wanted - below) / count).max(0.0);
                return low_of(class) + within * (low_of(class + 1) - low_of(class));
            }
            below += count;
        }
        f64::INFINITY
    }

    fn above_one(&self) -> f64 {
        self.counts[class_of_one()..].iter().sum::<u64>() as f64 / self.all as f64
    }
}

fn class_of_one() -> usize {
    class(1.0)
}

fn class(value: f64) -> usize {
    let class = (value.to_bits() >> SHIFT).saturating_sub(LOWEST);
    (class as usize).min(CLASSES - 1)
}

fn low_of(class: usize) -> f64 {
    f64::from_bits((class as u64 + LOWEST) << SHIFT)
}

/// The true values of a queue.
#[derive(Debug, Clone)]
pub struct Truth {
    pub queue: Queue,
    pub took: Distribution,
}

impl Truth {
    /// Simulates this many requests.
    pub fn of(queue: Queue, requests: u64, seed: u64) -> Truth {
        let mut chain = Chain::warm(&queue, seed);
        let mut took = Distribution::new();
        for _ in 0..requests {
            took.add(chain.next().took);
        }
        Truth { queue, took }
    }
}

impl Extend<f64> for Distribution {
    fn extend<T: IntoIterator<Item = f64>>(&mut self, values: T) {
        values.into_iter().for_each(|value| self.add(value));
    }
}
