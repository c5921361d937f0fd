//! Tests the number of connections that is possible at once.

use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};
use sweepline::rows::{Connection, Outcome, Phase, Record};

use lab::mock::Mock;
use lab::plans::plan;
use lab::{Ended, Lab, peak_memory};

fn of(records: &[Record], connection: Connection) -> usize {
    records.iter().filter(|record| record.row.connection() == Some(connection)).count()
}

/// Asserts that no request of a run failed. Requests that were cut off at its end do not count as
/// failures.
fn assert_none_failed(records: &[Record], ended: &Ended) {
    let failed = |record: &&Record| !matches!(record.row.outcome, Outcome::Ok | Outcome::CutAtDrain);
    let first = records.iter().find(failed).map(|record| &record.row);
    let count = records.iter().filter(failed).count();
    assert!(first.is_none(), "{count} of {} failed: {first:?}\n{}", records.len(), ended.stderr);
    assert!(records.iter().any(|record| record.row.outcome == Outcome::Ok), "{}", ended.stderr);
}

fn ten_thousand_connections_at_once() {
    const SLOTS: u32 = 10_000;
    const MB: u64 = 1_000_000;
    let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    if hard < u64::from(SLOTS) + 500 {
        eprintln!("skipped: this test opens {SLOTS} connections, and the hard limit of open files is {hard}");
        return;
    }
    let (mock, lab) = (
        Mock::start_with(&["--slots", "10000", "--ttft", "8s", "--itl", "1ms"], |command| command),
        Lab::measured_time(),
    );
    let phases = "timeouts: { connect: 60s, request: 5m, stall: 2m }\n\
         phases: { fill: 0s, stabilize: 0s, measure: { for: 50ms, min_requests: 10000, at_most: 100s }, drain: 2m }\n";
    let sweep = format!(
        "{phases}sweeps: {{ s: {{ matrix: {{ endpoint: [a], model: [m], scenario: [short], batch_size: [{SLOTS}] }} }} }}\n"
    );
    lab.write("plan.yaml", &plan(&[("a", mock.port)], &sweep).replace("output_tokens: 8", "output_tokens: 2"));
    let mut running = lab.start(&["run", "plan.yaml"]);
    // This is longer than the run's own phases, because an unoptimized build is slow on a busy
    // machine.
    let (start, mut most) = (Instant::now(), 0);
    while !running.has_ended() {
        assert!(start.elapsed() < Duration::from_secs(400), "it does not end");
        most = peak_memory(running.id()).unwrap_or(0).max(most);
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = running.end();
    let run = lab.only_run();
    assert_none_failed(&run.records, &ended);
    let ok =
        run.records.iter().filter(|record| record.row.outcome == Outcome::Ok && record.row.phase == Phase::Measure);
    assert!(ok.count() >= SLOTS as usize, "{}", ended.stderr);
    assert_eq!(run.json["facts"]["max_in_flight"], SLOTS);
    assert_eq!(of(&run.records, Connection::New), 0, "all were opened ahead");
    println!("{} requests over {SLOTS} connections at once; at most {} MB resident", run.records.len(), most / MB);
    assert!(most > 0 && most < 600 * MB, "{} MB", most / MB);
}

lab::measured_tests![ten_thousand_connections_at_once];
