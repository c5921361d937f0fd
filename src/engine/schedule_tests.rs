//! Compares arrivals with their distribution. If a profile changes the rate, applying its Λ to the arrivals
//! reverts the change, so the result must be the process at rate 1.

use super::*;
use crate::expand::{Load, Phases};
use crate::plan::{Arrivals, Drain, DrainMode, Gamma, Measure};
use crate::units::{Decimal, Nanos};
use proptest::prelude::*;
use statrs::distribution::{ContinuousCDF, Exp, Gamma as GammaLaw};

const SECOND: u64 = 1_000_000_000;

fn cv(hundredths: i64) -> Process {
    Process::Gamma(Gamma::Cv(Decimal::new(hundredths, 2)))
}

fn steady(process: Process, qps: f64, fill: u64, seed: u8) -> Schedule {
    Schedule::drawn(process, Course::steady(qps, fill), [seed; 32])
}

/// Returns the rate profile of `arrivals` (as written in plans), with 2 s of fill and 3 s of stabilize.
fn course(arrivals: &str, qps: u32) -> Course {
    let arrivals: Arrivals = serde_json::from_str(arrivals).unwrap();
    let qps = arrivals.own_rate().unwrap_or(Decimal::from(qps));
    let measure = Measure { duration: Nanos::from_secs(60), min_requests: None, at_most: None };
    let drain = Drain { duration: Nanos::from_secs(1), mode: DrainMode::Keep };
    let phases = Phases { idle: None, fill: Nanos::from_secs(2), stabilize: Nanos::from_secs(3), measure, drain };
    Course::new(&Load::Open { qps, arrivals, cap: None }, &phases).unwrap()
}

fn until(mut schedule: Schedule, end: u64) -> Vec<u64> {
    std::iter::from_fn(|| schedule.peek().is_some_and(|at| at < end).then(|| schedule.take().unwrap())).collect()
}

fn first(mut schedule: Schedule, count: usize) -> Vec<u64> {
    (0..count).map_while(|_| schedule.take()).collect()
}

fn gaps(times: &[u64], unit: f64) -> Vec<f64> {
    times.windows(2).map(|w| (w[1] - w[0]) as f64 / unit).collect()
}

/// Returns the largest distance of the sample's distribution from `cdf`, times √n. It exceeds 1.95 for one in
/// a thousand samples that follow `cdf`.
fn kolmogorov_smirnov(mut sample: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    sample.sort_by(f64::total_cmp);
    let n = sample.len() as f64;
    let distance = |(i, x): (usize, &f64)| {
        let at = cdf(*x);
        (at - i as f64 / n).abs().max((at - (i + 1) as f64 / n).abs())
    };
    sample.iter().enumerate().map(distance).fold(0.0, f64::max) * n.sqrt()
}

const RARE: f64 = 1.95;

fn mean_and_cv(sample: &[f64]) -> (f64, f64) {
    let n = sample.len() as f64;
    let mean = sample.iter().sum::<f64>() / n;
    let variance = sample.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, variance.sqrt() / mean)
}

#[test]
fn constant_arrivals_are_evenly_spaced_after_fill() {
    let times = until(steady(Process::Constant, 10.0, 2 * SECOND, 0), 12 * SECOND);
    let after: Vec<u64> = times.iter().copied().filter(|t| *t >= 2 * SECOND).collect();
    assert_eq!(after.len(), 100);
    assert!(after.windows(2).all(|w| (w[1] - w[0]).abs_diff(100_000_000) <= 1), "{after:?}");
    let filling = times.len() - after.len();
    assert!((9..=10).contains(&filling), "half the full rate on average over fill, got {filling}");
}

#[test]
fn gaps_have_the_distribution_of_their_process() {
    let poisson = Exp::new(1.0).unwrap();
    let times = first(steady(Process::Poisson, 1000.0, 0, 7), 20_000);
    let ks = kolmogorov_smirnov(gaps(&times, 1e6), |x| poisson.cdf(x));
    assert!(ks < RARE, "poisson: {ks}");
    for hundredths in [25, 50, 100, 200] {
        let shape = (hundredths as f64 / 100.0).powi(-2);
        let law = GammaLaw::new(shape, shape).unwrap();
        // At one arrival per second, the resolution of a nanosecond is fine enough for the short gaps of a
        // large cv.
        let times = first(steady(cv(hundredths), 1.0, 0, 7), 20_000);
        let ks = kolmogorov_smirnov(gaps(&times, 1e9), |x| law.cdf(x.max(1e-12)));
        assert!(ks < RARE, "gamma cv {hundredths}/100: {ks}");
    }
}

