//! Checks the test of failure counts on simulated servers: how often it is wrong, and which differences it
//! detects.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::errors::{Basis, test};
use crate::analysis::FailureCount;

/// How a server fails.
#[derive(Debug, Clone, Copy)]
struct Failing {
    requests: usize,
    /// Mean number of bursts per window, and mean number of requests per burst.
    bursts: f64,
    length: f64,
    /// The share of requests that fail outside bursts.
    scattered: f64,
    /// Variation of the shares between runs: each share is multiplied by 1 ± this value.
    between: f64,
}

const FEW: Failing = Failing { requests: 1_500, bursts: 0.0, length: 1.0, scattered: 0.003, between: 0.0 };

impl Failing {
    fn run(&self, rng: &mut ChaCha8Rng) -> FailureCount {
        let exponential = |rng: &mut ChaCha8Rng, mean: f64| -mean * (1.0 - rng.random::<f64>()).ln();
        let times = 1.0 + self.between * (2.0 * rng.random::<f64>() - 1.0);
        let mut failed: Vec<bool> = (0..self.requests).map(|_| rng.random::<f64>() < self.scattered * times).collect();
        let rate = self.bursts * times / self.requests as f64;
        let mut at = if rate > 0.0 { exponential(rng, 1.0 / rate) } else { f64::INFINITY };
        while at < self.requests as f64 {
            let until = at + exponential(rng, self.length).max(1.0);
            failed[at as usize..(until as usize).min(self.requests)].fill(true);
            at += exponential(rng, 1.0 / rate);
        }
        FailureCount::of_series(&failed)
    }

    fn runs(&self, rounds: usize, rng: &mut ChaCha8Rng) -> Vec<FailureCount> {
        (0..rounds).map(|_| self.run(rng)).collect()
    }
}

/// Returns the number of comparisons of each kind. `SWEEPLINE_SIMULATIONS=1000 cargo test --release --lib
/// error_tests -- --nocapture` runs more comparisons and prints the results.
fn times() -> usize {
    std::env::var("SWEEPLINE_SIMULATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(40)
}

/// Returns the share of comparisons in which the test finds a difference between the arms.
fn found(baseline: Failing, arm: Failing, rounds: usize) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(14 + rounds as u64);
    let shown = (0..times()).filter(|_| {
        let sides = (baseline.runs(rounds, &mut rng), arm.runs(rounds, &mut rng));
        test(&sides.0, &sides.1).is_some_and(|test| test.p <= 0.05)
    });
    shown.count() as f64 / times() as f64
}

#[test]
fn servers_that_fail_alike_are_told_apart_in_five_of_a_hundred() {
    // By chance alone, this limit is exceeded once in a hundred times.
    let most = 0.05 + 2.5 * (0.05 * 0.95 / times() as f64).sqrt();
    for (what, failing) in [
        ("scattered, 0.1 %", Failing { scattered: 0.001, ..FEW }),
        ("scattered, 0.3 %", FEW),
        ("scattered, 3 %", Failing { scattered: 0.03, ..FEW }),
        ("a burst of 50", Failing { bursts: 1.0, length: 50.0, scattered: 0.0, ..FEW }),
        ("5 bursts of 50", Failing { bursts: 5.0, length: 50.0, scattered: 0.0, ..FEW }),
        ("10 bursts of 20", Failing { bursts: 10.0, length: 20.0, scattered: 0.0, ..FEW }),
        ("3 bursts of 200", Failing { bursts: 3.0, length: 200.0, scattered: 0.002, ..FEW }),
        ("10 bursts of 20, runs differ", Failing { bursts: 10.0, length: 20.0, between: 0.8, ..FEW }),
    ] {
        for rounds in [1, 2, 4] {
            // A single round does not show the variation between runs.
            if failing.between > 0.0 && rounds == 1 {
                continue;
            }
            let share = found(failing, failing, rounds);
            println!("failures alike, {what}, {rounds} rounds: {:.1} %", 100.0 * share);
            assert!(share <= most, "{what}, {rounds} rounds: {share}");
        }
    }
}

#[test]
fn servers_that_fail_more_are_found() {
    let none = Failing { scattered: 0.0, ..FEW };
    for (what, failing, rounds, least) in [
        ("scattered, 6 % against none", Failing { scattered: 0.06, ..FEW }, 1, 0.99),
        ("scattered, 1 % against none", Failing { scattered: 0.01, ..FEW }, 1, 0.9),
        ("20 bursts of 5 against none", Failing { bursts: 20.0, length: 5.0, scattered: 0.0, ..FEW }, 3, 0.8),
    ] {
        let share = found(none, failing, rounds);
        println!("failures of one arm, {what}, {rounds} rounds: {:.1} %", 100.0 * share);
        assert!(share >= least, "{what}: {share}");
    }
}

fn count(requests: u64, failed: u64) -> FailureCount {
    FailureCount { requests, failed, dispersion: (failed > 0).then_some(1.4) }
}

#[test]
fn what_was_not_shown_before_is() {
    let [whole, halves] = [
        test(&[count(2_997, 0)], &[count(3_140, 198)]),
        test(&[count(1_500, 0), count(1_497, 0)], &[count(1_570, 95), count(1_570, 103)]),
    ]
    .map(|test| test.expect("requests"));
    assert!(whole.p < 1e-6 && whole.basis == Basis::InsideRuns, "{whole:?}");
    assert!(halves.p < 0.01, "{halves:?}");
    for one in [whole, halves] {
        assert!((one.difference - 0.063).abs() < 1e-3 && one.low > 0.03 && one.high < 0.11, "{one:?}");
    }
}

#[test]
fn no_failure_has_an_upper_end_and_one_burst_is_one_event() {
    let none = test(&[count(1_000, 0)], &[count(1_000, 0)]).expect("requests");
    assert_eq!((none.p, none.difference), (1.0, 0.0));
    assert!(none.high > 0.002 && none.high < 0.02 && (none.low + none.high).abs() < 1e-12, "{none:?}");
    let burst: Vec<bool> = (0..3_000).map(|at| (1_000..1_200).contains(&at)).collect();
    let burst = test(&[count(3_000, 0)], &[FailureCount::of_series(&burst)]).expect("requests");
    assert!(burst.p > 0.2, "{burst:?}");
    // If requests fail in only one of three runs, that is also a single event.
    let one = [count(1_000, 0), count(1_000, 300), count(1_000, 0)];
    let once = test(&[count(1_000, 0), count(1_000, 0), count(1_000, 0)], &one).expect("requests");
    assert!(once.p > 0.2 && once.basis == Basis::BetweenRuns, "{once:?}");
    assert!(test(&[], &[count(10, 1)]).is_none());
    let all = test(&[count(500, 0)], &[FailureCount { requests: 500, failed: 500, dispersion: None }]);
    assert!(all.expect("requests").p < 1e-9);
}
