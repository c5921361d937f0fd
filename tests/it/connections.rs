//! Tests the origin of requests' connections, the number of connections that is possible, and the
//! messages on a machine that does not have enough capacity.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use sweepline::rows::{Connection, Outcome, Record};

use lab::mock::Mock;
use lab::plans::plan;
use lab::{Ended, Lab, wait_for};

/// Returns a closed loop of `slots` over one endpoint, with the lines of `rest` in its plan.
fn closed(port: u16, slots: u32, rest: &str) -> String {
    let sweep = format!(
        "phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 50ms, min_requests: {}, at_most: 90s }}, drain: 30s }}\n\
         sweeps: {{ s: {{ {rest}matrix: {{ endpoint: [a], model: [m], scenario: [short], batch_size: [{slots}] }} }} }}\n",
        slots * 4,
    );
    plan(&[("a", port)], &sweep)
}

/// Runs the program in the lab's folder under `ulimit` with these arguments, until it ends.
fn limited(lab: &Lab, ulimit: &str, args: &[&str]) -> Ended {
    Ended::from(limited_command(lab, ulimit, args).output().unwrap())
}

fn limited_command(lab: &Lab, ulimit: &str, args: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit {ulimit} && exec \"$@\""), "sh"]).arg(lab::program());
    command.args(args).current_dir(lab.path()).stdin(Stdio::null()).env("NO_COLOR", "1");
    command
}

fn of(records: &[Record], connection: Connection) -> usize {
    records.iter().filter(|record| record.row.connection() == Some(connection)).count()
}

