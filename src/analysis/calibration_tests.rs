use proptest::prelude::*;

use super::*;
use crate::analysis::synthetic::{Run, fail, measured, read, record};
use crate::rows::{Outcome, Record, Replay, Windows};

const MS: u64 = 1_000_000;
const US: u64 = 1_000;
/// The run's start on the monotonic clock. Times in rows are relative to it, but times in the log are not.
const ORIGIN: u64 = 5_000_000 * MS;
const TOLD: MockPace = MockPace { ttft: Nanos(20 * MS), itl: Nanos(4 * MS) };

fn facts() -> Facts {
    let windows = Windows { stabilize_ns: 0, measure_start_ns: 0, measure_end_ns: 2_000 * MS, end_ns: 2_500 * MS };
    Facts { windows, stream: true, start_monotonic_ns: ORIGIN, ..Facts::default() }
}

/// The timeline of one request, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Way {
    /// Time from when the request is due until it is sent.
    late: u64,
    /// Time from sending the request to its arrival at the mock.
    there: u64,
    /// Delay of the mock's first token.
    server: u64,
    /// Time from the first token's write to its timestamp at the generator.
    first: u64,
    /// Time from the last token's write to its timestamp at the generator.
    last: u64,
}

fn errors_of(records: &[Record], log: &ServerLog, told: MockPace) -> Errors {
    let (run, events) = read(records, &facts(), None);
    Errors::of(run.rows(), &events, &facts(), log, told)
}

fn pressure_of(records: &[Record], facts: &Facts) -> Option<Pressure> {
    let (run, events) = read(records, facts, None);
    Pressure::of(run.rows(), &events, facts)
}

/// Returns request `number` and the mock's log line for it. The request is due after `number` milliseconds
/// and has three tokens, which the mock should write 4 ms apart.
fn request(number: u64, way: Way) -> (Record, ServerLine) {
    let due = number * MS;
    let (sent, arrival) = (due + way.late, due + way.late + way.there);
    let written = arrival + TOLD.ttft.0 + way.server;
    let (first, last) = (written + way.first, written + 8 * MS + way.last);
    let gaps = vec![(last - first) / 2, last - first - (last - first) / 2];
    let mut record = record(due, sent, first, gaps, facts().windows);
    record.row.request = number;
    let line = ServerLine {
        arrival_ns: Some(ORIGIN + arrival),
        first_write_ns: Some(ORIGIN + written),
        last_write_ns: Some(ORIGIN + written + 8 * MS),
        ..ServerLine::default()
    };
    (record, line)
}

fn errors(ways: &[Way]) -> Errors {
    let (records, log) = made(ways);
    errors_of(&records, &log, TOLD)
}

fn made(ways: &[Way]) -> (Vec<Record>, ServerLog) {
    let pairs = ways.iter().enumerate().map(|(number, way)| request(number as u64, *way));
    let (records, lines): (Vec<Record>, Vec<ServerLine>) = pairs.unzip();
    (records, (0..).zip(lines).collect())
}

fn close(a: Option<f64>, nanos: f64) -> bool {
    a.is_some_and(|a| (a * 1e6 - nanos).abs() < 0.5)
}

#[test]
fn each_delay_is_the_error_that_it_should_be_with_its_sign() {
    let one = |way| errors(&[way; 400]);
    let there = one(Way { there: 30 * US, ..Way::default() });
    assert!(close(there.ttft.mean_ms, 30e3), "the way to the server is in our TTFT and not in the server's");
    assert!(close(there.lateness.mean_ms, -30e3), "reported lateness below the true lateness");
    assert!(close(there.late.mean_ms, 30e3) && close(there.itl.mean_ms, 0.0) && close(there.server_delay.mean_ms, 0.0));

    let late = one(Way { late: 700 * US, ..Way::default() });
    assert!(close(late.late.mean_ms, 700e3) && close(late.lateness.mean_ms, 0.0), "a late send that the row reports");
    assert!(close(late.ttft.mean_ms, 0.0));

    let read = one(Way { first: 90 * US, last: 20 * US, ..Way::default() });
    assert!(close(read.ttft.mean_ms, 90e3) && close(read.itl.mean_ms, -70e3) && close(read.itl.p99_ms, 70e3));

    let server = one(Way { server: 40 * MS, ..Way::default() });
    assert!(close(server.server_delay.mean_ms, 40e6), "the server's own delay is separate");
    assert!(close(server.ttft.max_ms, 0.0) && close(server.late.max_ms, 0.0) && server.holds());
}