#[test]
fn gaps_have_the_mean_and_the_cv_of_their_process() {
    for (process, expected) in
        [(Process::Poisson, 1.0), (cv(25), 0.25), (cv(50), 0.5), (cv(100), 1.0), (cv(200), 2.0), (cv(500), 5.0)]
    {
        let mut gaps = UnitGaps::new(process, [11; 32]);
        let sample: Vec<f64> = (0..200_000).map(|_| gaps.next()).collect();
        let (mean, cv) = mean_and_cv(&sample);
        // docs/PLAN.md quotes these values.
        eprintln!("{process}: mean {mean:.4}, cv {cv:.4}");
        // The mean may differ by five standard errors. The tolerance for the cv takes the kurtosis of the
        // gaps (3 + 6 cv²) into account.
        let n = (sample.len() as f64).sqrt();
        assert!((mean - 1.0).abs() < 5.0 * expected / n, "{process}: mean {mean}");
        let room = 5.0 * (2.0 + 6.0 * expected * expected).sqrt() / 2.0 / n;
        assert!((cv / expected - 1.0).abs() < room, "{process}: cv {cv}, room {room}");
    }
}

/// Profiles of every kind, as written in plans.
const PROFILES: [&str; 8] = [
    r#"{ "ramp": { "from": 1, "to": 400, "over": "40s" } }"#,
    r#"{ "ramp": { "from": "150%", "to": "10%", "over": "20s" }, "repeat": true }"#,
    r#"{ "steps": [{ "qps": 20, "for": "7s" }, { "qps": 0, "for": "3s" }, { "qps": 300, "for": "11s" }] }"#,
    r#"{ "steps": [{ "qps": "20%", "for": "7s" }, { "qps": "300%", "for": "2s" }], "repeat": true }"#,
    r#"{ "bursts": { "on": "1s", "off": "3s" } }"#,
    r#"{ "bursts": { "on": "700ms", "off": "1.1s", "low": "25%" } }"#,
    r#"{ "curve": [["0s", 5], ["10s", 300], ["30s", 0], ["31s", 90]] }"#,
    r#"{ "curve": [["0s", "50%"], ["13s", "200%"], ["17s", "50%"]], "repeat": true }"#,
];

#[test]
fn undone_by_its_own_course_every_profile_is_its_process_at_rate_one() {
    for profile in PROFILES {
        let course = course(profile, 100);
        // A larger cv is not tested here, because many of its gaps are shorter than a nanosecond, the
        // resolution of arrivals.
        for (process, shape) in [(Process::Poisson, 1.0), (cv(125), 0.64), (cv(50), 4.0)] {
            let times = first(Schedule::drawn(process, course.clone(), [5; 32]), 20_000);
            let undone: Vec<f64> = times.iter().map(|at| course.expected(*at as f64 / 1e9)).collect();
            let law = GammaLaw::new(shape, shape).unwrap();
            let gaps = undone.windows(2).map(|w| w[1] - w[0]).collect();
            let ks = kolmogorov_smirnov(gaps, |x| law.cdf(x.max(1e-12)));
            assert!(ks < RARE, "{profile} {process}: {ks}");
        }
    }
}

#[test]
fn constant_arrivals_in_a_profile_are_as_many_as_it_declares() {
    for profile in PROFILES {
        let course = course(profile, 100);
        let times = until(Schedule::drawn(Process::Constant, course.clone(), [0; 32]), 60 * SECOND);
        for end in (1..=60).map(|second| second * SECOND) {
            let counted = times.iter().filter(|at| **at < end).count() as f64;
            let declared = course.expected(end as f64 / 1e9);
            assert!((counted - declared).abs() <= 1.01, "{profile}: {counted} of {declared} by {end}");
        }
    }
}

