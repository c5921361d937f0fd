//! Both sides of each threshold of `unsteady`, on runs whose blocks are known to the token.

use super::*;
use crate::analysis::synthetic::{record, verdict};
use crate::plan::{Limits, Validity};
use crate::rows::{Record, Windows};
use crate::units::Share;

const MS: u64 = 1_000_000;
/// Requests follow each other in one slot, 100 in the window: 5 in each of 20 blocks.
const REQUEST: u64 = 100 * MS;
const WINDOWS: Windows =
    Windows { stabilize_ns: 0, measure_start_ns: 0, measure_end_ns: 100 * REQUEST, end_ns: 101 * REQUEST };
/// Blocks of a half by how far they are from its mean; they add up to nothing and have no slope. Neighbours differ, …
const APART: [f64; 10] = [1.0, -1.0, -1.0, 1.0, 0.0, 0.0, 1.0, -1.0, -1.0, 1.0];
/// … or are alike.
const ALIKE: [f64; 10] = [1.0, 1.0, -1.0, -1.0, 0.0, 0.0, -1.0, -1.0, 1.0, 1.0];

/// A run in which the requests of a block have so many tokens and take so long to the first of them (ns).
fn run(tokens: impl Fn(usize) -> f64, ttft: impl Fn(usize) -> u64) -> (Vec<Record>, Facts) {
    let request = |at: usize| {
        let (scheduled, tokens) = (at as u64 * REQUEST, tokens(at / 5) as u64);
        let first = scheduled + ttft(at);
        let gap = (scheduled + REQUEST - first) / tokens;
        record(scheduled, scheduled, first, vec![gap; tokens as usize - 1], WINDOWS)
    };
    let facts = Facts { windows: WINDOWS, stream: true, batch_size: Some(1), ..Facts::default() };
    ((0..100).map(request).collect(), facts)
}

/// What the verdict says under a limit in percent.
fn said((records, facts): &(Vec<Record>, Facts), limit: Option<i64>) -> Option<String> {
    let unsteady = Limits { suspect: limit.map(Share::percent), invalid: None };
    let verdict = verdict(records, facts, &Validity { unsteady, ..Validity::default() }, None);
    assert!(verdict.not_checked.iter().all(|(name, _)| *name != "unsteady"), "{verdict:?}");
    verdict.reasons.into_iter().find(|reason| reason.name == "unsteady").map(|reason| reason.text)
}

/// Halves of 500 tokens a request and of `second`, whose blocks vary by `by` tokens in a pattern.
fn halves(second: f64, by: f64, pattern: [f64; 10]) -> (Vec<Record>, Facts) {
    let mean = move |block: usize| if block < 10 { 500.0 } else { second };
    run(move |block| mean(block) + by * pattern[block % 10], |_| 10 * MS)
}

#[test]
fn throughput_may_move_by_five_percent() {
    // 24 of 488 are 4.92 %, 25 of 487.5 are 5.13 %.
    assert_eq!(said(&halves(476.0, 0.0, APART), None), None);
    let text = "throughput (tok/s) moved by 5%: 5000.00, then 4750.00";
    assert_eq!(said(&halves(475.0, 0.0, APART), None).as_deref(), Some(text));
    // 14 of 493 are 2.84 %, 15 of 492.5 are 3.05 %.
    assert_eq!(said(&halves(486.0, 0.0, APART), Some(3)), None);
    assert!(said(&halves(485.0, 0.0, APART), Some(3)).is_some());
    assert_eq!(said(&halves(475.0, 0.0, APART), Some(6)), None);
}

/// 40 of 480 tokens are 8.3 %. Of blocks that vary by v tokens, 8 in 10, the variance is 8 v² / 8.5, and 3 standard errors of the
/// difference of two means of 10 are 1.302 v: 40 tokens where v = 30.7.
#[test]
fn throughput_may_move_by_three_standard_errors() {
    assert!(said(&halves(460.0, 30.0, APART), None).is_some());
    assert_eq!(said(&halves(460.0, 31.0, APART), None), None);
}

/// The correlation of neighbours is 2 / 8, and 0.15 that are lost with means and slope: 1.302 v × √1.8 are 40 tokens where
/// v = 22.9.
#[test]
fn blocks_like_their_neighbours_say_less_than_so_many() {
    assert!(said(&halves(460.0, 22.0, ALIKE), None).is_some());
    assert_eq!(said(&halves(460.0, 23.0, ALIKE), None), None);
}

/// A drift through all of the window is no noise, whatever else varies.
#[test]
fn a_slope_that_halves_share_is_found() {
    let falling = |by: f64| run(move |block| 500.0 - by * block as f64, |_| 10 * MS);
    // Halves are ten blocks apart: 24 of 477 tokens, then 25.
    assert_eq!(said(&falling(2.3), None), None);
    assert!(said(&falling(2.6), None).is_some());
    let line: Vec<f64> = (0..10).map(|block| 3.0 * (f64::from(block) - 4.5)).collect();
    let residuals = Residuals::new([line.clone(), line]);
    assert!(residuals.variances().iter().all(|variance| *variance < 1e-20), "{:?}", residuals.0);
}

#[test]
fn neighbours_that_differ_make_nothing_surer() {
    assert_eq!(Residuals::new([APART.to_vec(), APART.to_vec()]).inflation(), 1.0);
    let alike = Residuals::new([ALIKE.to_vec(), ALIKE.to_vec()]);
    assert!((alike.inflation() - 1.8).abs() < 1e-12, "{}", alike.inflation());
    assert!(alike.variances().iter().all(|variance| (variance - 8.0 / 8.5).abs() < 1e-12));
    assert_eq!(Residuals::new([vec![0.0; 3], vec![0.0; 3]]).inflation(), 1.0);
}

#[test]
fn median_ttft_may_move_by_ten_percent() {
    let later = |micros: u64| run(|_| 50.0, move |at| if at < 50 { 10 * MS } else { micros * 1000 });
    // 1.05 of 10.525 ms are 9.98 %, 1.06 of 10.53 are 10.07 %.
    assert_eq!(said(&later(11_050), None), None);
    let text = "median TTFT (ms) moved by 10%: 10.00, then 11.06";
    assert_eq!(said(&later(11_060), None).as_deref(), Some(text));
    assert_eq!(said(&later(11_060), Some(6)), None, "twice the limit of the throughput");
    assert!(said(&later(10_420), Some(2)).is_some());
}

/// 50 values in each half: the interval of the median goes from the 18th to the 33rd, 0.15 of the spread to each side.
#[test]
fn median_ttft_may_move_within_its_intervals() {
    let spread = |spread: u64| {
        // Every tenth of the spread once in each block of 5 and the next.
        let place = |at: usize| (at * 7 % 10) as u64 * spread / 10;
        run(|_| 50.0, move |at| (if at < 50 { 20 * MS } else { 24 * MS }) + place(at))
    };
    assert!(said(&spread(8 * MS), None).is_some());
    assert_eq!(said(&spread(16 * MS), None), None);
}
