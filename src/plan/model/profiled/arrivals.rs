//! Converts the rates that a profile records for each stretch of time to steps of an open loop.

use std::sync::Arc;

use crate::dataset::profile;
use crate::plan::model::arrivals::Arrivals;
use crate::plan::model::process::{Gamma, Process};
use crate::plan::model::profile::{Profile, Rate, RateShape, Step};
use crate::units::{Decimal, Nanos, Share};

/// The arrivals of a profile: their mean rate, and how it changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Mean requests per second (or conversations per second, if conversations arrive), at the
    /// scenario's replay speed.
    pub qps: Decimal,
    /// The arrivals as repeating steps, whose rates are shares of the mean rate.
    pub arrivals: Arrivals,
}

impl Recorded {
    /// The arrivals of `recorded`; `None` if it is too short for a rate.
    pub(crate) fn new(recorded: &profile::Arrivals, speed: Decimal) -> Option<Recorded> {
        let speed = speed.to_f64();
        let stretches: Vec<(f64, f64)> = recorded
            .stretches
            .iter()
            .map(|stretch| (stretch.seconds / speed, stretch.requests as f64))
            .filter(|(seconds, _)| *seconds >= 1e-6)
            .collect();
        let (seconds, requests) = stretches.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let mean = requests / seconds;
        let qps = rounded(mean, 6)?;
        let step = |(seconds, requests): &(f64, f64)| {
            let share = rounded_or_none(requests / seconds / mean, 6)?;
            Some(Step { qps: Rate::OfQps(Share(share)), duration: Nanos((seconds * 1e9).round() as u64) })
        };
        let steps: Vec<Step> = stretches.iter().map(step).collect::<Option<_>>()?;
        // A single step is a constant rate.
        let profile = (steps.len() > 1).then(|| Arc::new(Profile { shape: RateShape::Steps(steps), repeats: true }));
        let process = process(within(recorded.gap_cv, &stretches));
        Some(Recorded { qps, arrivals: Arrivals { process, profile } })
    }
}

/// Rounds a number above 0 to this many decimal places; `None` if the result is 0 or too large.
fn rounded(number: f64, digits: u8) -> Option<Decimal> {
    rounded_or_none(number, digits).filter(|number| number.is_positive())
}

fn rounded_or_none(number: f64, digits: u8) -> Option<Decimal> {
    let scaled = (number * 10f64.powi(i32::from(digits))).round();
    (0.0..1e18).contains(&scaled).then(|| Decimal::new(scaled as i64, digits))
}

/// The coefficient of variation of the gaps within stretches. It is computed from the coefficient `whole` of
/// all gaps together, by removing the contribution of the changes in rate.
///
/// If each stretch has n gaps at rate r, with mean 1/r and coefficient c, the second moment of all gaps is
/// (1 + c²) Σ n/r² / Σ n, and their mean is Σ (n/r) / Σ n. It follows that 1 + whole² = (1 + c²) Σ n × Σ
/// (n/r²) / (Σ n/r)², where n/r is the length of the stretch.
fn within(whole: f64, stretches: &[(f64, f64)]) -> f64 {
    let (mut seconds, mut requests, mut squares) = (0.0, 0.0, 0.0);
    for (length, count) in stretches.iter().filter(|(_, count)| *count > 0.0) {
        seconds += length;
        requests += count;
        squares += length * length / count;
    }
    let changes = requests * squares / (seconds * seconds);
    ((1.0 + whole * whole) / changes - 1.0).max(0.0).sqrt()
}

/// The process whose gaps have this coefficient of variation. If it differs from 1 by less than 0.02, the gaps
/// are indistinguishable from those of independent users.
fn process(cv: f64) -> Process {
    match cv {
        cv if cv < 0.01 => Process::Constant,
        cv if (cv - 1.0).abs() < 0.02 => Process::Poisson,
        cv => Process::Gamma(Gamma::Cv(Decimal::new((cv.min(10.0) * 1e3).round() as i64, 3))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::profile::Stretch;

    fn recorded(stretches: &[(f64, u64)], gap_cv: f64, speed: u32) -> Option<Recorded> {
        let stretches = stretches.iter().map(|(seconds, requests)| Stretch { seconds: *seconds, requests: *requests });
        let recorded = profile::Arrivals { seconds: 0.0, gap_cv, stretches: stretches.collect() };
        Recorded::new(&recorded, Decimal::from(speed))
    }

    #[test]
    fn stretches_become_steps_around_their_mean() {
        let recorded = recorded(&[(10.0, 100), (30.0, 100)], 1.0, 2).unwrap();
        assert_eq!(recorded.qps.to_string(), "10");
        let profile = recorded.arrivals.profile.unwrap();
        assert_eq!(profile.to_string(), "steps 200% for 5s 66.6667% for 15s repeat");
    }

    #[test]
    fn a_rate_that_stays_is_no_profile() {
        let one = recorded(&[(10.0, 100)], 0.0, 1).unwrap();
        assert_eq!((one.arrivals.profile, one.arrivals.process), (None, Process::Constant));
        assert_eq!(recorded(&[(0.0, 100)], 0.0, 1), None);
        assert_eq!(recorded(&[(5.0, 0)], 0.0, 1), None);
    }

    #[test]
    fn changes_of_the_rate_are_no_burstiness() {
        // There are 100 exponential gaps per second for 10 s, then 10 per second, so the variation of
        // all gaps together is far above 1.
        let stretches = [(10.0, 1000.0), (10.0, 100.0)];
        let second = 2.0 * (1000.0 / 1e4 + 100.0 / 1e2) / 1100.0;
        let mean: f64 = 20.0 / 1100.0;
        let whole = (second / (mean * mean) - 1.0).sqrt();
        assert!(whole > 1.5, "{whole}");
        assert!((within(whole, &stretches) - 1.0).abs() < 1e-9);
        assert_eq!(process(within(whole, &stretches)), Process::Poisson);
        assert_eq!(process(2.0).to_string(), "gamma cv 2");
    }
}
