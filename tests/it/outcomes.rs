//! Tests outcomes, each of which is produced by a misbehaving server and read from the row.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use sweepline::rows::{Outcome, Phase, Record, read_journal};

use lab::mock::Mock;
use lab::plans::{by_number, one_by_one, plan};
use lab::server::{Server, good, stream_of, token};
use lab::sweeps::child_with;
use lab::{Lab, peak_memory, wait_for};

fn error(record: &Record) -> &str {
    record.row.error.as_deref().unwrap_or("")
}

/// The faults of the mock, each with its outcome in rows and a part of the row's text. The first fault
/// strikes request 0 of the run.
const FAULTS: [(&str, &str, &str); 17] = [
    ("http:503", "http_503", "a fault of the mock"),
    ("http:401", "http_401", "a fault of the mock"),
    ("http:429", "http_429", "a fault of the mock"),
    ("reset:3", "reset", ""),
    ("reset:0", "reset", ""),
    ("close", "reset", ""),
    ("stall:2", "stalled", "nothing was received for 1s"),
    ("stall-headers", "stalled", "nothing was received for 1s"),
    ("truncate", "malformed", "EOF"),
    ("invalid-json", "malformed", "expected value"),
    ("invalid-utf8", "malformed", "UTF-8"),
    ("wrong-shape", "ok", ""),
    ("huge-line:17000000", "malformed", "larger than 16 MiB"),
    ("error-object:4", "stream_error", "a fault of the mock"),
    ("empty", "empty", "without any text"),
    ("exit-not", "ok", ""),
    ("slow:200", "timeout", "not done within 3s"),
];

#[test]
fn each_fault_of_the_mock_is_its_outcome_and_is_sent_once() {
    // The probe's generation is the mock's request 1.
    let faults: Vec<String> = FAULTS
        .iter()
        .enumerate()
        .filter(|(_, (fault, ..))| *fault != "exit-not")
        .map(|(at, (fault, ..))| format!("--fault={fault}@{}", at + 2))
        .collect();
    let mut flags = vec!["--ttft", "3ms", "--itl", "2ms"];
    flags.extend(faults.iter().map(String::as_str));
    let mock = Mock::start(&flags);
    let lab = Lab::new();
    lab.write("plan.yaml", &one_by_one(mock.port, FAULTS.len() + 2, "stall: 1s, request: 3s"));
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(3), "more than 10% of errors are invalid: {}{}", ended.stdout, ended.stderr);
    let run = lab.only_run();
    let (id, attempt) = (run.json["id"].as_str().unwrap()[..16].to_owned(), run.json["attempt"].clone());
    let records = by_number(run);
    for (record, (fault, outcome, text)) in records.iter().zip(FAULTS) {
        let row = &record.row;
        assert_eq!(row.outcome.to_string(), outcome, "{fault}: {:?}", row.error);
        assert!(error(record).contains(text), "{fault}: {:?}", row.error);
        assert_eq!(row.error.is_some(), outcome != "ok", "{fault}");
        assert!(error(record).chars().count() <= 201, "{fault}: bounded");
        let status = outcome.strip_prefix("http_").map_or(200, |status| status.parse().unwrap());
        assert_eq!(row.http_status, (fault != "stall-headers").then_some(status), "{fault}");
        assert!(row.sent_ns.is_some() && row.ended_ns >= row.sent_ns, "{fault}");
    }
    let events = |at: usize| records[at].row.events;
    assert_eq!([events(3), events(4), events(6), events(13), events(14)], [3, 0, 2, 4, 0]);
    assert_eq!(records[11].row.unread_events, Some(1), "an event of an unknown shape");
    let stalled = &records[6].row;
    assert!(
        stalled.ended_ns.unwrap() - stalled.last_token_ns.unwrap() >= 1_000_000_000,
        "a whole second without a token"
    );
    assert!(records[16].row.ended_ns.unwrap() - records[16].row.sent_ns.unwrap() >= 3_000_000_000);

    // The server received the request of each row exactly once, with the row's id, and nothing else
    // except the probe.
    let sent: Vec<&Record> = records.iter().filter(|record| record.row.sent_ns.is_some()).collect();
    let log = mock.log(sent.len() + 12);
    let mut ids: Vec<&str> = log.iter().filter_map(|line| line["request_id"].as_str()).collect();
    assert_eq!(ids.len(), log.len());
    ids.retain(|id| *id != "sweepline-probe");
    ids.sort_unstable();
    let mut expected: Vec<String> =
        sent.iter().map(|record| format!("{id}-{attempt}-{}", record.row.request)).collect();
    expected.sort();
    assert_eq!(ids, expected);
    assert_eq!(
        log.len() - ids.len(),
        12,
        "the probe requests the models, one generation, the models again and the version, five round trips, then the \
         gauge, and the version twice after the run"
    );
    let fault_of = |at: usize| log.iter().find(|line| line["n"] == at + 2).unwrap()["fault"].clone();
    assert_eq!(fault_of(6), "stall");
}

