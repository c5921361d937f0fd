//! Tests each threshold of `unsteady` from both sides, on runs for which the token count of each part is
//! known exactly.

use super::*;
use crate::analysis::synthetic::{Fault, Run, record, verdict};
use crate::rows::{Record, Windows};
use crate::units::Share;

const MS: u64 = 1_000_000;
/// Duration of a request. Requests run back to back in one slot; the window contains 100, which is 5 in
/// each of 20 parts.
const REQUEST: u64 = 100 * MS;
const WINDOWS: Windows =
    Windows { stabilize_ns: 0, measure_start_ns: 0, measure_end_ns: 100 * REQUEST, end_ns: 101 * REQUEST };
/// Deviations of the parts of one half of the window from the mean of that half. They sum to zero and have no
/// slope. In this pattern, neighbors differ.
const APART: [f64; 10] = [1.0, -1.0, -1.0, 1.0, 0.0, 0.0, 1.0, -1.0, -1.0, 1.0];
/// Deviations like those of [`APART`], but in a pattern in which neighbors are alike.
const ALIKE: [f64; 10] = [1.0, 1.0, -1.0, -1.0, 0.0, 0.0, -1.0, -1.0, 1.0, 1.0];

/// Returns a run in which the requests of a part have this many tokens and this time to first token (ns).
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

/// Returns the text of the verdict, given a limit in percent.
fn said((records, facts): &(Vec<Record>, Facts), limit: Option<i64>) -> Option<String> {
    let unsteady = Limits { suspect: limit.map(Share::percent), invalid: None };
    let verdict = verdict(records, facts, &Validity { unsteady, ..Validity::default() }, None);
    assert!(verdict.not_checked.iter().all(|(name, _)| *name != "unsteady"), "{verdict:?}");
    verdict.reasons.into_iter().find(|reason| reason.name == "unsteady").map(|reason| reason.text)
}

/// Returns a run with 500 tokens per request in the first half and `second` in the second half. The parts of
/// each half vary by `by` tokens in the given pattern.
fn halves(second: f64, by: f64, pattern: [f64; 10]) -> (Vec<Record>, Facts) {
    let mean = move |block: usize| if block < 10 { 500.0 } else { second };
    run(move |block| mean(block) + by * pattern[block % 10], |_| 10 * MS)
}

#[test]
fn throughput_may_move_by_five_percent() {
    // 24 of 488 tokens are 4.92 %, and 25 of 487.5 are 5.13 %.
    assert_eq!(said(&halves(476.0, 0.0, APART), None), None);
    let text = "throughput (tok/s) moved by 5% after 5.0 s: 5000.00, then 4750.00";
    assert_eq!(said(&halves(475.0, 0.0, APART), None).as_deref(), Some(text));
    // One request more or less on either side of the step changes the rate by 2 %, so smaller changes are
    // never reported, regardless of the limit.
    assert_eq!(said(&halves(485.0, 0.0, APART), Some(3)), None);
    assert!(said(&halves(478.0, 0.0, APART), Some(3)).is_some());
    assert_eq!(said(&halves(475.0, 0.0, APART), Some(6)), None);
}

/// 40 of 480 tokens are 8.3 %. This exceeds chance if parts vary by 10 tokens, but not if they vary by 30.
/// If neighboring parts are alike, even less variation is enough to hide it.
#[test]
fn throughput_may_move_by_chance() {
    assert!(said(&halves(460.0, 10.0, APART), None).is_some());
    assert_eq!(said(&halves(460.0, 40.0, APART), None), None);
    let least = |pattern| (1..60).find(|by| said(&halves(460.0, f64::from(*by), pattern), None).is_none()).unwrap();
    assert!(least(ALIKE) < least(APART), "{} {}", least(ALIKE), least(APART));
}

/// A drift over the whole window is not noise.
#[test]
fn a_slope_is_found() {
    let falling = |by: f64| run(move |part| 500.0 - by * part as f64, |_| 10 * MS);
    let text = said(&falling(2.6), None).unwrap();
    assert!(text.starts_with("throughput (tok/s) moved by 10% over the whole window: 4879.00, then 4619.00"), "{text}");
    assert_eq!(said(&falling(1.1), None), None);
}

#[test]
fn ttft_may_move_by_ten_percent() {
    let later = |micros: u64| run(|_| 50.0, move |at| if at < 50 { 20 * MS } else { micros * 1000 });
    // 2.1 of 21.05 ms are 9.98 %, and 2.12 of 21.06 ms are 10.07 %.
    assert_eq!(said(&later(22_100), None), None);
    let text = "TTFT (ms) moved by 11% after 5.0 s: 20.00, then 22.12";
    assert_eq!(said(&later(22_120), None).as_deref(), Some(text));
    assert_eq!(said(&later(22_120), Some(6)), None, "twice the limit of the throughput");
    assert!(said(&later(21_100), Some(2)).is_some());
    assert_eq!(said(&later(20_990), Some(2)), None, "less than a millisecond");
}

/// A tenth of the window is slow and the rest is normal: `stabilize` was too short.
#[test]
fn a_window_that_begins_cold_is_warming_up() {
    let reasons = |fault: Fault, place: f64| {
        let (records, facts) = Run { fault: Some((fault, place)), ..Run::default() }.make();
        let verdict = verdict(&records, &facts, &Validity::default(), None);
        verdict.reasons.into_iter().map(|reason| reason.name).collect::<Vec<_>>()
    };
    assert_eq!(reasons(Fault::Cold(4.0), 0.1), ["warming_up"]);
    assert_eq!(reasons(Fault::Slow(2.0), 0.9), ["unsteady"]);
    assert_eq!(reasons(Fault::Cold(4.0), 0.5), ["unsteady"], "half of the window");
}