#[test]
fn the_rate_scales_the_same_gaps() {
    for process in [Process::Poisson, cv(200)] {
        let slow = until(steady(process, 5.0, 0, 3), 100 * SECOND);
        let fast = until(steady(process, 50.0, 0, 3), 10 * SECOND);
        assert_eq!(slow.len(), fast.len());
        assert!(slow.iter().zip(&fast).all(|(s, f)| (s / 10).abs_diff(*f) <= 1));
    }
}

#[test]
fn a_rate_that_sinks_to_nothing_ends_the_arrivals() {
    let course = course(r#"{ "ramp": { "from": 10, "to": 0, "over": "20s" } }"#, 1);
    let times = first(Schedule::drawn(Process::Constant, course.clone(), [0; 32]), 1_000);
    // At 10 arrivals per second, half of fill, all of stabilize and half of the ramp give 140 arrivals, of
    // which the last one would arrive at the very end.
    assert_eq!(times.len(), 139);
    assert!(times.last().is_some_and(|last| *last <= 25 * SECOND));
    assert_eq!(course.at(141.0), None);
}

/// Compares arrivals with the formula that releases used before rate profiles were added. Plans from that
/// time must keep the same arrivals to the nanosecond.
#[test]
fn without_a_profile_arrivals_are_what_they_always_were() {
    for (rate, fill_ns, seed) in [(0.3, 0, 1), (7.0, 3_333_333_333, 2), (1234.567, 30 * SECOND, 3), (50.0, SECOND, 4)] {
        let (mut gaps, mut sum, fill) = (UnitGaps::new(Process::Poisson, [seed; 32]), 0.0, fill_ns as f64 / 1e9);
        let mut advance = || {
            sum += gaps.next();
            let by_fill = rate * fill / 2.0;
            let seconds: f64 = if sum < by_fill { (2.0 * fill * sum / rate).sqrt() } else { fill / 2.0 + sum / rate };
            (seconds * 1e9).round() as u64
        };
        let expected: Vec<u64> = (0..50_000).map(|_| advance()).collect();
        assert_eq!(first(steady(Process::Poisson, rate, fill_ns, seed), 50_000), expected);
    }
}

/// A plan and a seed must always reproduce the arrivals of their first measurement. The Poisson values are
/// from the last release without the gamma process and rate profiles.
#[test]
fn golden_arrivals() {
    let of = |process, profile: &str| first(Schedule::drawn(process, course(profile, 100), [9; 32]), 6);
    let plain = first(steady(Process::Poisson, 100.0, 2 * SECOND, 9), 6);
    let late = |process| first(steady(process, 3.0, 0, 42), 4);
    insta::assert_debug_snapshot!((
        plain,
        late(Process::Poisson),
        late(cv(200)),
        late(cv(50)),
        of(Process::Poisson, PROFILES[1]),
        of(cv(200), PROFILES[7]),
    ));
}

proptest! {
    #[test]
    fn arrivals_never_go_back_and_are_a_pure_function(
        qps in 1u32..5_000,
        which in 0usize..PROFILES.len() + 1,
        hundredths in 1i64..1000,
        seed: u8,
    ) {
        let course = PROFILES.get(which).map_or_else(|| Course::steady(f64::from(qps), SECOND), |one| course(one, qps));
        let draw = || first(Schedule::drawn(cv(hundredths), course.clone(), [seed; 32]), 400);
        let times = draw();
        prop_assert!(times.windows(2).all(|w| w[0] <= w[1]));
        prop_assert_eq!(draw(), times);
    }

    #[test]
    fn a_profile_in_shares_scales_with_the_rate(which in 3usize..6, process in 0usize..3, seed: u8) {
        let process = [Process::Poisson, Process::Constant, cv(300)][process];
        let (slow, fast) = (course(PROFILES[which], 10), course(PROFILES[which], 1000));
        for seconds in [0.5, 2.0, 7.7, 31.0] {
            let ratio = fast.expected(seconds) / slow.expected(seconds);
            prop_assert!((ratio - 100.0).abs() < 1e-6, "{ratio}");
        }
        let first = Schedule::drawn(process, fast, [seed; 32]).peek();
        prop_assert!(first <= Schedule::drawn(process, slow, [seed; 32]).peek());
    }
}