#[test]
fn a_connection_reset_at_once_is_not_tried_again() {
    // Connections 1 and 2 belong to the probe, 3 and 4 identify the server, 5 measures the round trip, 6
    // reads the gauge. The run's first connection ends with its second request, so that the next ones meet
    // the resets.
    let mock = Mock::start(&["--fault", "refuse@8-11", "--fault", "close@3"]);
    let lab = Lab::new();
    lab.write("plan.yaml", &one_by_one(mock.port, 12, "stall: 30s"));
    lab.run(&["run", "plan.yaml"]);
    let records = by_number(lab.only_run());
    assert_eq!(records[0].row.outcome, Outcome::Ok);
    assert_eq!(records[1].row.outcome, Outcome::Reset);
    // Five failures in a row would trigger a liveness check, and the fault would strike that check too.
    for record in &records[2..6] {
        // The reset may arrive before the client sees its connection open.
        assert!(matches!(record.row.outcome, Outcome::Reset | Outcome::Connect), "{:?}", record.row.outcome);
    }
    assert!(records[6..].iter().all(|record| record.row.outcome != Outcome::Reset));
    // The mock may log a connection that it resets after the client has seen the reset.
    let refused = || mock.log_now().iter().filter(|line| line["fault"] == "refuse").count();
    wait_for("the log of the resets", || (refused() >= 4).then_some(()));
    assert_eq!(refused(), 4, "one connection for each row");
}

/// Returns responses that are not HTTP as expected: bytes on the wire, outcome, a part of the row's text.
fn odd_answers() -> Vec<(Vec<u8>, &'static str, &'static str)> {
    let raw = |text: &str| text.as_bytes().to_vec();
    let long = "x".repeat(1 << 20);
    let chunked = |body: &str| {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).into_bytes()
    };
    let role = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
    vec![
        (good(), "ok", ""),
        (stream_of("event: error\ndata: the GPU fell off\n\n"), "stream_error", "the GPU fell off"),
        (stream_of("event: error\ndata: {\"message\":\"no memory\"}\n\n"), "stream_error", "no memory"),
        (stream_of(&format!("{}data: {{\"error\":\"late\"}}\n\n", token("a"))), "stream_error", "late"),
        (raw("HELLO\r\n\r\n"), "malformed", ""),
        (raw(&format!("HTTP/1.1 200 OK\r\nx-long: {long}\r\n\r\n")), "malformed", ""),
        (raw("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"), "http_302", ""),
        (raw(&format!("HTTP/1.1 503 Busy\r\ncontent-length: {}\r\n\r\n{long}", long.len())), "http_503", "xxx"),
        (raw("HTTP/1.1 500 Oh\r\ncontent-length: 13\r\n\r\n\x1b[31m\u{7}painted"), "http_500", "painted"),
        (chunked(role), "reset", "before its finish reason"),
        (stream_of(&token("a")), "reset", "before its finish reason"),
        (raw("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"), "empty", ""),
        (raw("HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\ndata: {}"), "reset", ""),
        (raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"), "malformed", "chunk"),
        (raw(""), "reset", ""),
        (stream_of("data: {\"choices\":\n\n"), "malformed", ""),
        (stream_of("data: [1]\n\n"), "reset", "an event was not understood: [1]"),
        (stream_of("data: {\"object\":\"nothing\"}\n\n"), "reset", "not understood: {\"object\":\"nothing\"}"),
        (stream_of(&format!("{}data: {{\"choices\":[{{\"finish_reason\":\"{long}\"}}]}}\n\n", token("a"))), "ok", ""),
    ]
}

