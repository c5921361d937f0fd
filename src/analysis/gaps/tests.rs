use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::analysis::Estimate;
use crate::analysis::synthetic::{Run, record};
use crate::rows::{Records, Windows};

const WINDOWS: Windows =
    Windows { stabilize_ns: 0, measure_start_ns: 0, measure_end_ns: 10_000_000_000, end_ns: 10_000_000_000 };

/// Returns the result of both passes over requests of the window with these gaps.
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

/// Returns `requests` streams of 50 gaps each. Each stream has its own pace, so gaps of one request
/// resemble each other.
fn streams(requests: u64, seed: u64) -> Vec<Vec<u64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut stream = || {
        let pace = rng.random_range(8_000_000..12_000_000u64);
        (0..50).map(|_| pace + rng.random_range(0..100_000u64)).collect()
    };
    (0..requests).map(|_| stream()).collect()
}

fn percentile(requests: &[Vec<u64>], percentile: Percentile) -> Estimate {
    pooled(requests).itl.percentile(percentile)
}

#[test]
fn percentiles_begin_at_thirty_requests() {
    let few = percentile(&streams(29, 1), Percentile::P50);
    assert_eq!(few, Estimate::NotEnough { n: 29, need: 30, of: Counted::Requests });
    assert_eq!(few.to_string(), "n/a (requests=29 < 30)");
    let enough = percentile(&streams(36, 1), Percentile::P90);
    assert!(enough.value().is_some() && enough.interval().is_some(), "{enough:?}");
}

#[test]
fn gaps_of_a_request_that_are_alike_are_worth_one() {
    // 100 requests of 50 gaps each, each with its own pace: the 5 000 gaps carry as much information as
    // about 100 independent gaps.
    let Some(Clustered { requests, effective }) = pooled(&streams(100, 1)).itl.clusters else {
        panic!("expected an effective number of gaps")
    };
    assert_eq!(requests, 100);
    let at = |percentile: Percentile| effective[percentile as usize];
    assert!((80..200).contains(&at(Percentile::P50)), "{effective:?}");
    let tail = percentile(&streams(100, 1), Percentile::P99);
    assert_eq!(tail, Estimate::NotEnough { n: at(Percentile::P99), need: 368, of: Counted::Gaps });
    // If gaps are independent, their effective number is close to their actual number.
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let free: Vec<Vec<u64>> =
        (0..100).map(|_| (0..50).map(|_| rng.random_range(8_000_000..12_000_000u64)).collect()).collect();
    let free = pooled(&free).itl;
    assert!(free.clusters.is_some_and(|of| of.effective[0] > 3_500), "{:?}", free.clusters);
    assert!(free.percentile(Percentile::P99).value().is_some());
}

#[test]
fn jitter_is_null_when_the_median_is_zero() {
    let (events, gaps) = through(&vec![vec![0u64; 20]; 40]);
    assert_eq!((gaps.jitter, gaps.jitter_interval, events.zeros), (None, None, 800));
    // 40 requests are too few for an upper end of the interval of p99, so the interval of the ratio has none
    // either.
    let gaps = pooled(&vec![vec![4_000_000u64; 20]; 40]);
    assert_eq!(gaps.jitter, Some(1.0));
    assert_eq!(gaps.jitter_interval, Some(Interval { low: Some(Value::Exact(1.0)), high: None }));
}

#[test]
fn a_zero_gap_is_a_value() {
    // One of four gaps is 0, because two events arrived together.
    let merged = vec![vec![0, 4_000_000, 4_000_000, 8_000_000]; 200];
    let itl = pooled(&merged).itl;
    assert_eq!((itl.n, itl.mean, itl.failures), (800, Some(4.0), 0));
    assert_eq!(itl.percentile(Percentile::P50).exact(), Some(4.0));
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
    /// Compares the percentiles with those of an implementation that stores and sorts all gaps.
    #[test]
    fn percentiles_are_those_of_all_gaps_sorted(
        requests in prop::collection::vec(prop::collection::vec(prop_oneof![Just(0), Just(600_000), 0..40_000_000u64], 0..40), 0..60),
    ) {
        let (events, gaps) = through(&requests);
        let all: Vec<f64> = requests.iter().flatten().map(|gap| millis(*gap)).collect();
        let naive = Summary::of(all, 0, None);
        for (ours, all) in gaps.itl.percentiles.iter().zip(&naive.percentiles) {
            prop_assert!(ours.value().is_none() || ours.value() == all.value());
        }
        prop_assert_eq!((gaps.itl.n, gaps.itl.max), (naive.n, naive.max));
        let close = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * b.abs().max(1e-9),
            (a, b) => a == b,
        };
        prop_assert!(close(gaps.itl.mean, naive.mean) && close(gaps.itl.sd, naive.sd));
        prop_assert_eq!(events.requests, requests.iter().filter(|gaps| !gaps.is_empty()).count() as u64);
    }
}
