//! Two arms measured round by round until a difference is shown, or its absence within a margin.

use super::Looks;
use crate::analysis::paired::{self, FEWEST, PairedT, moments};
use crate::analysis::student;

/// A comparison that is looked at after every round from the third on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sequence {
    /// Most rounds: the repeats of the plan.
    pub at_most: u32,
    /// The chance of a false finding over the whole sequence, two-sided: 0.05, divided by the tests of the family.
    pub level: f64,
    /// How much a difference may be to be none, on the scale of the differences and above zero; none without a margin.
    pub margin: Option<f64>,
}

/// What a look says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Look {
    /// Nothing is shown yet, and there are rounds left.
    GoOn,
    /// The arms differ.
    Different {
        /// Two-sided p-value, over the whole sequence.
        p: f64,
        /// Lower end of the interval of the mean difference, which holds it at every look with the chance 1 − level.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// The arms differ by less than the margin, in both directions: each is shown at 5 % over the whole sequence.
    Within {
        /// Lower end of the interval, which holds the mean difference at every look with a chance of 90 %.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// Every round gave the same difference: chance has no part in it, and more rounds say nothing new.
    Constant {
        /// The difference.
        difference: f64,
    },
    /// All rounds are made, and neither is shown; nothing is known of fewer than three rounds.
    Spent {
        /// Two-sided p-value, over the whole sequence.
        p: Option<f64>,
        /// Lower end of the interval, as of [`Look::Different`].
        low: Option<f64>,
        /// Upper end.
        high: Option<f64>,
    },
}

/// The level at which the two ends of an interval are the one-sided bounds of 95 %.
const TWO_SIDED: f64 = 0.1;

/// The looks of a comparison of at most so many rounds.
pub(crate) fn looks(at_most: u32) -> Looks {
    Looks::new(FEWEST as u32, at_most)
}

/// The paired t test of the rounds so far as a look of a sequence of at most so many: p and interval hold at every look. None as for
/// [`paired::t_test`].
pub(crate) fn t_test(differences: &[f64], at_most: u32) -> Option<PairedT> {
    let test = paired::t_test(differences)?;
    let looks = looks(at_most);
    let half = looks.critical(test.n, paired::power::LEVEL) * test.sd / (test.n as f64).sqrt();
    Some(PairedT { p: looks.p(test.n, test.p), low: test.mean - half, high: test.mean + half, ..test })
}

/// The differences of the rounds so far, one of each: of logarithms where the metric is read as a ratio. Only the first `at_most` are
/// looked at.
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
    let (low, high) = ends(sequence.level);
    if low > 0.0 || high < 0.0 {
        return Look::Different { p, low, high };
    }
    let (least, most) = ends(TWO_SIDED);
    if sequence.margin.is_some_and(|margin| -margin < least && most < margin) {
        return Look::Within { low: least, high: most };
    }
    match is_last {
        true => Look::Spent { p: Some(p), low: Some(low), high: Some(high) },
        false => Look::GoOn,
    }
}
