//! Bounds of the group-sequential t test: how small a p-value must be at each look for the chance of a false finding over all looks
//! together to be the level.
//!
//! At the look after `n` values the plain p-value is held against `level · weight(n) / Σ weight`.

use crate::analysis::student;

/// The looks of a sequence: after each value from `first` to `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Looks {
    first: u32,
    last: u32,
}

impl Looks {
    /// After each value from `first` on, which is at least 2, to `last`.
    pub(crate) fn new(first: u32, last: u32) -> Looks {
        let first = first.max(2);
        Looks { first, last: last.max(first) }
    }

    /// The p-value over the whole sequence of the plain two-sided p-value `p` of a t test of the first `n` values.
    pub(crate) fn p(self, n: usize, p: f64) -> f64 {
        (p / self.weight(n) * self.total()).min(1.0)
    }

    /// The plain two-sided level that is tested at after `n` values for the whole sequence to be tested at `level`.
    pub(crate) fn nominal(self, n: usize, level: f64) -> f64 {
        (level * self.weight(n) / self.total()).min(1.0)
    }

    /// How many standard errors of `n` values an interval reaches to either side that holds the mean at every look with the chance
    /// 1 − `level`.
    pub(crate) fn critical(self, n: usize, level: f64) -> f64 {
        student::critical(self.nominal(n, level), (n - 1) as f64)
    }

    /// What a look may spend, as a multiple of what the last one may.
    fn weight(self, n: usize) -> f64 {
        (n as f64 / f64::from(self.last)).min(1.0).powf(STEEP)
    }

    fn total(self) -> f64 {
        (self.first..=self.last).map(|n| self.weight(n as usize)).sum()
    }
}

/// How much less early looks may spend than late ones.
const STEEP: f64 = 1.0;