#[test]
fn a_late_generator_does_not_hold() {
    let with = |slow: usize, way: Way| {
        let mut ways = vec![Way::default(); 400];
        ways[..slow].fill(way);
        errors(&ways)
    };
    let (late, read) = (Way { late: 5 * MS, ..Way::default() }, Way { first: 5 * MS, last: 5 * MS, ..Way::default() });
    assert!(with(0, late).holds());
    assert!(with(3, late).holds() && with(3, read).holds(), "the bound is on the 99th percentile");
    assert!(!with(8, late).holds() && !with(8, read).holds());
    let few = errors(&[Way::default(), Way { late: 5 * MS, ..Way::default() }]);
    assert!(few.late.p99_ms.is_none() && !few.holds(), "with too few requests the largest is judged");
}

#[test]
fn connecting_is_not_lateness() {
    let (mut record, line) = request(0, Way { late: 3 * MS, there: 10 * US, ..Way::default() });
    record.row.connect_ns = Some(3 * MS);
    let errors = errors_of(&[record], &[(0, line)].into(), TOLD);
    assert!(close(errors.late.mean_ms, 10e3) && close(errors.lateness.mean_ms, -10e3), "{errors:?}");
}

#[test]
fn what_only_one_side_knows_is_told() {
    let (mut records, mut log) = made(&[Way::default(); 10]);
    log.remove(&3);
    records.remove(7);
    let errors = errors_of(&records, &log, TOLD);
    assert_eq!((errors.requests, errors.ttft.n, errors.unseen, errors.unknown), (9, 8, 1, 1));
    assert!(!errors.holds(), "a request without a log line is not a small error");
    fail(&mut records[0], Outcome::Http(500), MS);
    let errors = errors_of(&records, &log, TOLD);
    assert_eq!((errors.failed, errors.ttft.n, errors.itl.n, errors.late.n), (1, 7, 7, 8));
    assert!(!errors_of(&[], &ServerLog::new(), TOLD).holds(), "no data shows nothing");
}

#[test]
fn events_of_one_read_are_seen() {
    let (mut records, log) = made(&[Way::default(); 10]);
    assert_eq!(errors_of(&records, &log, TOLD).merged, Some(0.0));
    records.iter_mut().take(5).for_each(|record| record.gaps_ns = vec![8 * MS, 0]);
    assert_eq!(errors_of(&records, &log, TOLD).merged, Some(0.25));
    let in_one_go = MockPace { itl: Nanos::ZERO, ..TOLD };
    assert_eq!(errors_of(&records, &log, in_one_go).merged, None);
}

#[test]
fn a_log_is_read_by_request_id() {
    let line = |id: &str| format!("{{\"n\":1,\"request_id\":{id},\"arrival_ns\":7,\"answer\":null}}\n");
    let text = "{\"log\":\"sweepline-mock 1\"}\n".to_owned()
        + &line("\"c-12\"")
        + &line("null")
        + &line("\"sweepline-probe\"")
        + &line("\"c-x\"")
        + &line("\"cc-13\"");
    let log = read_log(&text, "c").unwrap();
    assert_eq!(log.keys().collect::<Vec<_>>(), [&12]);
    assert_eq!((log[&12].arrival_ns, log[&12].first_write_ns), (Some(7), None));
    assert_eq!(read_log(&(text.clone() + &line("\"c-12\"")), "c"), Err(LogError::Twice(12)));
    let damaged = read_log(&(text + "{\"requ"), "c").unwrap_err();
    assert!(matches!(damaged, LogError::Damaged { line: 7, .. }), "{damaged}");
}

#[test]
fn stamps_are_counted_on_both_sides() {
    let (mut records, mut log) = made(&[Way::default(); 4]);
    records[1].row.stamp = Stamp::Kernel;
    log.get_mut(&0).unwrap().arrival_stamp = Some("kernel".into());
    log.get_mut(&1).unwrap().arrival_stamp = Some("user".into());
    let stamps = Stamps::of(read(&records, &facts(), None).0.rows(), &facts(), &log);
    assert_eq!(stamps, Stamps { client_kernel: 1, client: 4, server_kernel: 1, server: 4 });
}