#[test]
fn what_is_no_answer_is_told_apart() {
    let server = Server::start(|number, stream| {
        let answers = odd_answers();
        let (bytes, ..) = &answers[number.min(answers.len() - 1)];
        // The client may close the connection in the middle.
        let _ = stream.write_all(bytes);
    });
    let answers = odd_answers();
    let lab = Lab::new();
    lab.write("plan.yaml", &one_by_one(server.port, answers.len(), "stall: 30s"));
    lab.run(&["run", "plan.yaml"]);
    let records = by_number(lab.only_run());
    for (record, (bytes, outcome, text)) in records.iter().zip(&answers) {
        let answer = String::from_utf8_lossy(&bytes[..bytes.len().min(120)]).into_owned();
        assert_eq!(record.row.outcome.to_string(), *outcome, "{answer}: {:?}", record.row.error);
        assert!(error(record).contains(text), "{answer}: {:?}", record.row.error);
        assert!(error(record).chars().count() <= 201 && !error(record).contains(char::is_control), "{answer}");
    }
    let reason = records.last().unwrap().row.finish_reason.as_deref().unwrap();
    assert!(reason.chars().count() <= 201, "a finish reason is bounded too");
    assert_eq!(server.ids().len(), records.iter().filter(|record| record.row.sent_ns.is_some()).count());
}

#[test]
fn a_line_without_end_is_refused_and_memory_stays_bounded() {
    const SENT: usize = 1 << 30;
    let server = Server::start(|_, stream| {
        let _ = stream.write_all(&stream_of("data: {\"choices\":[{\"delta\":{\"content\":\""));
        let piece = vec![b'x'; 1 << 20];
        // Ends as soon as the client closes the connection.
        let _ = (0..SENT / piece.len()).try_for_each(|_| stream.write_all(&piece));
    });
    let lab = Lab::new();
    lab.write("plan.yaml", &one_by_one(server.port, 6, "stall: 30s"));
    let mut running = lab.start(&["run", "plan.yaml"]);
    let mut peak = 0;
    wait_for("the end of the run", || {
        peak = peak_memory(running.id()).unwrap_or(0).max(peak);
        running.has_ended().then_some(())
    });
    let records = by_number(lab.only_run());
    assert!(records.len() >= 6);
    for record in records.iter().filter(|record| record.row.outcome != Outcome::CutAtDrain) {
        assert_eq!(record.row.outcome, Outcome::Malformed, "{:?}", record.row.error);
        assert!(error(record).contains("larger than 16 MiB"));
        assert!(record.row.bytes < 64 << 20, "read no further than needed: {}", record.row.bytes);
    }
    assert!(peak > 0 && peak < 256 << 20, "at most one line of 16 MiB at a time, not {peak} bytes");
}

#[test]
fn a_body_that_does_not_end_after_done_holds_nobody_up() {
    let server = Server::start(|_, stream| {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let body = format!(
            "{}data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n",
            token("a")
        );
        let _ = write!(stream, "{head}{:x}\r\n{body}\r\n", body.len());
        // Waits until the client closes the connection.
        let _ = std::io::copy(stream, &mut std::io::sink());
    });
    let lab = Lab::new();
    lab.write("plan.yaml", &one_by_one(server.port, 4, "stall: 30s, request: 30s"));
    lab.run(&["run", "plan.yaml"]);
    let records = by_number(lab.only_run());
    let whole: Vec<&Record> = records.iter().filter(|record| record.row.outcome != Outcome::CutAtDrain).collect();
    assert!(whole.len() >= 4 && whole.iter().all(|record| record.row.outcome.is_ok()));
    assert!(whole.iter().all(|record| record.row.done_ns.unwrap() >= record.row.last_token_ns.unwrap()));
}

