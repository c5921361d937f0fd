//! What befalls client and server in the middle of a run.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use sweepline::rows::{Outcome, Record, read_journal};

use super::super::lab::{Lab, Running, wait_for};
use super::super::mock::Mock;
use super::super::outcomes::{by_number, plan};
use super::{MB, Watched, watch};

/// An open loop of `qps` over `measure`.
fn open(port: u16, qps: u32, measure: &str, more: &str) -> String {
    let rest = format!(
        "{more}timeouts: {{ connect: 5s, stall: 20s }}\n\
         phases: {{ fill: 0s, stabilize: 0s, measure: {measure}, drain: 30s }}\n\
         sweeps: {{ s: {{ matrix: {{ endpoint: [a], model: [m], scenario: [short], qps: [{qps}] }}, arrivals: constant }} }}\n"
    );
    plan(&[("a", port)], &rest)
}

/// The rows of a run that came to its end, or of one that gave up because nobody could be reached: which of the two a
/// trouble leads to is a matter of the machine's speed. Twenty connections in a row that the machine does not allow are the
/// documented border.
fn rows(lab: &Lab, watched: &Watched) -> Vec<Record> {
    let Watched { ended, peak } = watched;
    assert_eq!(ended.code, Some(3), "{}{}", ended.stdout, ended.stderr);
    assert!(*peak < 200 * MB, "{} MB of memory", peak / MB);
    if let Some((_, run)) = lab.runs().pop_first() {
        return by_number(run);
    }
    assert!(ended.stderr.contains("20 connections in a row"), "{}", ended.stderr);
    let mut attempts = std::fs::read_dir(lab.results().join("attempts")).unwrap();
    let attempt: PathBuf = attempts.next().unwrap().unwrap().path();
    read_journal(&attempt.join("journal.arrow")).unwrap().1
}

fn files(running: &Running) -> u64 {
    std::fs::read_dir(format!("/proc/{}/fd", running.id())).unwrap().count() as u64
}

#[test]
fn a_limit_of_files_that_is_reached_in_a_run_fails_requests_and_says_so() {
    let mock = Mock::start(&["--ttft", "300ms", "--slots", "100"]);
    let lab = Lab::new();
    lab.write("plan.yaml", &open(mock.port, 40, "2s", "connections: per_request\n"));
    let running = lab.start(&["run", "plan.yaml"]);
    // The first of the run: a dozen are under way.
    mock.log_of_runs(3);
    let process = Pid::from_raw(running.id() as i32);
    let Rlimit { maximum, .. } = rustix::process::getrlimit(Resource::Nofile);
    // What is open stays open; of new ones there can be fewer than are needed at a time.
    let current = Some(files(&running) - 4);
    prlimit(process, Resource::Nofile, Rlimit { current, maximum }).unwrap();
    let watched = watch(running);
    let records = rows(&lab, &watched);
    let failed: Vec<&Record> = records.iter().filter(|record| record.row.outcome == Outcome::Connect).collect();
    assert!(!failed.is_empty(), "{} rows", records.len());
    for record in &failed {
        let error = record.row.error.as_deref().unwrap_or_default();
        assert!(error.contains("open files"), "{error}");
        assert_eq!((record.row.sent_ns, record.row.http_status), (None, None));
    }
    let other = |record: &&Record| !matches!(record.row.outcome, Outcome::Ok | Outcome::Connect | Outcome::CutAtDrain);
    assert!(!records.iter().any(|record| other(&record)), "nothing else went wrong");
    eprintln!("{} of {} without a file descriptor", failed.len(), records.len());
}

/// A port on which a server can be started again: outside of the range from which the kernel takes the ports of clients,
/// one of which might else get it meanwhile.
fn quiet_port() -> u16 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let lowest: u16 = range.split_whitespace().next().unwrap().parse().unwrap();
    let start = lowest / 2 + (std::process::id() % u32::from(lowest / 4)) as u16;
    let free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    (start..lowest).find(free).expect("a free port below those of clients")
}

#[test]
fn a_server_that_restarts_in_a_run_costs_the_requests_of_the_gap() {
    let port = quiet_port();
    let flags = ["--port", &port.to_string(), "--ttft", "50ms", "--itl", "10ms"];
    let first = Mock::start(&flags);
    let lab = Lab::new();
    // Without this the gap may be an outage, which ends the run.
    let measured = open(port, 10, "5s", "").replace("engine: mock }", "engine: mock, errors: measured }");
    lab.write("plan.yaml", &measured);
    let running = lab.start(&["run", "plan.yaml"]);
    // Ten questions before the run, then three of its requests.
    first.log(13);
    drop(first);
    // The gap is the very thing under test: some requests meet nobody.
    std::thread::sleep(Duration::from_millis(500));
    let second = Mock::start(&flags);
    let watched = watch(running);
    let mut records = rows(&lab, &watched);
    records.sort_by_key(|record| record.row.request);
    let outcome = |record: &Record| record.row.outcome;
    assert_eq!(outcome(&records[0]), Outcome::Ok);
    let lost: Vec<usize> =
        (0..records.len()).filter(|at| matches!(outcome(&records[*at]), Outcome::Reset | Outcome::Connect)).collect();
    assert!(!lost.is_empty(), "nobody noticed the gap");
    let others = records.iter().map(outcome).filter(|outcome| !matches!(outcome, Outcome::Reset | Outcome::Connect));
    assert!(others.clone().all(|outcome| matches!(outcome, Outcome::Ok | Outcome::CutAtDrain)));
    assert!(lost.iter().all(|at| records[*at].row.error.is_some()));
    if !lab.runs().is_empty() {
        assert!(outcome(&records[lost[lost.len() - 1] + 1]) == Outcome::Ok, "served again");
        let served = records.len() - 1 - lost[lost.len() - 1];
        // Those that were cut at the end may not have come to their ends in the log.
        let answered = wait_for("the log", || Some(second.log_now().len()).filter(|lines| lines + 5 >= served));
        eprintln!("{} lost, {served} behind them, {answered} in the second log", lost.len());
    }
}
