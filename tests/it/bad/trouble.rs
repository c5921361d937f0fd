//! Problems of client and server during a run.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use sweepline::rows::{Outcome, Record, read_journal};

use super::{MB, Watched, watch};
use lab::mock::Mock;
use lab::plans::{by_number, plan};
use lab::{Lab, Running, wait_for};

/// Returns an open loop of `qps` over `measure`.
fn open(port: u16, qps: u32, measure: &str, more: &str) -> String {
    let rest = format!(
        "{more}timeouts: {{ connect: 5s, stall: 20s }}\n\
         phases: {{ fill: 0s, stabilize: 0s, measure: {measure}, drain: 30s }}\n\
         sweeps: {{ s: {{ matrix: {{ endpoint: [a], model: [m], scenario: [short], qps: [{qps}] }}, arrivals: constant }} }}\n"
    );
    plan(&[("a", port)], &rest)
}

/// Returns the rows of a run that ended normally, or of one that gave up because the server was
/// unreachable: the speed of the machine decides which happens. Twenty consecutive connections that the
/// machine does not allow are the documented limit.
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
    lab.write("plan.yaml", &open(mock.port, 40, "1s", "connections: per_request\n"));
    let running = lab.start(&["run", "plan.yaml"]);
    // The first requests of the run: a dozen are in flight.
    mock.log_of_runs(3);
    let process = Pid::from_raw(running.id() as i32);
    let Rlimit { maximum, .. } = rustix::process::getrlimit(Resource::Nofile);
    // Open connections stay open; fewer new ones are possible than are needed at a time.
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
    assert!(!records.iter().any(|record| other(&record)), "no other request failed");
    eprintln!("{} of {} without a file descriptor", failed.len(), records.len());
}

/// Returns a port on which a server can be restarted: outside the range from which the kernel assigns
/// client ports, so that no client can get it meanwhile.
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
    // Without this the gap could count as an outage, which ends the run.
    let measured = open(port, 20, "2500ms", "").replace("engine: mock }", "engine: mock, errors: measured }");
    lab.write("plan.yaml", &measured);
    let running = lab.start(&["run", "plan.yaml"]);
    // Ten requests before the run, then three of the run's own.
    first.log(13);
    drop(first);
    // The gap is what this test is about: some requests find no server.
    std::thread::sleep(Duration::from_millis(200));
    let second = Mock::start(&flags);
    let watched = watch(running);
    let mut records = rows(&lab, &watched);
    records.sort_by_key(|record| record.row.request);
    let outcome = |record: &Record| record.row.outcome;
    assert_eq!(outcome(&records[0]), Outcome::Ok);
    let lost: Vec<usize> =
        (0..records.len()).filter(|at| matches!(outcome(&records[*at]), Outcome::Reset | Outcome::Connect)).collect();
    assert!(!lost.is_empty(), "no request fell into the gap");
    let others = records.iter().map(outcome).filter(|outcome| !matches!(outcome, Outcome::Reset | Outcome::Connect));
    assert!(others.clone().all(|outcome| matches!(outcome, Outcome::Ok | Outcome::CutAtDrain)));
    assert!(lost.iter().all(|at| records[*at].row.error.is_some()));
    if !lab.runs().is_empty() {
        assert!(outcome(&records[lost[lost.len() - 1] + 1]) == Outcome::Ok, "served again");
        let served = records.len() - 1 - lost[lost.len() - 1];
        // Requests that were cut at the end may be incomplete in the log.
        let answered = wait_for("the log", || Some(second.log_now().len()).filter(|lines| lines + 5 >= served));
        eprintln!("{} lost, {served} after them, {answered} in the second log", lost.len());
    }
}
