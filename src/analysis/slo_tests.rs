use super::*;
use crate::analysis::synthetic::{fail, read, record};
use crate::rows::{Outcome, Record, Replay, Windows};

const MS: u64 = 1_000_000;

fn facts() -> Facts {
    let windows = Windows { stabilize_ns: 0, measure_start_ns: 0, measure_end_ns: 2000 * MS, end_ns: 2500 * MS };
    Facts { windows, stream: true, ..Facts::default() }
}

fn tested(records: &[Record], facts: &Facts, slo: &Slo) -> Vec<SloTest> {
    let (run, events) = read(records, facts, Some(slo));
    let Ok(gaps) = Gaps::of(&run, facts, &events);
    test(run.rows(), (&events, &gaps), facts, slo)
}

/// Returns `n` requests with a TTFT of 100 ms and gaps of 10 ms. Of these, `slow` requests, spread
/// evenly, have a TTFT of 900 ms and gaps of 90 ms.
fn records(n: u64, slow: u64) -> Vec<Record> {
    let make = |k| {
        let (ttft, gap) = if k * slow / n != (k + 1) * slow / n { (900, 90) } else { (100, 10) };
        record(0, 0, ttft * MS, vec![gap * MS; 8], facts().windows)
    };
    (0..n).map(make).collect()
}

fn limit(percentile: Percentile) -> Slo {
    Slo { ttft: [(percentile, Nanos::from_millis(500))].into_iter().collect(), ..Slo::default() }
}

fn ask(n: u64, slow: u64, percentile: Percentile) -> Answer {
    answer(&tested(&records(n, slow), &facts(), &limit(percentile)))
}

#[test]
fn p99_takes_299_requests_without_an_exceedance() {
    assert_eq!(ask(298, 0, Percentile::P99), Answer::Undecided);
    assert_eq!(ask(299, 0, Percentile::P99), Answer::Holds);
    assert_eq!(ask(299, 1, Percentile::P99), Answer::Undecided);
    // scipy: binom.cdf(1, 473, .01) = .0499, so the limit would hold if the requests were known to be
    // independent.
    assert_eq!(ask(473, 1, Percentile::P99), Answer::Undecided);
    assert_eq!(ask(1_000, 1, Percentile::P99), Answer::Holds);
}

#[test]
fn slow_requests_in_a_row_are_worth_less() {
    let apart = &tested(&records(1_000, 20), &facts(), &limit(Percentile::P95))[0];
    let mut together = records(1_000, 20);
    together.sort_by_key(|record| record.gaps_ns[0]);
    let together = &tested(&together, &facts(), &limit(Percentile::P95))[0];
    assert_eq!([apart.above, together.above], [20, 20]);
    assert!(together.evidence.worth.requests < 0.2 * apart.evidence.worth.requests);
    assert_eq!([apart.answer, together.answer], [Answer::Holds, Answer::Undecided]);
    assert!(apart.would_do.is_none() && together.would_do.is_some_and(|seconds| seconds > 2.0), "{together:?}");
    assert!(together.n < together.alike_needed && together.alike_needed > 59, "{together:?}");
}

#[test]
fn p95_and_p90_take_59_and_29() {
    assert_eq!([58, 59].map(|n| ask(n, 0, Percentile::P95)), [Answer::Undecided, Answer::Holds]);
    assert_eq!([28, 29].map(|n| ask(n, 0, Percentile::P90)), [Answer::Undecided, Answer::Holds]);
}

#[test]
fn a_limit_is_missed_where_exceedances_are_too_many_for_chance() {
    // scipy: binom.sf(2, 100, .01) = .0794.
    assert_eq!(ask(100, 3, Percentile::P99), Answer::Undecided);
    assert_eq!(ask(100, 6, Percentile::P99), Answer::Misses);
    assert_eq!(ask(0, 0, Percentile::P99), Answer::Undecided);
}

#[test]
fn failures_exceed_every_limit() {
    let mut records = records(400, 0);
    records.iter_mut().step_by(20).for_each(|record| fail(record, Outcome::Reset, MS));
    let tests = tested(&records, &facts(), &limit(Percentile::P99));
    assert_eq!((tests[0].above, tests[0].n, tests[0].answer), (20, 400, Answer::Misses));
}

#[test]
fn an_open_loop_is_asked_from_the_schedule() {
    let mut records = records(400, 0);
    records.iter_mut().for_each(|record| {
        let row = &mut record.row;
        for instant in [&mut row.sent_ns, &mut row.first_token_ns, &mut row.last_token_ns] {
            *instant = instant.map(|at| at + 450 * MS);
        }
    });
    assert_eq!(answer(&tested(&records, &facts(), &limit(Percentile::P99))), Answer::Holds);
    let tests = tested(&records, &Facts { open_loop: true, ..facts() }, &limit(Percentile::P99));
    assert_eq!((tests[0].metric, tests[0].answer), ("ttft_from_schedule", Answer::Misses));
}

#[test]
fn itl_is_decided_over_requests() {
    let slo = Slo { itl: [(Percentile::P99, Nanos::from_millis(50))].into_iter().collect(), ..Slo::default() };
    let ask = |n, slow| tested(&records(n, slow), &facts(), &slo)[0].answer;
    assert_eq!(ask(298, 0), Answer::Undecided);
    assert_eq!(ask(299, 0), Answer::Holds);
    assert_eq!(ask(300, 100), Answer::Misses);
    assert_eq!([ask(20, 1), ask(20, 20)], [Answer::Undecided, Answer::Misses]);
}

#[test]
fn several_limits_hold_together() {
    let both = Slo { e2e: [(Percentile::P90, Nanos::from_millis(1))].into_iter().collect(), ..limit(Percentile::P99) };
    assert_eq!(answer(&tested(&records(400, 0), &facts(), &both)), Answer::Misses);
    assert_eq!(answer(&[]), Answer::Undecided);
    assert_eq!(
        [cost(Some(2.0), 2.0), cost(Some(2.1), 2.0), cost(None, 2.0)],
        [Answer::Holds, Answer::Misses, Answer::Undecided]
    );
}
