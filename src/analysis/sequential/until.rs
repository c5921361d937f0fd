//! Repeats until the mean over runs is known precisely enough.
//!
//! The rule is Chow and Robbins's (1965, Annals of Mathematical Statistics 36, 457–462) with Student's
//! t: continue until the interval of the runs so far is short enough. The unmodified rule stops too
//! often on runs that are close to each other by chance (Starr 1966, Annals of Mathematical Statistics
//! 37, 36–50). Its 95 % intervals then contain the mean in only 90 % of cases, and in 67 % if each run
//! inherits half of the previous run's deviation. The interval is therefore multiplied by [`WIDER`];
//! this wider interval holds in all of these cases (`docs/SEQUENTIAL.md`).

use crate::analysis::paired::{moments, power::LEVEL};
use crate::analysis::student;

/// The rule for when a cell has enough repeats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Until {
    /// The required precision of the mean: 0.02 if its 95 % interval should lie within ±2 % of the mean.
    pub within: f64,
    /// Minimum number of runs before the first look; must be at least 3.
    pub at_least: u32,
    /// Maximum number of runs.
    pub at_most: u32,
}

/// How precisely a mean is known. `half` is half the width of its interval, as a share of the mean. Wherever
/// the repeats stop, the interval contains the mean in 95 % of cases, even if each run inherits half of the
/// previous run's deviation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Precision {
    /// The mean is known precisely enough.
    Reached {
        /// Half the width of the interval, as a share of the mean.
        half: f64,
        /// The mean.
        mean: f64,
    },
    /// The mean is not known precisely enough yet.
    NotYet {
        /// Half the width of the interval; `None` with too few runs, or if the mean is 0.
        half: Option<f64>,
        /// Expected total number of runs if they continue to deviate as they have so far; `None` if
        /// `at_most` runs will not suffice, or if the number cannot be estimated.
        expect: Option<u32>,
    },
    /// All runs are complete, but the mean is not known precisely enough.
    AtMost {
        /// Half the width of the interval; `None` if the mean is 0.
        half: Option<f64>,
    },
}

/// Minimum number of runs for a result.
const FEWEST: u32 = 3;

/// Factor by which the interval must be wider than Student's interval to hold wherever the repeats stop.
/// Determined by simulation.
const WIDER: f64 = 2.5;

/// Returns half the width of the interval from `n` runs, as a share of the mean, if the runs' standard
/// deviation is the share `share` of the mean.
fn half(n: u32, share: f64) -> f64 {
    WIDER * student::critical(LEVEL, f64::from(n - 1)) * share / f64::from(n).sqrt()
}

/// Evaluates the values of the runs so far, in the order of the repeats. Only the first `at_most` values
/// count.
pub fn known(until: &Until, values: &[f64]) -> Precision {
    let at_least = until.at_least.max(FEWEST);
    let at_most = until.at_most.max(at_least);
    let values = &values[..values.len().min(at_most as usize)];
    let n = values.len() as u32;
    let moments = moments(values).filter(|(mean, sd)| n >= at_least && *mean != 0.0 && (sd / mean).is_finite());
    let Some((mean, sd)) = moments else {
        return if n >= at_most {
            Precision::AtMost { half: None }
        } else {
            Precision::NotYet { half: None, expect: None }
        };
    };
    let share = sd / mean.abs();
    let now = half(n, share);
    if now <= until.within {
        return Precision::Reached { half: now, mean };
    }
    if n >= at_most {
        return Precision::AtMost { half: Some(now) };
    }
    let expect = (n + 1..=at_most).find(|n| half(*n, share) <= until.within);
    Precision::NotYet { half: Some(now), expect }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNTIL: Until = Until { within: 0.02, at_least: 3, at_most: 12 };

    #[test]
    fn runs_that_are_alike_are_enough_and_others_go_on_to_the_most() {
        assert_eq!(known(&UNTIL, &[100.0, 100.0]), Precision::NotYet { half: None, expect: None });
        assert_eq!(known(&UNTIL, &[100.0; 3]), Precision::Reached { half: 0.0, mean: 100.0 });
        let Precision::Reached { half, mean } = known(&UNTIL, &[100.0, 100.2, 99.8]) else { panic!("alike") };
        // Half the width of the interval is 2.5 × 4.303 × 0.2 / √3, and the mean is 100.
        assert!((half - 0.012_42).abs() < 1e-5 && (mean - 100.0).abs() < 1e-9, "{half}");
        let Precision::NotYet { half: Some(half), expect: Some(expect) } = known(&UNTIL, &[100.0, 101.0, 99.0]) else {
            panic!("expected more runs: the values differ by more")
        };
        // 2.5 × t × 0.01 / √n is below 0.02 with 9 or more runs.
        assert!((half - 0.062_1).abs() < 1e-4 && expect == 9, "{half} {expect}");
        let wild = [50.0, 150.0, 100.0, 90.0];
        assert!(matches!(known(&UNTIL, &wild), Precision::NotYet { half: Some(_), expect: None }));
        let all: Vec<f64> = wild.iter().copied().cycle().take(14).collect();
        assert_eq!(known(&UNTIL, &all), known(&UNTIL, &all[..12]));
        assert!(matches!(known(&UNTIL, &all), Precision::AtMost { half: Some(half) } if half > 0.02));
    }

    #[test]
    fn at_least_so_many_are_made_and_of_a_mean_of_zero_nothing_is_said() {
        let until = Until { at_least: 5, ..UNTIL };
        assert_eq!(known(&until, &[100.0; 4]), Precision::NotYet { half: None, expect: None });
        assert!(matches!(known(&until, &[100.0; 5]), Precision::Reached { .. }));
        assert_eq!(known(&UNTIL, &[0.0; 12]), Precision::AtMost { half: None });
        assert_eq!(known(&UNTIL, &[f64::NAN; 12]), Precision::AtMost { half: None });
    }
}
