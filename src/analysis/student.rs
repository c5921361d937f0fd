//! Student's t distribution, central and noncentral: intervals over runs, tests between them, and their power.

use std::f64::consts::SQRT_2;

use statrs::function::beta::{beta_reg, inv_beta_reg};
use statrs::function::erf::erfc;
use statrs::function::gamma::ln_gamma;

/// Returns P(|T| ≥ |t|) with `df` degrees of freedom: the two-sided p-value.
pub(crate) fn two_sided(t: f64, df: f64) -> f64 {
    if t.is_infinite() { 0.0 } else { beta_reg(df / 2.0, 0.5, df / (df + t * t)) }
}

/// Returns the value that |T| exceeds with probability `level`, with `df` degrees of freedom.
pub fn critical(level: f64, df: f64) -> f64 {
    let x = inv_beta_reg(df / 2.0, 0.5, level);
    (df * (1.0 - x) / x).sqrt()
}

/// Returns P(|T′| > t) with `df` degrees of freedom and noncentrality `shift`: the power of a two-sided
/// test with the critical value `t`, if the mean lies `shift` standard errors away from the tested
/// value.
///
/// T′ is (Z + shift) / S with S² = χ²/df, so the result is the mean of the normal probability over S.
pub fn beyond(t: f64, df: f64, shift: f64) -> f64 {
    over_spread(df, |s| upper(t * s - shift) + upper(t * s + shift))
}

/// Returns the mean of `of` over S, where S is the measured standard deviation as a multiple of the true one,
/// with S² = χ²/df.
pub(crate) fn over_spread(df: f64, of: impl Fn(f64) -> f64) -> f64 {
    // The probability beyond 12 standard deviations of S is below 1e-16.
    let reach = 12.0 / (2.0 * df).sqrt();
    let (from, to) = ((1.0 - reach).max(0.0), 1.0 + reach);
    let scale = std::f64::consts::LN_2 + df / 2.0 * (df / 2.0).ln() - ln_gamma(df / 2.0);
    let density = |s: f64| (scale + (df - 1.0) * s.ln() - df * s * s / 2.0).exp();
    integral(from, to, |s| density(s) * of(s))
}

/// Returns P(Z > z) of the standard normal distribution.
pub fn upper(z: f64) -> f64 {
    0.5 * erfc(z / SQRT_2)
}

/// Returns the integral of a smooth function by the five-point Gauss–Legendre rule on panels of equal width.
fn integral(from: f64, to: f64, of: impl Fn(f64) -> f64) -> f64 {
    const PANELS: usize = 120;
    let (root, seventy) = ((10.0f64 / 7.0).sqrt(), 70.0f64.sqrt());
    let (near, far) = ((5.0 - 2.0 * root).sqrt() / 3.0, (5.0 + 2.0 * root).sqrt() / 3.0);
    let (heavy, light) = ((322.0 + 13.0 * seventy) / 900.0, (322.0 - 13.0 * seventy) / 900.0);
    let rule = [(-far, light), (-near, heavy), (0.0, 128.0 / 225.0), (near, heavy), (far, light)];
    let half = (to - from) / PANELS as f64 / 2.0;
    let panel = |index: usize| {
        let middle = from + (2 * index + 1) as f64 * half;
        rule.iter().map(|(node, weight)| weight * of(middle + node * half)).sum::<f64>() * half
    };
    (0..PANELS).map(panel).sum()
}

/// Returns the smallest number of at least 0 for which `reached` holds. `reached` must not become false again
/// for larger numbers.
pub(crate) fn bisect(reached: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while !reached(high) && high < 1e12 {
        (low, high) = (high, high * 2.0);
    }
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return high;
        }
        if reached(middle) { high = middle } else { low = middle }
    }
}
