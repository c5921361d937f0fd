use super::*;
use crate::analysis::synthetic::{fail, record};
use crate::rows::{Outcome, Record, Windows};

const MS: u64 = 1_000_000;

fn facts() -> Facts {
    let windows = Windows { stabilize_ns: 0, measure_start_ns: 0, measure_end_ns: 2000 * MS, end_ns: 2500 * MS };
    Facts { windows, stream: true, ..Facts::default() }
}

/// Returns rows with TTFTs of 100, 200 and 300 ms from sending and a TPOT of 10 ms. Requests are sent 50 ms
/// after their scheduled time, and the last one fails.
fn rows() -> Vec<Measured> {
    let make = |ttft: u64| record(0, 50 * MS, (50 + ttft) * MS, vec![10 * MS; 4], facts().windows);
    let mut records: Vec<Record> = [100, 200, 300, 100].into_iter().map(make).collect();
    fail(&mut records[3], Outcome::Http(500), MS);
    records.iter().map(|record| Measured::from(&record.row)).collect()
}

fn share(thresholds: Thresholds, facts: &Facts) -> Option<f64> {
    goodput(&rows(), facts, &thresholds).map(|goodput| goodput.share)
}

fn ttft(limit: u64) -> Thresholds {
    Thresholds { ttft: Some(Nanos::from_millis(limit)), ..Thresholds::default() }
}

#[test]
fn failures_are_misses_and_limits_are_inclusive() {
    assert_eq!(share(ttft(200), &facts()), Some(0.5));
    assert_eq!(share(ttft(199), &facts()), Some(0.25));
    assert_eq!(share(Thresholds { tpot: Some(Nanos::from_millis(9)), ..ttft(1000) }, &facts()), Some(0.0));
    assert_eq!(goodput(&rows(), &facts(), &ttft(200)).unwrap().requests_per_s, 1.0);
}

#[test]
fn an_open_loop_counts_from_the_schedule() {
    let open = Facts { open_loop: true, ..facts() };
    assert_eq!(share(ttft(200), &open), Some(0.25));
    assert_eq!(share(ttft(250), &open), Some(0.5));
}

#[test]
fn nothing_to_meet_is_null() {
    assert_eq!(share(Thresholds::default(), &facts()), None);
    assert_eq!(goodput(&[], &facts(), &ttft(200)), None);
    assert_eq!(share(ttft(200), &Facts { stream: false, ..facts() }), None);
}

#[test]
fn one_token_has_no_tpot_to_miss() {
    let one = [Measured::from(&record(0, 0, 10 * MS, vec![], facts().windows).row)];
    let thresholds = Thresholds { tpot: Some(Nanos(1)), ..Thresholds::default() };
    assert_eq!(goodput(&one, &facts(), &thresholds).unwrap().share, 1.0);
}

#[test]
fn an_slo_gives_the_default_thresholds() {
    let ms = Nanos::from_millis;
    let slo = Slo {
        ttft: [(Percentile::P99, ms(500)), (Percentile::P50, ms(200))].into_iter().collect(),
        itl: [(Percentile::P99, ms(50))].into_iter().collect(),
        ..Slo::default()
    };
    let expected = Thresholds { ttft: Some(ms(500)), tpot: Some(ms(50)), e2e: None };
    assert_eq!(Thresholds::of(None, Some(&slo)), expected);
    let own = Goodput { e2e: Some(ms(9)), ..Goodput::default() };
    assert_eq!(Thresholds::of(Some(&own), Some(&slo)), Thresholds { e2e: Some(ms(9)), ..Thresholds::default() });
}

#[test]
fn a_part_of_a_run_takes_the_queue_of_the_whole() {
    let open = Facts { open_loop: true, ..facts() };
    let seen = Turns { swings: Some(2), turnovers: 12.0 };
    let part = goodput_of_part(&rows(), &open, &ttft(200), seen).unwrap();
    assert_eq!(part.share, goodput(&rows(), &open, &ttft(200)).unwrap().share);
    let many: Vec<Measured> = rows().into_iter().cycle().take(800).collect();
    let of = |turns| goodput_of_part(&many, &open, &ttft(200), turns).unwrap().missing.worth;
    assert!(of(seen).is_bound && !of(Turns { swings: Some(90), turnovers: 90.0 }).is_bound);
}
