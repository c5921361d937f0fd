use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::analysis::Estimate;
use crate::analysis::synthetic::{Run, record};
use crate::rows::{Records, Windows};

const WINDOWS: Windows =
    Windows { stabilize_ns: 0, measure_start_ns: 0, measure_end_ns: 10_000_000_000, end_ns: 10_000_000_000 };

/// The gaps of requests of the window.
fn through(requests: &[Vec<u64>]) -> (Events, Gaps) {
    let (_, facts) = Run { seconds: 0.1, ..Run::default() }.make();
    let facts = Facts { windows: WINDOWS, ..facts };
    let records = requests.iter().enumerate().map(|(at, gaps)| record(at as u64, 1, 2, gaps.clone(), WINDOWS));
    let run = Records::from_iter(records);
    let Ok(events) = Events::of(&run, &facts, &[Nanos(9_000_000)]);
    let Ok(gaps) = Gaps::of(&run, &facts, &events);
    (events, gaps)
}

fn pooled(requests: &[Vec<u64>]) -> Gaps {
    through(requests).1
}

/// `requests` streams of 50 gaps; each has a pace of its own, so gaps of one request are alike.
fn streams(requests: u64, seed: u64) -> Vec<Vec<u64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut stream = || {
        let pace = rng.random_range(8_000_000..12_000_000u64);
        (0..50).map(|_| pace + rng.random_range(0..100_000u64)).collect()
    };
    (0..requests).map(|_| stream()).collect()
}

fn median(requests: &[Vec<u64>]) -> Estimate {
    pooled(requests).itl.percentile(Percentile::P50)
}

#[test]
fn intervals_begin_at_thirty_requests() {
    assert_eq!(median(&streams(29, 1)).interval(), None);
    assert!(median(&streams(30, 1)).interval().is_some());
}

#[test]
fn intervals_cover_although_gaps_of_a_request_are_alike() {
    // The true median of the pace is 10 ms and half the spread of the jitter on top.
    let truth = 10.05;
    let covered = (0..40).filter(|seed| {
        let Interval { low, high } = median(&streams(300, *seed)).interval().unwrap();
        low.or_infinity() <= truth && truth <= high.or_infinity()
    });
    // 38 of 40 expected; order statistics over gaps as if independent would cover about 8.
    assert!((34..=40).contains(&covered.count()));
}

#[test]
fn jitter_is_null_when_the_median_is_zero() {
    let (events, gaps) = through(&[vec![0u64; 500]]);
    assert_eq!((gaps.jitter, gaps.jitter_interval, events.zeros), (None, None, 500));
    let gaps = pooled(&vec![vec![4_000_000u64; 20]; 40]);
    assert_eq!(gaps.jitter, Some(1.0));
    assert_eq!(gaps.jitter_interval, Some(Interval { low: Value::Exact(1.0), high: Value::Exact(1.0) }));
}

#[test]
fn no_gaps_say_nothing() {
    let (events, gaps) = through(&[vec![], vec![]]);
    assert_eq!((gaps.itl.n, gaps.itl.mean, gaps.itl.max, gaps.jitter, events.requests), (0, None, None, None, 0));
}

#[test]
fn gaps_above_a_limit_are_counted() {
    assert_eq!(through(&[vec![8_999_999, 9_000_000, 9_000_001, 1], vec![10_000_000]]).0.above(Nanos(9_000_000)), 2);
}

proptest! {
    /// As one that holds every gap and sorts them would say.
    #[test]
    fn percentiles_are_those_of_all_gaps_sorted(
        requests in prop::collection::vec(prop::collection::vec(prop_oneof![Just(0), Just(600_000), 0..40_000_000u64], 0..40), 0..30),
    ) {
        let (events, gaps) = through(&requests);
        let all: Vec<f64> = requests.iter().flatten().map(|gap| millis(*gap)).collect();
        let naive = Summary::of(all, 0, None);
        let exact = |summary: &Summary| summary.percentiles.map(|percentile| percentile.value());
        prop_assert_eq!(exact(&gaps.itl), exact(&naive));
        prop_assert_eq!((gaps.itl.n, gaps.itl.max), (naive.n, naive.max));
        let close = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * b.abs().max(1e-9),
            (a, b) => a == b,
        };
        prop_assert!(close(gaps.itl.mean, naive.mean) && close(gaps.itl.sd, naive.sd));
        prop_assert_eq!(events.requests, requests.iter().filter(|gaps| !gaps.is_empty()).count() as u64);
    }
}
