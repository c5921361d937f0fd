//! Think times: how long the user of a conversation pauses before a turn. They depend only on seed,
//! conversation and turn.

use sha2::{Digest, Sha256};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::plan::Think;
use crate::plan::model::talk::{Exponential, Lognormal, Uniform};
use crate::units::Nanos;

/// Upper limit of a pause, in nanoseconds: one week, however long the tail of the distribution is.
const LONGEST: f64 = 7.0 * 24.0 * 3600.0 * 1e9;

/// Draws the think times of one run.
#[derive(Debug, Clone)]
pub(super) struct Pauses {
    key: [u8; 32],
    law: Law,
}

/// A distribution prepared for drawing with the inverse of its distribution function, within its truncation
/// limits. Times are in nanoseconds.
#[derive(Debug, Clone)]
enum Law {
    Constant(u64),
    Uniform {
        min: f64,
        max: f64,
    },
    /// `shares` contains the values of the untruncated distribution function at the truncation limits.
    Exponential {
        mean: f64,
        shares: [f64; 2],
    },
    /// The normal distribution of the logarithm; `shares` contains its distribution function at the
    /// logarithms of the truncation limits.
    Lognormal {
        logarithm: Normal,
        shares: [f64; 2],
    },
}

impl Pauses {
    /// Prepares draws from the distribution `think` with `key`.
    pub(super) fn new(think: &Think, key: [u8; 32]) -> Pauses {
        Pauses { key, law: Law::new(think) }
    }

    /// Returns the pause before turn `turn` of conversation `conversation`, in nanoseconds.
    pub(super) fn at(&self, conversation: u64, turn: u32) -> u64 {
        if let Law::Constant(time) = self.law {
            return time;
        }
        let mut hash = Sha256::new();
        hash.update(self.key);
        hash.update(conversation.to_le_bytes());
        hash.update(turn.to_le_bytes());
        let digest: [u8; 32] = hash.finalize().into();
        let bits = u64::from_le_bytes(std::array::from_fn(|byte| digest[byte]));
        // The middle of one of 2^53 intervals from 0 to 1, so the result is never 0 or 1.
        self.law.at(((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64)
    }
}

impl Law {
    fn new(think: &Think) -> Law {
        let nanos = |time: Nanos| time.0 as f64;
        let cut = |min: Option<Nanos>, max: Option<Nanos>| (min.map_or(0.0, nanos), max.map_or(f64::INFINITY, nanos));
        match *think {
            Think::Constant(Nanos(time)) => Law::Constant(time),
            Think::Uniform(Uniform { min, max }) => Law::Uniform { min: nanos(min), max: nanos(max) },
            Think::Exponential(Exponential { mean, min, max }) => {
                let (mean, (min, max)) = (nanos(mean), cut(min, max));
                Law::Exponential { mean, shares: [min, max].map(|end| -(-end / mean).exp_m1()) }
            }
            Think::Lognormal(Lognormal { mean, sd, min, max }) => {
                let (mean, sd, (min, max)) = (nanos(mean), nanos(sd), cut(min, max));
                let variance = (sd / mean).powi(2).ln_1p();
                let logarithm = Normal::new(mean.ln() - variance / 2.0, variance.sqrt());
                let logarithm = logarithm.expect("mean and deviation are above 0: `check` rejects others");
                Law::Lognormal { shares: [min, max].map(|end| logarithm.cdf(end.ln())), logarithm }
            }
        }
    }

    /// Returns the time at the quantile `u` (above 0 and below 1), in nanoseconds.
    fn at(&self, u: f64) -> u64 {
        let between = |[low, high]: [f64; 2]| low + (high - low) * u;
        let time = match self {
            Law::Constant(time) => return *time,
            Law::Uniform { min, max } => between([*min, *max]),
            Law::Exponential { mean, shares } => -mean * (-between(*shares)).ln_1p(),
            Law::Lognormal { logarithm, shares } => logarithm.inverse_cdf(between(*shares)).exp(),
        };
        time.min(LONGEST).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(think: &str) -> Vec<f64> {
        let pauses = Pauses::new(&serde_yaml::from_str(think).unwrap(), [7; 32]);
        let drawn = (0..20_000u64).flat_map(|conversation| (1..6).map(move |turn| (conversation, turn)));
        drawn.map(|(conversation, turn)| pauses.at(conversation, turn) as f64 / 1e9).collect()
    }

    fn moments(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        (mean, (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt())
    }

    /// With 100 000 draws, the mean is accurate to within five standard errors, and the standard deviation to
    /// within 3 %.
    #[test]
    fn draws_have_the_moments_that_were_asked_for() {
        for (think, mean, sd) in [
            ("{ uniform: { min: 2s, max: 10s } }", 6.0, 8.0 / 12f64.sqrt()),
            ("{ exponential: { mean: 8s } }", 8.0, 8.0),
            // Truncating the distribution at its mean multiplies the mean by 1 − x/(eˣ − 1) with x = 1.
            ("{ exponential: { mean: 8s, max: 8s } }", 8.0 * (1.0 - 1.0 / 1f64.exp_m1()), 2.2532),
            // The distribution is memoryless, so the part above 3 s is shifted by 3 s.
            ("{ exponential: { mean: 8s, min: 3s } }", 11.0, 8.0),
            ("{ lognormal: { mean: 8s, sd: 6s } }", 8.0, 6.0),
        ] {
            let values = draws(think);
            let (drawn_mean, drawn_sd) = moments(&values);
            assert!((drawn_mean - mean).abs() < 5.0 * sd / (values.len() as f64).sqrt(), "{think}: mean {drawn_mean}");
            assert!((drawn_sd / sd - 1.0).abs() < 0.03, "{think}: deviation {drawn_sd}");
        }
    }

    #[test]
    fn a_cut_holds_and_leaves_the_shape_inside_it() {
        let mut values = draws("{ lognormal: { mean: 8s, sd: 6s, min: 1s, max: 20s } }");
        assert!(values.iter().all(|value| (1.0..=20.0).contains(value)));
        // Kolmogorov-Smirnov test against the truncated distribution; the limit is the 99.9 % point for n =
        // 100 000.
        values.sort_by(f64::total_cmp);
        let variance = (1.0 + 0.75f64.powi(2)).ln();
        let normal = Normal::new(8f64.ln() - variance / 2.0, variance.sqrt()).unwrap();
        let below = |x: f64| normal.cdf(x.ln());
        let n = values.len() as f64;
        let distance = |(at, x): (usize, &f64)| {
            let share = (below(*x) - below(1.0)) / (below(20.0) - below(1.0));
            (share - at as f64 / n).abs().max((share - (at as f64 + 1.0) / n).abs())
        };
        let ks = values.iter().enumerate().map(distance).fold(0.0, f64::max);
        assert!(ks < 1.95 / n.sqrt(), "{ks}");
    }

    #[test]
    fn a_pause_belongs_to_its_turn() {
        let pauses = |key| Pauses::new(&serde_yaml::from_str("{ uniform: { min: 0s, max: 1s } }").unwrap(), [key; 32]);
        assert_eq!(pauses(1).at(3, 2), pauses(1).at(3, 2));
        let others = [pauses(1).at(3, 3), pauses(1).at(4, 2), pauses(2).at(3, 2)];
        assert!(others.iter().all(|other| *other != pauses(1).at(3, 2)));
        assert_eq!(Pauses::new(&Think::Constant(Nanos(5)), [0; 32]).at(0, 1), 5);
    }
}
