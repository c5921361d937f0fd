//! Two arms measured round by round until they are shown to differ, or to differ by less than a margin.

use super::Looks;
use crate::analysis::paired::{self, FEWEST, PairedT, moments};
use crate::analysis::student;

/// A comparison with a look after every round from the third on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sequence {
    /// Maximum number of rounds: the repeats of the plan.
    pub at_most: u32,
    /// The chance of a false finding over the whole sequence, two-sided: 0.05 divided by the number of tests of
    /// the family.
    pub level: f64,
    /// Maximum difference that counts as no difference, as a positive number on the scale of the differences;
    /// `None` without a margin.
    pub margin: Option<f64>,
}

/// The result of a look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Look {
    /// Nothing is shown yet, and more rounds are possible.
    GoOn,
    /// The arms differ.
    Different {
        /// Two-sided p-value, over the whole sequence.
        p: f64,
        /// Lower end of the interval that contains the mean difference at every look with probability 1 −
        /// level.
        low: f64,
        /// Upper end of the interval that starts at `low`.
        high: f64,
    },
    /// The arms differ by less than the margin, in both directions. Each direction is shown at 5 % over
    /// the whole sequence.
    Within {
        /// Lower end of the interval that contains the mean difference at every look with a probability of
        /// 90 %.
        low: f64,
        /// Upper end of the interval that starts at `low`.
        high: f64,
    },
    /// Every round gave the same difference, so there is no random variation and more rounds add no
    /// information.
    Constant {
        /// The difference of every round.
        difference: f64,
    },
    /// All rounds are complete, but neither a difference nor equivalence is shown. With fewer than three
    /// rounds, there are no values.
    Spent {
        /// Two-sided p-value, over the whole sequence.
        p: Option<f64>,
        /// Lower end of the interval that [`Look::Different`] describes.
        low: Option<f64>,
        /// Upper end of the interval that [`Look::Different`] describes.
        high: Option<f64>,
    },
}

/// The level of an interval whose two ends are one-sided 95 % bounds.
const TWO_SIDED: f64 = 0.1;

/// Returns the looks of a comparison of at most this many rounds.
pub(crate) fn looks(at_most: u32) -> Looks {
    Looks::new(FEWEST as u32, at_most)
}

/// Computes the paired t test of the rounds so far, as one look of a sequence of at most this many rounds.
/// The p-value and the interval hold at every look. `None` in the same cases as [`paired::t_test`].
pub(crate) fn t_test(differences: &[f64], at_most: u32) -> Option<PairedT> {
    let test = paired::t_test(differences)?;
    let looks = looks(at_most);
    let half = looks.critical(test.n, paired::power::LEVEL) * test.sd / (test.n as f64).sqrt();
    Some(PairedT { p: looks.p(test.n, test.p), low: test.mean - half, high: test.mean + half, ..test })
}

/// Evaluates the differences of the rounds so far, one for each round. They are differences of logarithms if
/// the metric is compared as a ratio. Only the first `at_most` differences count.
pub fn look(sequence: &Sequence, differences: &[f64]) -> Look {
    let at_most = sequence.at_most.max(FEWEST as u32);
    let differences = &differences[..differences.len().min(at_most as usize)];
    let (n, is_last) = (differences.len(), differences.len() >= at_most as usize);
    let Some((mean, sd)) = moments(differences).filter(|_| n >= FEWEST) else { return Look::GoOn };
    if sd <= mean.abs() * 1e-12 {
        return Look::Constant { difference: differences[0] };
    }
    let (looks, error) = (looks(at_most), sd / (n as f64).sqrt());
    let p = looks.p(n, student::two_sided(mean / error, (n - 1) as f64));
    let ends = |level: f64| {
        let half = looks.critical(n, level) * error;
        (mean - half, mean + half)
    };
    if p <= sequence.level {
        let (low, high) = ends(sequence.level);
        return Look::Different { p, low, high };
    }
    if let Some(margin) = sequence.margin.filter(|margin| mean.abs() < *margin) {
        let (low, high) = ends(TWO_SIDED);
        if -margin < low && high < margin {
            return Look::Within { low, high };
        }
    }
    if !is_last {
        return Look::GoOn;
    }
    let (low, high) = ends(sequence.level);
    Look::Spent { p: Some(p), low: Some(low), high: Some(high) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEQUENCE: Sequence = Sequence { at_most: 12, level: 0.05, margin: None };

    #[test]
    fn a_look_says_what_is_shown_and_else_goes_on() {
        let far = [0.10, 0.101, 0.099, 0.1005];
        assert_eq!(look(&SEQUENCE, &far[..2]), Look::GoOn);
        let Look::Different { p, low, high } = look(&SEQUENCE, &far) else {
            panic!("expected an end: the arms are far apart")
        };
        assert!(p < 0.05 && low > 0.0 && low < 0.1 && high > 0.1, "{p} {low} {high}");
        let noise = [0.01, -0.012, 0.004, -0.003, 0.009, -0.008, 0.002, 0.001, -0.005, 0.006, -0.004, 0.003];
        assert!((3..12).all(|n| look(&SEQUENCE, &noise[..n]) == Look::GoOn));
        let Look::Spent { p: Some(p), low: Some(low), high: Some(high) } = look(&SEQUENCE, &noise) else {
            panic!("expected all rounds")
        };
        assert!(p > 0.5 && low < 0.0 && high > 0.0, "{p} {low} {high}");
        assert_eq!(look(&SEQUENCE, &[noise, noise].concat()), look(&SEQUENCE, &noise), "no look beyond the last");
        assert_eq!(look(&SEQUENCE, &[0.5; 3]), Look::Constant { difference: 0.5 });
    }

    #[test]
    fn within_a_margin_is_shown_in_both_directions() {
        let near = [0.001, -0.001, 0.0005, -0.0005, 0.0002, 0.0, 0.0003];
        let of = |margin, differences: &[f64]| look(&Sequence { margin: Some(margin), ..SEQUENCE }, differences);
        let Look::Within { low, high } = of(0.02, &near) else { panic!("near") };
        assert!(-0.02 < low && low < 0.0 && 0.0 < high && high < 0.02);
        assert_eq!(of(0.0001, &near), Look::GoOn);
        assert!(matches!(of(0.02, &near.map(|one| one + 0.03)), Look::Different { .. }));
    }

    #[test]
    fn p_values_and_intervals_are_those_of_the_sequence_and_of_one_look_the_plain_ones() {
        let differences = [0.02, 0.035, 0.01, 0.028, 0.017];
        let plain = paired::t_test(&differences).expect("a test");
        let of = |at_most| t_test(&differences, at_most).expect("a test");
        assert!(of(12).p > plain.p && of(12).low < plain.low && of(12).high > plain.high);
        assert_eq!(of(12).mean, plain.mean);
        let three = paired::t_test(&differences[..3]).expect("a test");
        let alone = t_test(&differences[..3], 3).expect("a test");
        assert_eq!(alone.p, three.p);
        assert!((alone.low - three.low).abs() < 1e-12 && (alone.high - three.high).abs() < 1e-12, "{alone:?}");
        // At every look, the interval excludes zero if p is 5 % or less.
        for shift in 0..40 {
            let moved = differences.map(|one| one - f64::from(shift) * 0.001);
            for n in 3..=5 {
                let test = t_test(&moved[..n], 8).expect("a test");
                assert_eq!(test.p <= 0.05, test.low > 0.0 || test.high < 0.0, "{shift} {n}: {test:?}");
            }
        }
    }
}