/// Returns the connections on which measured requests arrived, with the mock's numbers for them, and the
/// number of these requests, as soon as at least `requests` have ended.
fn on_the_server(mock: &Mock, requests: usize) -> (usize, usize) {
    wait_for("the requests in the log", || {
        let log = mock.log_now();
        let measured = log.iter().filter(|line| line["request_id"].as_str().is_some_and(|id| id != "sweepline-probe"));
        let connections: Vec<u64> = measured.map(|line| line["connection"].as_u64().unwrap()).collect();
        let different: BTreeSet<u64> = connections.iter().copied().collect();
        (connections.len() >= requests).then_some((different.len(), connections.len()))
    })
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

#[test]
fn connections_are_warm_cold_or_new_for_each_request() {
    for (mode, rest) in [("warm", ""), ("cold", "connections: cold, "), ("per_request", "connections: per_request, ")] {
        let (mock, lab) = (Mock::start(&["--itl", "1ms"]), Lab::new());
        lab.write("plan.yaml", &closed(mock.port, 6, rest));
        let ended = lab.run(&["run", "plan.yaml"]);
        let run = lab.only_run();
        assert_none_failed(&run.records, &ended);
        let (new, reused) = (of(&run.records, Connection::New), of(&run.records, Connection::Reused));
        let ok = run.records.iter().filter(|record| record.row.outcome == Outcome::Ok).count();
        let (connections, requests) = on_the_server(&mock, ok);
        assert!(new + reused >= ok, "each response came over a connection");
        match mode {
            "warm" => assert_eq!((new, connections), (0, 6), "each connection existed before its first request"),
            "cold" => assert_eq!((new, connections), (6, 6), "the first request of each slot opens a connection"),
            _ => assert_eq!((reused, connections), (0, requests), "one connection per request"),
        }
        for Record { row, .. } in &run.records {
            let opened = row.connection() == Some(Connection::New);
            assert_eq!(row.connect_ns.is_some(), opened, "{mode}");
            assert_eq!((row.dns_ns, row.tls_ns), (None, None), "an address, without TLS");
        }
        assert_eq!(run.json["spec"]["connections"], mode);
        assert_eq!(
            (&run.json["facts"]["client_threads"], &run.json["facts"]["client_timer"]),
            (&1.into(), &"timerfd".into())
        );
    }
}

#[test]
fn connections_are_an_axis_and_a_label() {
    let (mock, lab) = (Mock::start(&[]), Lab::new());
    lab.write(
        "plan.yaml",
        &closed(mock.port, 2, "").replace("batch_size: [2]", "batch_size: [2], connections: [warm, cold]"),
    );
    lab.run(&["run", "plan.yaml"]);
    let opened = |run: &lab::Run| of(&run.records, Connection::New);
    let runs = lab.runs();
    let found: BTreeSet<(String, usize)> = runs
        .values()
        .map(|run| (run.json["spec"]["labels"]["axes"]["connections"].as_str().unwrap().to_owned(), opened(run)))
        .collect();
    assert_eq!(found, BTreeSet::from([("warm".to_owned(), 0), ("cold".to_owned(), 2)]));
}

#[test]
fn too_few_files_are_told_before_anything_is_done() {
    let (mock, lab) = (Mock::start(&[]), Lab::new());
    lab.write("plan.yaml", &closed(mock.port, 300, ""));
    let ended = limited(&lab, "-n 256", &["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    for words in ["this process may open 256 files", "a · short · batch 300 (300 connections)", "ulimit -n "] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
    assert!(!lab.results().exists(), "nothing was written");
    assert!(mock.log_now().is_empty(), "nothing was sent");

    let preview = limited(&lab, "-n 256", &["preview", "plan.yaml"]);
    assert_eq!(preview.code, Some(0));
    assert!(preview.stderr.contains("`run` would refuse this: this process may open 256 files"), "{}", preview.stderr);

    // The suggested limit is sufficient.
    let needed = ended.stderr.split("ulimit -n ").nth(1).unwrap().lines().next().unwrap().to_owned();
    let ended = limited(&lab, &format!("-n {needed}"), &["run", "plan.yaml"]);
    let run = lab.only_run();
    assert_none_failed(&run.records, &ended);
    assert_eq!(run.json["facts"]["max_in_flight"], 300);
    let ended = limited(&lab, "-n 256", &["run", "plan.yaml"]);
    assert!(ended.stderr.contains("nothing to do"), "existing results need no connection: {}", ended.stderr);
}

#[test]
fn a_soft_limit_is_raised_to_the_hard_one() {
    let (mock, lab) = (Mock::start(&[]), Lab::new());
    lab.write("plan.yaml", &closed(mock.port, 300, ""));
    let ended = limited(&lab, "-S -n 100", &["run", "plan.yaml"]);
    let run = lab.only_run();
    assert_none_failed(&run.records, &ended);
}

#[test]
fn runs_side_by_side_share_the_files() {
    let lab = Lab::new();
    let sweep = "sweeps: { s: { matrix: { endpoint: [a, b], model: [m], scenario: [short], batch_size: [150] } } }\n";
    lab.write("plan.yaml", &plan(&[("a", 1), ("b", 2)], sweep));
    let two = limited(&lab, "-n 360", &["run", "plan.yaml", "--jobs", "2"]);
    assert_eq!(two.code, Some(2), "{}", two.stderr);
    assert!(two.stderr.contains("a · short · batch 150 (150 connections), b · short"), "{}", two.stderr);
    assert!(two.stderr.contains("or --jobs"), "{}", two.stderr);
    let one = limited(&lab, "-n 360", &["preview", "plan.yaml"]);
    assert_eq!(one.code, Some(0));
    assert!(!one.stderr.contains("refuse"), "there is room for runs one after the other: {}", one.stderr);
    let two = limited(&lab, "-n 360", &["run", "plan.yaml", "--jobs", "2", "--dry-run"]);
    assert!(two.code == Some(0) && two.stderr.contains("would refuse this"), "{}", two.stderr);
}

#[test]
fn too_few_ports_are_told_before_anything_is_done() {
    let lab = Lab::new();
    lab.write("plan.yaml", &closed(1, 100_000, ""));
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("need a local port each: 100000 to 127.0.0.1:1"), "{}", ended.stderr);

    // An address reserved for documentation: nothing is ever sent there.
    let remote = plan(&[("a", 1)], "sweeps: { s: { connections: per_request, matrix: { endpoint: [a], model: [m], scenario: [short], qps: [900000] } } }\n")
        .replace("127.0.0.1", "192.0.2.1");
    lab.write("plan.yaml", &remote);
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    for words in ["a new connection for each request at 900000 qps", "keeps its port for", "keep connections open"] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
    assert!(!lab.results().exists(), "nothing was written");
    lab.write("plan.yaml", &remote.replace("per_request", "cold"));
    let kept = lab.run(&["preview", "plan.yaml"]).stderr;
    assert!(!kept.contains("refuse"), "kept connections use as many ports as requests in flight: {kept}");
}

#[test]
fn what_no_limit_was_told_of_beforehand_is_told_by_the_rows() {
    // An open loop without a cap has no limit, so the number of connections that it needs shows
    // only when the server is slow.
    let (mock, lab) = (Mock::start_with(&["--slots", "1000", "--ttft", "2s"], |command| command), Lab::new());
    let sweep = "timeouts: { stall: 2m }\nphases: { fill: 0s, stabilize: 0s, measure: 20s, drain: 200ms }\n\
         sweeps: { s: { arrivals: constant, matrix: { endpoint: [a], model: [m], scenario: [short], qps: [400] } } }\n";
    lab.write("plan.yaml", &plan(&[("a", mock.port)], sweep));
    let ended = limited(&lab, "-n 200", &["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(6), "{}", ended.stderr);
    assert!(ended.stderr.contains("20 connections in a row"), "{}", ended.stderr);
    assert!(ended.stderr.contains("raise the limit of open files: ulimit -n"), "{}", ended.stderr);
}

#[test]
fn threads_and_timer_build_the_generator_and_name_nothing() {
    let (mock, lab) = (Mock::start(&["--itl", "1ms"]), Lab::new());
    let built = |engine: &str| closed(mock.port, 6, "").replace("sweeps:", &format!("engine: {{ {engine} }}\nsweeps:"));
    lab.write("plan.yaml", &built("threads: 3"));
    let ended = lab.run(&["run", "plan.yaml"]);
    let run = lab.only_run();
    assert_none_failed(&run.records, &ended);
    assert_eq!(of(&run.records, Connection::New), 0, "each thread opens its share ahead");
    let ok = run.records.iter().filter(|record| record.row.outcome == Outcome::Ok).count();
    assert_eq!(on_the_server(&mock, ok).0, 6, "six connections over three threads");
    let facts = &run.json["facts"];
    assert_eq!((&facts["client_threads"], &facts["client_timer"]), (&3.into(), &"timerfd".into()));

    lab.write("plan.yaml", &built("threads: 1, timer: spin"));
    let again = lab.ok(&["preview", "plan.yaml", "--format", "json"]).json();
    assert_eq!(again["runs"][0]["state"], "cached", "the same run, whatever the generator's threads");
    let ended = lab.run(&["run", "plan.yaml", "--force"]);
    let run = lab.only_run();
    assert_none_failed(&run.records, &ended);
    let facts = &run.json["facts"];
    assert_eq!((&facts["client_threads"], &facts["client_timer"]), (&1.into(), &"spin".into()));
}
