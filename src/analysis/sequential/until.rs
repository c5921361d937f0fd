//! Repeats until the mean over runs is known well enough.

use super::Looks;
use crate::analysis::paired::{moments, power::LEVEL};

/// When the repeats of a cell are enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Until {
    /// How near the mean is to be known: 0.02 where its 95 % interval is to lie within ±2 % of it.
    pub within: f64,
    /// Fewest runs; looked at first after these. Below 3 it is 3.
    pub at_least: u32,
    /// Most runs.
    pub at_most: u32,
}

/// How well a mean is known. `half` is half of its interval as a share of the mean: the interval holds the mean at every look, wherever
/// the repeats stop, with a chance of 95 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Precision {
    /// Well enough.
    Reached {
        /// Half of the interval, as a share of the mean.
        half: f64,
        /// The mean.
        mean: f64,
    },
    /// Not yet.
    NotYet {
        /// Half of the interval; none from too few runs, or where the mean is 0.
        half: Option<f64>,
        /// How many runs there will be in all, if they go on to deviate as they do; none where `at_most` will not do, or nobody can tell.
        expect: Option<u32>,
    },
    /// All runs are made, and it is not known well enough.
    AtMost {
        /// Half of the interval; none where the mean is 0.
        half: Option<f64>,
    },
}

/// Fewest runs that anything is said of.
const FEWEST: u32 = 3;

/// The values of the runs so far, in the order of the repeats. Only the first `at_most` are looked at.
pub fn known(until: &Until, values: &[f64]) -> Precision {
    let at_least = until.at_least.max(FEWEST);
    let at_most = until.at_most.max(at_least);
    let values = &values[..values.len().min(at_most as usize)];
    let n = values.len() as u32;
    let looks = Looks::new(at_least, at_most);
    let told = moments(values).filter(|(mean, sd)| n >= at_least && *mean != 0.0 && sd.is_finite());
    let half_of = |n: u32, share: f64| looks.critical(n as usize, LEVEL) * share / f64::from(n).sqrt();
    let half = told.map(|(mean, sd)| (mean, half_of(n, sd / mean.abs())));
    match half {
        Some((mean, half)) if half <= until.within => Precision::Reached { half, mean },
        _ if n >= at_most => Precision::AtMost { half: half.map(|(_, half)| half) },
        Some((mean, half)) => {
            let deviation = told.map_or(f64::INFINITY, |(_, sd)| sd / mean.abs());
            let expect = (n + 1..=at_most).find(|n| half_of(*n, deviation) <= until.within);
            Precision::NotYet { half: Some(half), expect }
        }
        None => Precision::NotYet { half: None, expect: None },
    }
}