#[test]
fn pressure_is_the_same_from_rows_and_from_metrics() {
    for run in [Run::default(), Run::open(30.0)] {
        let (records, facts) = run.make();
        let (rows, metrics) = (pressure_of(&records, &facts), Pressure::of_metrics(&measured(&records, &facts)));
        let (rows, metrics) = (rows.unwrap(), metrics.unwrap());
        assert!((rows.events_per_second / metrics.events_per_second - 1.0).abs() < 1e-9, "{rows:?} {metrics:?}");
        assert_eq!(rows.in_flight, metrics.in_flight);
        assert!(rows.is_within(&metrics) && rows.events_per_second > 100.0);
    }
    let small = Pressure { in_flight: 8.0, requests_per_second: 100.0, events_per_second: 1600.0 };
    assert!(small.is_within(&Pressure { in_flight: 7.8, ..small }), "rates of short windows fluctuate");
    for harder in [
        Pressure { in_flight: 9.0, ..small },
        Pressure { requests_per_second: 120.0, ..small },
        Pressure { events_per_second: 1800.0, ..small },
    ] {
        assert!(small.is_within(&harder) && !harder.is_within(&small), "exceeding one limit is enough");
    }
    assert_eq!(pressure_of(&[], &facts()), None);
}

#[test]
fn cost_is_of_requests_and_of_a_core() {
    let (records, _) = made(&[Way::default(); 500]);
    let facts = Facts { client_cpu_ns: Some(50 * MS), monotonic_ns: 2_000 * MS, ..facts() };
    assert_eq!(
        Cost::of(read(&records, &facts, None).0.rows(), &facts),
        Cost { cpu_s_per_1000_requests: Some(0.1), cores: Some(0.025) }
    );
    assert_eq!(Cost::of(&[], &facts).cpu_s_per_1000_requests, None);
}

fn way() -> impl Strategy<Value = Way> {
    let delay = || 0..3 * MS;
    let parts = (delay(), delay(), delay(), delay(), delay());
    parts.prop_map(|(late, there, server, first, last)| Way { late, there, server, first, last })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn the_errors_are_those_that_were_put_in(ways in prop::collection::vec(way(), 1..500)) {
        let errors = errors(&ways);
        let n = ways.len() as f64;
        let mean = |of: &dyn Fn(&Way) -> f64| ways.iter().map(of).sum::<f64>() / n;
        let largest = |of: &dyn Fn(&Way) -> f64| ways.iter().map(|way| of(way).abs()).fold(0.0, f64::max);
        let f = |nanos: u64| nanos as f64;
        type Of<'a> = &'a dyn Fn(&Way) -> f64;
        let cases: [(&Spread, Of); 5] = [
            (&errors.ttft, &|way| f(way.there + way.first)),
            (&errors.itl, &|way| f(way.last) - f(way.first)),
            (&errors.lateness, &|way| -f(way.there)),
            (&errors.late, &|way| f(way.late + way.there)),
            (&errors.server_delay, &|way| f(way.server)),
        ];
        for (spread, of) in cases {
            prop_assert_eq!(spread.n, ways.len() as u64);
            prop_assert!(close(spread.mean_ms, mean(of)), "{:?} is not {}", spread, mean(of));
            prop_assert!(close(spread.max_ms, largest(of)));
            prop_assert_eq!(spread.p50_ms.is_some(), ways.len() >= 6);
            prop_assert_eq!(spread.p99_ms.is_some(), ways.len() >= 368);
            prop_assert!(spread.p50_ms <= spread.p99_ms.or(spread.max_ms) && spread.p99_ms <= spread.max_ms);
        }
        prop_assert_eq!((errors.unseen, errors.unknown, errors.failed), (0, 0, 0));
    }

    #[test]
    fn the_order_of_rows_decides_nothing(ways in prop::collection::vec(way(), 1..50), turn in 0usize..50) {
        let (mut records, log) = made(&ways);
        let before = errors_of(&records, &log, TOLD);
        let turn = turn % records.len();
        records.rotate_left(turn);
        let after = errors_of(&records, &log, TOLD);
        prop_assert_eq!(before.late.max_ms, after.late.max_ms);
        prop_assert_eq!(before.itl.max_ms, after.itl.max_ms);
        prop_assert_eq!(before.ttft.p50_ms, after.ttft.p50_ms);
    }
}