#[test]
fn refused_and_unanswered_connections_are_connect() {
    // Nothing listens any more once the probe has its response.
    let gone = Server::start_with(|listener| drop(listener.take()), |_, _| {});
    // The server listens without accepting connections, and the queue is full before the probe gets
    // its response.
    let queue = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let listener = queue.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        socket.listen(1).unwrap().into_std().unwrap()
    });
    listener.set_nonblocking(false).unwrap();
    let silent = Server::on(listener, fill_queue, |_, _| {});
    let lab = Lab::new();
    let rest = "timeouts: { connect: 200ms }\n\
         phases: { fill: 0s, stabilize: 0s, measure: 1s, drain: 3s }\n\
         sweeps: { s: { matrix: { endpoint: [gone, silent], model: [m], scenario: [short], qps: [10] }, arrivals: constant } }\n";
    // This test reads rows, so the missing server must not end the runs.
    let plan = plan(&[("gone", gone.port), ("silent", silent.port)], rest);
    lab.write("plan.yaml", &plan.replace("engine: mock }", "engine: mock, errors: measured }"));
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(3), "{}{}", ended.stdout, ended.stderr);
    let runs = lab.runs();
    assert_eq!(runs.len(), 2, "{}", ended.stderr);
    for run in runs.into_values() {
        let silent = run.json["spec"]["endpoint"]["name"] == "silent";
        let text = if silent { "within 200ms" } else { "refused" };
        // Requests dispatched after the window may be cut off.
        let mut records = by_number(run);
        records.retain(|record| record.row.phase == Phase::Measure);
        assert!(records.len() >= 9);
        for record in records {
            assert_eq!(record.row.outcome, Outcome::Connect, "{:?}", record.row);
            assert!(error(&record).contains(text), "{:?}", record.row.error);
            assert_eq!((record.row.sent_ns, record.row.http_status), (None, None));
            assert!(!silent || record.row.ended_ns.unwrap() - record.row.scheduled_ns >= 200_000_000);
        }
    }
    assert_eq!((gone.ids().len(), silent.ids().len()), (0, 0));
}

/// Opens connections that are never accepted until the kernel refuses more. They stay open for the lifetime
/// of the process.
fn fill_queue(listener: &mut Option<TcpListener>) {
    let address = listener.as_ref().unwrap().local_addr().unwrap();
    let waiting: Vec<TcpStream> =
        std::iter::from_fn(|| TcpStream::connect_timeout(&address, Duration::from_millis(300)).ok()).take(64).collect();
    assert!(waiting.len() < 64, "the queue accepts everything");
    std::mem::forget((waiting, listener.take()));
}

/// Returns a plan with two runs on an endpoint that disappears after its probe and has no wait for
/// recovery, then two on a working one.
fn dead_then_alive(dead: u16, alive: u16) -> String {
    let plan = plan(
        &[("dead", dead), ("alive", alive)],
        "phases: { fill: 0s, stabilize: 0s, measure: { for: 200ms, min_requests: 40, at_most: 60s }, drain: 5s }\n\
         sweeps:\n  first: { matrix: { endpoint: [dead], model: [m], scenario: [short], batch_size: [1, 4] } }\n  \
         second: { after: first, matrix: { endpoint: [alive], model: [m], scenario: [short], batch_size: [1, 4] } }\n",
    );
    let address = format!("127.0.0.1:{dead}/v1'");
    plan.replace(&address, &format!("{address}, ready: {{ within: 0s }}"))
}

