use super::*;
use crate::analysis::synthetic::{fail, record};
use crate::rows::Windows;
use crate::rows::{Record, RequestRow, TokensUnknown};

const MS: u64 = 1_000_000;

fn windows() -> Windows {
    Windows { stabilize_ns: 0, measure_start_ns: 0, measure_end_ns: 1000 * MS, end_ns: 2000 * MS }
}

fn observe(row: &RequestRow, metric: Metric) -> Observation {
    Request { row: &Measured::from(row), windows: &windows(), stream: true }.observe(metric)
}

/// Returns a request that is scheduled at 10 ms and sent at 15 ms, with four tokens at 115, 125, 145 and 155
/// ms.
fn example() -> Record {
    record(10 * MS, 15 * MS, 115 * MS, vec![10 * MS, 20 * MS, 10 * MS], windows())
}

#[test]
fn each_metric_is_its_definition() {
    let mut row = example().row;
    row.released_ns = Some(12 * MS);
    (row.dns_ns, row.connect_ns, row.tls_ns) = (None, Some(MS), Some(MS / 2));
    row.first_output_ns = Some(125 * MS);
    let expected = [
        (Metric::Ttft, 100.0),
        (Metric::TtftFromSchedule, 105.0),
        (Metric::Ttfo, 110.0),
        (Metric::E2e, 140.0),
        (Metric::E2eFromSchedule, 145.0),
        (Metric::Tpot, 40.0 / 3.0),
        (Metric::Lateness, 1.5),
        (Metric::Connecting, 1.5),
        (Metric::CapWait, 2.0),
        (Metric::UserThroughput, 4.0 / 0.140),
        (Metric::GenerationThroughput, 3.0 / 0.040),
    ];
    for (metric, expected) in expected {
        let value = observe(&row, metric).value().unwrap();
        assert!((value - expected).abs() < 1e-9, "{metric:?}: {value} instead of {expected}");
    }
}

#[test]
fn null_is_null() {
    let row = example().row;
    assert_eq!(observe(&row, Metric::Connecting), Observation::Undefined);
    let one = record(0, MS, 50 * MS, vec![], windows()).row;
    assert_eq!(observe(&one, Metric::Tpot), Observation::Undefined);
    assert_eq!(observe(&one, Metric::GenerationThroughput), Observation::Undefined);
    assert_eq!(observe(&one, Metric::Ttft), Observation::Value(49.0));
    let mut reasoning_only = example().row;
    reasoning_only.first_output_ns = None;
    assert_eq!(observe(&reasoning_only, Metric::Ttfo), Observation::Undefined);
    let mut lumped = example().row;
    (lumped.events, lumped.output_tokens, lumped.last_token_ns) = (1, Some(4), lumped.first_token_ns);
    assert_eq!(observe(&lumped, Metric::Tpot), Observation::Undefined);
}

#[test]
fn generation_throughput_is_the_inverse_of_tpot() {
    let rate = |row: &RequestRow| observe(row, Metric::GenerationThroughput);
    let two = record(0, MS, 50 * MS, vec![5 * MS], windows()).row;
    assert_eq!((rate(&two), observe(&two, Metric::Tpot)), (Observation::Value(200.0), Observation::Value(5.0)));
    // Both tokens arrived in one read: a time of 0 is a valid TPOT, but has no rate.
    let at_once = record(0, MS, 50 * MS, vec![0], windows()).row;
    assert_eq!((rate(&at_once), observe(&at_once, Metric::Tpot)), (Observation::Undefined, Observation::Value(0.0)));
    let mut uncounted = two;
    (uncounted.streamed_tokens, uncounted.tokens_unknown) = (None, Some(TokensUnknown::TokensByEvents));
    assert_eq!(rate(&uncounted), Observation::Undefined);
}

#[test]
fn without_streaming_latency_ends_with_the_body() {
    let mut row = example().row;
    row.done_ns = Some(165 * MS);
    row.ended_ns = row.done_ns;
    let windows = windows();
    let request = Request { row: &Measured::from(&row), windows: &windows, stream: false };
    assert_eq!(request.observe(Metric::E2e), Observation::Value(150.0));
    for metric in [Metric::Ttft, Metric::TtftFromSchedule, Metric::Ttfo, Metric::Tpot, Metric::GenerationThroughput] {
        assert_eq!(request.observe(metric), Observation::Undefined);
    }
}

#[test]
fn failures_are_above_all_with_what_is_known() {
    let mut timeout = example();
    fail(&mut timeout, Outcome::Timeout, 600 * MS);
    assert_eq!(observe(&timeout.row, Metric::E2e), Observation::Failed(Some(600.0)));
    assert_eq!(observe(&timeout.row, Metric::TtftFromSchedule), Observation::Failed(Some(605.0)));
    assert_eq!(observe(&timeout.row, Metric::Tpot), Observation::Failed(None));
    assert_eq!(observe(&timeout.row, Metric::UserThroughput), Observation::Failed(None));
    assert_eq!(observe(&timeout.row, Metric::GenerationThroughput), Observation::Failed(None));
    let mut cut = example();
    fail(&mut cut, Outcome::CutAtDrain, 0);
    assert_eq!(observe(&cut.row, Metric::E2e), Observation::Failed(Some(1985.0)));
    let mut queued = cut.row.clone();
    queued.sent_ns = None;
    assert_eq!(observe(&queued, Metric::Ttft), Observation::Failed(None));
    assert_eq!(observe(&queued, Metric::E2eFromSchedule), Observation::Failed(Some(1990.0)));
    queued.requested_tokens = 1;
    assert_eq!(observe(&queued, Metric::Tpot), Observation::Undefined);
    assert_eq!(observe(&queued, Metric::GenerationThroughput), Observation::Undefined);
}

#[test]
fn events_share_the_tokens() {
    let mut record = example();
    (record.row.output_tokens, record.row.streamed_tokens, record.row.requested_tokens) = (Some(8), Some(6), 8);
    let events: Vec<(u64, f64)> = token_events(&Measured::from(&record.row), &record.gaps_ns, true).collect();
    assert_eq!(events, [(115 * MS, 1.5), (125 * MS, 1.5), (145 * MS, 1.5), (155 * MS, 1.5)]);
    (record.row.streamed_tokens, record.row.tokens_unknown) = (None, Some(TokensUnknown::TokensByEvents));
    assert!(token_events(&Measured::from(&record.row), &record.gaps_ns, true).all(|(_, tokens)| tokens == 1.0));
    record.row.output_tokens = Some(6);
    assert_eq!(
        token_events(&Measured::from(&record.row), &record.gaps_ns, false).collect::<Vec<_>>(),
        [(155 * MS, 6.0)]
    );
    fail(&mut record, Outcome::Reset, MS);
    assert_eq!(token_events(&Measured::from(&record.row), &record.gaps_ns, true).count(), 0);
    assert_eq!(token_events(&Measured::from(&record.row), &record.gaps_ns, false).count(), 0);
}
