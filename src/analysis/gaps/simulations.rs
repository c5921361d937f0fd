//! Seeded simulations of gaps that depend on each other. They check that the claims about such gaps hold
//! as often as required. `SWEEPLINE_SIMULATIONS=1000 cargo test --lib gaps::simulations -- --nocapture`
//! prints a table of more runs.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::analysis::slo::gap_limits;
use crate::analysis::synthetic::record;
use crate::analysis::worth::Answer;
use crate::plan::Slo;
use crate::rows::{Records, Windows};

/// Number of gaps per request.
const GAPS: usize = 20;
/// Time between two requests, in nanoseconds.
const APART: u64 = 10_000_000;

/// How gaps depend on each other.
#[derive(Debug, Clone, Copy)]
enum GapDependence {
    /// The gaps are independent.
    Independent,
    /// Each request has its own pace.
    Paced,
    /// Each request inherits 0.9 of the previous request's pace.
    Serial,
    /// Two of three events arrive together with the next event, in one read.
    Merged,
    /// One in this many requests is slow from its first gap to its last.
    SlowRequests(u32),
}

const SHAPES: [GapDependence; 4] =
    [GapDependence::Independent, GapDependence::Paced, GapDependence::Serial, GapDependence::Merged];

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    2.0 * ((0..3).map(|_| rng.random::<f64>()).sum::<f64>() - 1.5)
}

/// Returns the gaps of some requests in nanoseconds.
fn streams(shape: GapDependence, requests: usize, seed: u64) -> Vec<Vec<u64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut state = normal(&mut rng);
    let mut stream = || {
        let own = normal(&mut rng);
        state = 0.9 * state + (1.0f64 - 0.81).sqrt() * own;
        let pace = match shape {
            GapDependence::Independent | GapDependence::Merged => 0.0,
            GapDependence::Paced => 0.3 * own,
            GapDependence::Serial => 0.3 * state,
            GapDependence::SlowRequests(of) => f64::from(u8::from(rng.random_range(0..of) == 0)) * 2.0,
        };
        let mut held = 0;
        let mut gap = || {
            let gap = (10e6 * (pace + 0.1 * normal(&mut rng)).exp()) as u64;
            if matches!(shape, GapDependence::Merged) && rng.random_range(0..3) > 0 {
                held += gap;
                return 0;
            }
            gap + std::mem::take(&mut held)
        };
        (0..GAPS).map(|_| gap()).collect()
    };
    (0..requests).map(|_| stream()).collect()
}

/// Returns the results of both passes over a closed loop with these gaps; `slo` may limit the gaps.
fn through(requests: &[Vec<u64>], slo: Option<&Slo>) -> (Events, Gaps) {
    let end = APART * requests.len() as u64;
    let windows = Windows { stabilize_ns: 0, measure_start_ns: 0, measure_end_ns: end, end_ns: end };
    let facts = Facts { windows, stream: true, ..Facts::default() };
    let make = |(at, gaps): (u64, &Vec<u64>)| record(at * APART, at * APART + 1, at * APART + 2, gaps.clone(), windows);
    let run = Records::from_iter((0..).zip(requests).map(make));
    let Ok(events) = Events::of(&run, &facts, &gap_limits(slo));
    let Ok(gaps) = Gaps::of(&run, &facts, &events);
    (events, gaps)
}

/// Returns all gaps of a long run, in rising order.
fn long_run(shape: GapDependence) -> Vec<u64> {
    let mut all: Vec<u64> = streams(shape, 10_000, 0xface).concat();
    all.sort_unstable();
    all
}

/// Returns the gap length that the given share of all gaps exceeds.
fn above(rising: &[u64], share: f64) -> u64 {
    rising[((1.0 - share) * rising.len() as f64) as usize]
}

fn times() -> u64 {
    std::env::var("SWEEPLINE_SIMULATIONS").ok().and_then(|times| times.parse().ok()).unwrap_or(15)
}

/// Returns two standard errors of a share of 5 % for this many samples.
fn chance(times: u64) -> f64 {
    2.0 * (0.05 * 0.95 / times as f64).sqrt()
}

#[test]
fn intervals_hold_the_truth() {
    for shape in SHAPES {
        let long = long_run(shape);
        let made: Vec<Gaps> = (0..times()).map(|seed| through(&streams(shape, 300, seed), None).1).collect();
        for percentile in [Percentile::P50, Percentile::P90, Percentile::P99] {
            let truth = above(&long, 1.0 - quantile::share(percentile)) as f64 / 1e6;
            let given: Vec<Interval> =
                made.iter().filter_map(|gaps| gaps.itl.percentile(percentile).interval()).collect();
            let holds = |interval: &&Interval| {
                interval.low_number().is_none_or(|low| low <= truth)
                    && interval.high_number().is_none_or(|high| truth <= high)
            };
            let covered = given.iter().filter(holds).count() as f64 / given.len().max(1) as f64;
            println!("{shape:?} {percentile:?}: {} given, {:.1} % contain the truth", given.len(), 100.0 * covered);
            assert!(
                given.is_empty() || covered >= 0.92 - chance(given.len() as u64),
                "{shape:?} {percentile:?}: {covered}"
            );
        }
    }
}

#[test]
fn a_limit_that_is_missed_seldom_holds() {
    let allowed = 1.0 - quantile::share(Percentile::P99);
    for shape in SHAPES.into_iter().chain([GapDependence::SlowRequests(83)]) {
        let limit = Nanos(above(&long_run(shape), 1.2 * allowed));
        let slo = Slo { itl: [(Percentile::P99, limit)].into_iter().collect(), ..Slo::default() };
        let answer = |seed: u64| {
            let (events, gaps) = through(&streams(shape, 300, seed), Some(&slo));
            gaps.evidence(&events, limit, allowed).answer(allowed)
        };
        let held = (0..times()).filter(|seed| answer(*seed) == Answer::Holds).count() as f64 / times() as f64;
        println!("{shape:?}: {:.1} % hold if 1.2 % of gaps are above and 1 % may be", 100.0 * held);
        assert!(held <= 0.05 + chance(times()), "{shape:?}: {held}");
    }
}

#[test]
fn a_limit_far_above_holds() {
    let slo = Slo { itl: [(Percentile::P99, Nanos(150_000_000))].into_iter().collect(), ..Slo::default() };
    for shape in [GapDependence::Independent, GapDependence::Paced, GapDependence::Merged] {
        let (events, gaps) = through(&streams(shape, 600, 1), Some(&slo));
        let evidence = gaps.evidence(&events, Nanos(150_000_000), 0.01);
        assert_eq!(evidence.answer(0.01), Answer::Holds, "{shape:?}: {evidence:?}");
    }
}
