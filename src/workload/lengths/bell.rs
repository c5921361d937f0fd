//! The normal distribution that normal and lognormal lengths are drawn by.

use crate::plan::model::lengths::Range;

use super::normal;

/// A normal distribution cut to a range: drawn by its inverse within the share that the cut leaves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bell {
    /// Mean before the cut.
    pub mean: f64,
    /// Standard deviation before the cut.
    pub sd: f64,
    /// The ends of the cut, in standard deviations from the mean.
    pub ends: [f64; 2],
    /// The ends of the cut in tokens.
    within: Range,
    /// The share below the lower end and the share that is left, both from the end that is nearer to its tail.
    low: f64,
    left: f64,
    mirrored: bool,
}

impl Bell {
    /// The bell of this mean and deviation, cut at `within` as `scale` puts tokens on its axis.
    pub(super) fn new(mean: f64, sd: f64, within: Range, scale: impl Fn(u32) -> f64) -> Bell {
        let ends = [within.min, within.max].map(|tokens| (scale(tokens) - mean) / sd);
        // In the upper tail shares are close to 1, where floats are coarse; mirrored they are close to 0.
        let mirrored = ends[0] > 0.0;
        let low = if mirrored { normal::below(-ends[1]) } else { normal::below(ends[0]) };
        Bell { mean, sd, ends, within, low, left: normal::between(ends[0], ends[1]), mirrored }
    }

    /// The share that the cut leaves.
    pub(crate) fn left(&self) -> f64 {
        self.left
    }

    /// The value at the share `u` of what is left.
    pub(super) fn at(&self, u: f64) -> f64 {
        let u = if self.mirrored { 1.0 - u } else { u };
        let p = (self.low + self.left * u).clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON / 2.0);
        let z = normal::quantile(p);
        self.mean + self.sd * if self.mirrored { -z } else { z }
    }

    /// The nearest whole token inside the cut.
    pub(super) fn rounded(&self, tokens: f64) -> u32 {
        // A float becomes the nearest whole number that there is: no NaN and no overflow comes out of it.
        (libm::floor(tokens + 0.5) as u32).clamp(self.within.min, self.within.max)
    }
}
