//! Computes the mean and the standard deviation of lengths with closed-form formulas, for estimates and as a
//! reference for the draws in tests.

use crate::plan::model::lengths::Range;

use super::bell::Bell;
use super::normal::{between, density};

/// Mean and standard deviation of a number of tokens, after truncation and before rounding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// Mean, in tokens.
    pub mean: f64,
    /// Standard deviation, in tokens.
    pub sd: f64,
}

impl Moments {
    fn new(mean: f64, second: f64) -> Moments {
        Moments { mean, sd: libm::sqrt((second - mean * mean).max(0.0)) }
    }

    /// Returns the moments of the whole numbers in a range, all with equal probability.
    pub(super) fn of_range(range: Range) -> Moments {
        let count = f64::from(range.max - range.min) + 1.0;
        let mean = (f64::from(range.min) + f64::from(range.max)) / 2.0;
        Moments { mean, sd: libm::sqrt((count * count - 1.0) / 12.0) }
    }

    /// Returns the moments of a truncated normal distribution (N. L. Johnson, S. Kotz, N. Balakrishnan,
    /// "Continuous Univariate Distributions", volume 1, section 13.10.1).
    pub(super) fn of_normal(bell: &Bell) -> Moments {
        let [a, b] = bell.ends;
        let (left, at_a, at_b) = (bell.left(), density(a), density(b));
        let shift = (at_a - at_b) / left;
        let spread = 1.0 + (a * at_a - b * at_b) / left - shift * shift;
        Moments { mean: bell.mean + bell.sd * shift, sd: bell.sd * libm::sqrt(spread.max(0.0)) }
    }

    /// Returns the moments of a truncated lognormal distribution. The k-th moment is the k-th moment of the
    /// untruncated distribution times a / b. Here b is the share of the underlying normal distribution that
    /// remains after truncation, and a is the same share if the mean is increased by k variances.
    pub(super) fn of_lognormal(bell: &Bell) -> Moments {
        let moment = |k: f64| {
            let whole = libm::exp(k * bell.mean + k * k * bell.sd * bell.sd / 2.0);
            let [a, b] = bell.ends.map(|end| end - k * bell.sd);
            whole * between(a, b) / bell.left()
        };
        Moments::new(moment(1.0), moment(2.0))
    }

    /// Returns the moments of a mixture of distributions, each with its share.
    pub(super) fn mixed(parts: impl Iterator<Item = (f64, Moments)>) -> Moments {
        let (mean, second) = parts.fold((0.0, 0.0), |(mean, second), (share, one)| {
            (mean + share * one.mean, second + share * (one.sd * one.sd + one.mean * one.mean))
        });
        Moments::new(mean, second)
    }
}
