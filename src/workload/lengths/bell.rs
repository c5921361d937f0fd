//! The normal distribution from which normal and lognormal lengths are drawn.

use crate::plan::model::lengths::Range;

use super::normal;

/// A normal distribution truncated to a range. Values are drawn by the inverse of the distribution
/// within the share that remains.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bell {
    /// Mean before truncation.
    pub mean: f64,
    /// Standard deviation before truncation.
    pub sd: f64,
    /// The truncation limits, in standard deviations from the mean.
    pub ends: [f64; 2],
    /// The truncation limits in tokens.
    within: Range,
    /// The share below the lower limit and the share that remains, both measured from the limit
    /// that is closer to its tail.
    low: f64,
    left: f64,
    mirrored: bool,
}

impl Bell {
    /// Creates the distribution with this mean and deviation, truncated to `within`; `scale` maps tokens to
    /// the distribution's axis.
    pub(super) fn new(mean: f64, sd: f64, within: Range, scale: impl Fn(u32) -> f64) -> Bell {
        let ends = [within.min, within.max].map(|tokens| (scale(tokens) - mean) / sd);
        // In the upper tail, shares are close to 1, where floats are coarse; the mirrored shares are
        // close to 0.
        let mirrored = ends[0] > 0.0;
        let low = if mirrored { normal::below(-ends[1]) } else { normal::below(ends[0]) };
        Bell { mean, sd, ends, within, low, left: normal::between(ends[0], ends[1]), mirrored }
    }

    /// Returns the share that remains after truncation.
    pub(crate) fn left(&self) -> f64 {
        self.left
    }

    /// Returns the value at the quantile `u` of the truncated distribution.
    pub(super) fn at(&self, u: f64) -> f64 {
        let u = if self.mirrored { 1.0 - u } else { u };
        let p = (self.low + self.left * u).clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON / 2.0);
        let z = normal::quantile(p);
        self.mean + self.sd * if self.mirrored { -z } else { z }
    }

    /// Returns the nearest whole token within the limits.
    pub(super) fn rounded(&self, tokens: f64) -> u32 {
        // The conversion of a float saturates: it causes neither NaN nor overflow.
        (libm::floor(tokens + 0.5) as u32).clamp(self.within.min, self.within.max)
    }
}