fn endpoints(lab: &Lab) -> Vec<String> {
    lab.runs().values().map(|run| run.json["spec"]["endpoint"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn refused_connections_in_a_row_end_a_run_and_the_others_go_on() {
    let (dead, alive) =
        (Server::start_with(|listener| drop(listener.take()), |_, _| {}), Mock::start(&["--ttft", "2ms"]));
    let lab = Lab::new();
    lab.write("plan.yaml", &dead_then_alive(dead.port, alive.port));
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(6), "{}{}", ended.stdout, ended.stderr);
    let reason = format!(" times in a row, and http://127.0.0.1:{}/v1 does not respond", dead.port);
    assert_eq!(ended.stderr.matches(&reason).count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("to be retried (1 of 3)"), "{}", ended.stderr);
    assert!(ended.stderr.contains("2 skipped"), "{}", ended.stderr);
    assert_eq!(endpoints(&lab), ["alive", "alive"]);
    let attempts: Vec<_> =
        std::fs::read_dir(lab.results().join("attempts")).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(attempts.len(), 1);
    for attempt in attempts {
        let text = std::fs::read_to_string(attempt.join("attempt.json")).unwrap();
        assert!(text.contains(&reason), "{text}");
        let (_, records) = read_journal(&attempt.join("journal.arrow")).unwrap();
        assert!(records.len() >= 5, "{}", records.len());
        let expected = |record: &Record| matches!(record.row.outcome, Outcome::Connect | Outcome::CutAtDrain);
        assert!(records.iter().all(expected), "in-flight requests are cut off");
    }

    // In the second run, the probe finds no server, so the dead endpoint's runs are skipped with that
    // reason. The runs on the working endpoint already exist.
    let again = lab.run(&["run", "plan.yaml"]);
    assert_eq!(again.code, Some(6), "{}", again.stderr);
    assert!(again.stderr.contains("does not respond"), "{}", again.stderr);
    assert_eq!(again.stderr.matches("skipped: endpoint `dead` is not ready").count(), 2, "{}", again.stderr);
    assert!(again.stderr.contains("2 skipped"), "{}", again.stderr);
}

#[test]
fn fail_fast_leaves_the_rest() {
    // During the probe, nothing listens on port 1 of the loopback. During the run, the server has
    // stopped listening.
    let (dead, alive) =
        (Server::start_with(|listener| drop(listener.take()), |_, _| {}), Mock::start(&["--ttft", "2ms"]));
    for (port, left) in [(1, "2 skipped, 2 left to do"), (dead.port, "1 failed, 3 left to do")] {
        let lab = Lab::new();
        lab.write("plan.yaml", &dead_then_alive(port, alive.port));
        let ended = lab.run(&["run", "plan.yaml", "--fail-fast"]);
        assert_eq!(ended.code, Some(6), "{}{}", ended.stdout, ended.stderr);
        assert!(ended.stderr.contains(left), "{}", ended.stderr);
        assert!(endpoints(&lab).is_empty());
        let asked = alive.log_now().iter().all(|entry| entry["request_id"] == "sweepline-probe");
        assert!(asked, "the working server got no load");
    }
}

#[test]
fn the_death_of_an_embedded_server_fails_its_run_alone() {
    let lab = Lab::real_time();
    lab.write(
        "plan.yaml",
        "sweepline: 1\nname: death\nendpoints:\n  doomed: { engine: mock, retries: { runs: 0 }, mock: { ttft: 37ms, itl: 1ms } }\n  \
         fine: { engine: mock, mock: { ttft: 2ms, itl: 1ms } }\nmodels: { m: { id: tiny } }\n\
         scenarios: { short: { base: B1, output_tokens: 8 } }\n\
         phases: { fill: 0s, stabilize: 0s, measure: 300ms, drain: 5s }\n\
         sweeps:\n  first: { matrix: { endpoint: [doomed], model: [m], scenario: [short], batch_size: [2] }, phases: { measure: 100s } }\n  \
         second: { after: first, matrix: { endpoint: [fine], model: [m], scenario: [short], batch_size: [2] } }\n",
    );
    let running = lab.start(&["run", "plan.yaml"]);
    let attempts = lab.results().join("attempts");
    let journal = wait_for("the run", || {
        let attempt = std::fs::read_dir(&attempts).ok()?.next()?.unwrap().path();
        let journal = attempt.join("journal.arrow");
        journal.exists().then_some(journal)
    });
    let server = child_with(running.id(), "--ttft=37ms").expect("the embedded server is a child");
    kill_process(server, Signal::KILL).unwrap();
    let ended = running.end();
    assert_eq!(ended.code, Some(6), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("failed: the server process ended during the run"), "{}", ended.stderr);
    assert_eq!(endpoints(&lab), ["fine"]);
    let (_, records) = read_journal(&journal).unwrap();
    let died: Vec<&Record> = records.iter().filter(|record| record.row.outcome == Outcome::ServerDied).collect();
    assert!(!died.is_empty(), "{:?}", records.iter().map(|record| record.row.outcome).collect::<Vec<_>>());
    assert!(error(died[0]).contains("the server process has ended"), "{:?}", died[0].row.error);
}

#[test]
fn what_is_under_way_at_the_end_of_drain_is_cut() {
    // Each run has its own server, because a server that has stopped responding is not ready for a
    // second run.
    let mocks = ["a", "b", "c"].map(|name| (name, Mock::start(&["--fault", "stall:2@2-"])));
    let lab = Lab::new();
    let rest = "phases: { fill: 0s, stabilize: 0s, measure: 300ms, drain: 200ms }\n\
         sweeps:\n  keep: { matrix: { endpoint: [a], model: [m], scenario: [short], batch_size: [3] } }\n  \
         stop: { matrix: { endpoint: [b], model: [m], scenario: [short], batch_size: [3] }, phases: { drain: { for: 100s, mode: stop } } }\n  \
         capped: { matrix: { endpoint: [c], model: [m], scenario: [short], qps: [20], batch_size: [1] }, arrivals: constant }\n";
    lab.write("plan.yaml", &plan(&mocks.each_ref().map(|(name, mock)| (*name, mock.port)), rest));
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(3), "{}{}", ended.stdout, ended.stderr);
    let mut rows: BTreeMap<String, Vec<Record>> = BTreeMap::new();
    for run in lab.runs().into_values() {
        let end = run.window("end_ns");
        let load = &run.json["spec"]["load"];
        let mode = run.json["spec"]["phases"]["drain"]["mode"].as_str().unwrap();
        let name = if load.to_string().contains("qps") { "capped" } else { mode }.to_owned();
        if name != "stop" {
            assert!(end >= 500_000_000, "drain lasts until its end: {end}");
        }
        rows.insert(name, by_number(run));
    }
    assert_eq!(rows.keys().collect::<Vec<_>>(), ["capped", "keep", "stop"]);
    for name in ["keep", "stop"] {
        assert_eq!(rows[name].len(), 3);
        for record in &rows[name] {
            assert_eq!((record.row.outcome, record.row.events), (Outcome::CutAtDrain, 2), "{name}");
            assert!(record.row.error.is_some() && record.row.done_ns.is_none());
        }
    }
    let (first, waiting) = rows["capped"].split_first().unwrap();
    assert_eq!((first.row.outcome, first.row.events), (Outcome::CutAtDrain, 2));
    assert!(waiting.len() >= 5, "the other scheduled requests are rows too");
    for record in waiting {
        assert_eq!((record.row.outcome, record.row.released_ns), (Outcome::CutAtDrain, None));
        // A request that was due at the very last moment was never examined.
        let last = record.row.scheduled_ns > 490_000_000;
        assert!(last || error(record).contains("cap"), "{:?}", record.row.error);
    }
}

#[test]
fn proxies_of_the_environment_change_nothing() {
    let mock = Mock::start(&["--ttft", "2ms"]);
    let lab = Lab::new();
    lab.write("plan.yaml", &one_by_one(mock.port, 5, "stall: 30s"));
    for args in [&["probe", "plan.yaml"], &["run", "plan.yaml"]] {
        let mut command = lab.command(args);
        for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
            // Nothing listens at the proxy's address, so every request sent there would fail.
            command.env(name, "http://127.0.0.1:1").env_remove("NO_PROXY").env_remove("no_proxy");
        }
        let output = command.output().unwrap();
        // A run may be late, and thus invalid, if many tests share the machine.
        let as_expected = output.status.success() || args[0] == "run";
        assert!(as_expected, "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
    }
    let records = by_number(lab.only_run());
    assert!(records.iter().take(5).all(|record| record.row.outcome.is_ok()));
}
