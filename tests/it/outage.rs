//! Tests which failures end an attempt and which are measured, with servers that are away, reject the load
//! or merely fail occasionally.
//!
//! `SWEEPLINE_CLEAN=200` makes 200 clean runs, and a tenth as many overloaded ones.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use serde_json::Value;
use sweepline::rows::Outcome;

use lab::mock::Mock;
use lab::server::{Server, good, read_request};
use lab::sweeps::child_with;
use lab::{Ended, Lab, Run, wait_for};

/// Fields of the endpoint in addition to its address: no wait and no retries.
const ONCE: &str = ", ready: { within: 0s }, retries: { runs: 0 }";

/// Returns a plan with one run of `load` against `port`, with fields of `endpoint` and `scenario`, and
/// `more` next to the sweeps.
fn plan(port: u16, [endpoint, scenario, load, more]: [&str; 4]) -> String {
    format!(
        "sweepline: 1\nname: outage\n\
         endpoints: {{ a: {{ url: 'http://127.0.0.1:{port}/v1', engine: mock{ONCE}{endpoint} }} }}\n\
         models: {{ m: {{ id: tiny }} }}\nscenarios: {{ short: {{ base: B1, output_tokens: 8{scenario} }} }}\n{more}\
         sweeps: {{ s: {{ matrix: {{ endpoint: [a], model: [m], scenario: [short], {load} }} }} }}\n"
    )
}

/// Returns phases of a run with at least this many measured requests.
fn at_least(requests: usize) -> String {
    format!(
        "phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 100ms, min_requests: {requests}, at_most: 60s }}, drain: 20s }}\n"
    )
}

/// Returns the record of the first attempt.
fn attempt(lab: &Lab) -> Value {
    let attempts = std::fs::read_dir(lab.results().join("attempts")).unwrap().map(|entry| entry.unwrap().path());
    let first = attempts.min().expect("the attempt is kept");
    serde_json::from_slice(&std::fs::read(first.join("attempt.json")).unwrap()).unwrap()
}

/// Asserts that the run was spoiled: nothing is committed, and the attempt and the user get the reason.
fn spoiled(lab: &Lab, ended: &Ended, cause: &str, words: &str) -> Value {
    assert_ne!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(lab.runs().is_empty(), "{}", ended.stderr);
    let attempt = attempt(lab);
    let spoiled = attempt["spoiled"].clone();
    assert_eq!(spoiled["cause"], cause, "{attempt:#}");
    assert!(spoiled["detail"].as_str().unwrap().contains(words), "{spoiled:#}");
    assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    spoiled
}

/// Asserts that the run was committed, and returns how many of its requests had this outcome.
fn committed(lab: &Lab, ended: &Ended, outcome: Outcome) -> (Run, usize) {
    assert_eq!(lab.runs().len(), 1, "{}{}", ended.stdout, ended.stderr);
    let run = lab.only_run();
    let count = run.records.iter().filter(|record| record.row.outcome == outcome).count();
    (run, count)
}

fn http(status: u16, fields: &str, message: &str) -> Vec<u8> {
    let body = format!(r#"{{"error":{{"message":"{message}"}}}}"#);
    format!("HTTP/1.1 {status} No\r\n{fields}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn limited() -> Server {
    Server::start(|_, stream| {
        let _ = stream.write_all(&http(429, "Retry-After: 1\r\n", "rate limit exceeded"));
    })
}

/// A server that serves one connection at a time, including the list of models. `answer` writes the
/// response to the `n`-th generation (from 0; `None` for the list).
struct Single {
    port: u16,
    over: Arc<AtomicBool>,
    serving: Option<JoinHandle<()>>,
}

impl Single {
    fn start(answer: impl Fn(Option<usize>) -> Vec<u8> + Send + 'static) -> Single {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let over = Arc::new(AtomicBool::new(false));
        let (end, number) = (Arc::clone(&over), AtomicUsize::new(0));
        let serving = std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                if end.load(SeqCst) {
                    return;
                }
                stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                let Some(head) = read_request(&mut stream) else { continue };
                let generation = head.starts_with("post").then(|| number.fetch_add(1, SeqCst));
                // The client may have disconnected.
                let _ = stream.write_all(&answer(generation));
            }
        });
        Single { port, over, serving: Some(serving) }
    }
}

impl Drop for Single {
    fn drop(&mut self) {
        self.over.store(true, SeqCst);
        let _ = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)));
        if let Some(serving) = self.serving.take().filter(|_| !std::thread::panicking()) {
            serving.join().unwrap();
        }
    }
}

/// Returns the response to a probe's generation, or the list of models.
fn probe_answer() -> Vec<u8> {
    let body = r#"{"data":[{"id":"tiny"}],"choices":[{"message":{"content":"hi"}}],"usage":{"completion_tokens":1}}"#;
    format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

#[test]
fn three_429_end_an_attempt_at_once() {
    for threads in ["", "engine: { threads: 2 }\n"] {
        let (server, lab) = (limited(), Lab::new());
        lab.write("plan.yaml", &plan(server.port, ["", "", "batch_size: [2]", &(at_least(1_000) + threads)]));
        let ended = lab.run(&["run", "plan.yaml"]);
        let words = "HTTP 429 three times: rate limit exceeded";
        let spoiled = spoiled(&lab, &ended, "rate_limited", words);
        assert_eq!(spoiled["detail"], words);
        assert_eq!(spoiled["retry_after"], "1s");
        let id = server.ids()[0].rsplit_once('-').unwrap().0.to_owned();
        let first = server.ids().iter().filter(|sent| sent.starts_with(&id)).count();
        assert!((3..=6).contains(&first), "the load stops at once: {first} requests");
    }
}

#[test]
fn with_errors_measured_a_storm_of_429_is_what_is_measured() {
    let measured = ", errors: measured";
    for (endpoint, scenario, is_measured) in
        [(measured, "", true), ("", measured, true), (measured, ", errors: environment", false)]
    {
        let (server, lab) = (limited(), Lab::new());
        lab.write("plan.yaml", &plan(server.port, [endpoint, scenario, "batch_size: [2]", &at_least(50)]));
        let ended = lab.run(&["run", "plan.yaml"]);
        if !is_measured {
            spoiled(&lab, &ended, "rate_limited", "HTTP 429 three times");
            continue;
        }
        let (run, limited) = committed(&lab, &ended, Outcome::Http(429));
        assert!(limited >= 50, "{limited}");
        assert_eq!(run.json["facts"]["errors_measured"], true);
        assert_eq!(run.json["spec"]["errors"], "measured");
        assert!(ended.stderr.contains("errors"), "{}", ended.stderr);
    }
}

#[test]
fn with_errors_measured_a_server_that_is_gone_is_measured_too() {
    let server = Server::start_with(|listener| drop(listener.take()), |_, _| {});
    let lab = Lab::new();
    lab.write("plan.yaml", &plan(server.port, [", errors: measured", "", "batch_size: [4]", &at_least(20)]));
    let ended = lab.run(&["run", "plan.yaml"]);
    let (_, refused) = committed(&lab, &ended, Outcome::Connect);
    // There is no busy loop, because each slot tries again only after 200 ms.
    assert!((20..100).contains(&refused), "{refused}");
}

#[test]
fn a_model_that_was_swapped_under_way_ends_it() {
    let server = Server::start(|number, stream| {
        let unknown = http(404, "", "The model `tiny` does not exist.");
        let _ = stream.write_all(&if number < 10 { good() } else { unknown });
    });
    let lab = Lab::new();
    lab.write("plan.yaml", &plan(server.port, ["", "", "batch_size: [1]", &at_least(1_000)]));
    let ended = lab.run(&["run", "plan.yaml"]);
    spoiled(&lab, &ended, "unknown_model", "HTTP 404 three times: The model `tiny` does not exist.");
}

#[test]
fn a_server_that_is_gone_ends_it_in_any_phase() {
    for phases in
        ["{ fill: 30s, stabilize: 0s, measure: 1s, drain: 1s }", "{ fill: 0s, stabilize: 0s, measure: 30s, drain: 1s }"]
    {
        let server = Server::start_with(|listener| drop(listener.take()), |_, _| {});
        let lab = Lab::new();
        lab.write("plan.yaml", &plan(server.port, ["", "", "batch_size: [2]", &format!("phases: {phases}\n")]));
        let ended = lab.run(&["run", "plan.yaml"]);
        let words =
            format!(" times in a row, and http://127.0.0.1:{}/v1 does not respond: Connection refused", server.port);
        spoiled(&lab, &ended, "refused", &words);
    }
}

#[test]
fn a_gateway_whose_server_is_gone_ends_it() {
    // The server works until the tenth generation.
    let unavailable = http(503, "Retry-After: 1\r\n", "no backend");
    let gone = Arc::new(AtomicBool::new(false));
    let server = Single::start(move |generation| match generation {
        Some(0) => probe_answer(),
        Some(number) => {
            gone.fetch_or(number >= 10, SeqCst);
            if number >= 10 { unavailable.clone() } else { good() }
        }
        None if gone.load(SeqCst) => unavailable.clone(),
        None => probe_answer(),
    });
    let lab = Lab::new();
    lab.write("plan.yaml", &plan(server.port, ["", "", "batch_size: [1]", &at_least(100_000)]));
    let ended = lab.run(&["run", "plan.yaml"]);
    let words = format!(" times in a row: no backend, and http://127.0.0.1:{}/v1 returns HTTP 503", server.port);
    let spoiled = spoiled(&lab, &ended, "unavailable", &words);
    assert_eq!(spoiled["retry_after"], "1s");
}

#[test]
fn the_end_of_an_embedded_server_spoils_its_run() {
    let lab = Lab::new();
    lab.write(
        "plan.yaml",
        &plan(1, ["", "", "batch_size: [2]", "phases: { fill: 100s, stabilize: 0s, measure: 1s, drain: 1s }\n"])
            .replace("url: 'http://127.0.0.1:1/v1', engine: mock", "engine: mock, mock: { ttft: 41ms, itl: 1ms }")
            // The sweep does not wait for a server that sweepline starts.
            .replace(", ready: { within: 0s }", ""),
    );
    let running = lab.start(&["run", "plan.yaml", "--fail-fast"]);
    wait_for("the run", || std::fs::read_dir(lab.results().join("attempts")).ok()?.next()?.ok());
    let server = child_with(running.id(), "--ttft=41ms").expect("the embedded server is a child");
    kill_process(server, Signal::KILL).unwrap();
    let ended = running.end();
    spoiled(&lab, &ended, "server_died", "the server process ended during the run");
}

#[test]
fn sporadic_errors_are_measurements() {
    let kept = "batch_size: [8]";
    for (flags, load, more, outcomes) in [
        (vec!["--fault", "http:500@10%"], kept, "", vec![Outcome::Http(500)]),
        // The server is overloaded: it has a quarter of the slots and rejects every second request.
        (vec!["--slots", "2", "--itl", "2ms", "--fault", "http:503@50%"], kept, "", vec![Outcome::Http(503)]),
        (
            vec!["--fault", "refuse@every:10"],
            kept,
            "connections: per_request\n",
            vec![Outcome::Reset, Outcome::Connect],
        ),
        (vec!["--fault", "reset:2@10%", "--fault", "truncate@10%"], kept, "", vec![Outcome::Reset]),
    ] {
        let (mock, lab) = (Mock::start(&flags), Lab::new());
        lab.write("plan.yaml", &plan(mock.port, ["", "", load, &(at_least(300) + more)]));
        let ended = lab.run(&["run", "plan.yaml"]);
        let (run, _) = committed(&lab, &ended, Outcome::Ok);
        let struck = run.records.iter().filter(|record| outcomes.contains(&record.row.outcome)).count();
        assert!(struck >= 10, "{flags:?}: {struck}");
        assert!(run.json["facts"].get("errors_measured").is_none());
    }
}

#[test]
fn a_server_that_drops_its_connections_behind_each_answer_is_measured() {
    let server = Server::start(|_, stream| {
        // The server does not announce the close.
        let _ = stream.write_all(&String::from_utf8(good()).unwrap().replace("connection: close\r\n", "").into_bytes());
    });
    let lab = Lab::new();
    lab.write("plan.yaml", &plan(server.port, ["", "", "batch_size: [4]", &at_least(100)]));
    let ended = lab.run(&["run", "plan.yaml"]);
    let (_, ok) = committed(&lab, &ended, Outcome::Ok);
    assert!(ok >= 90, "{ok}");
}

#[test]
fn a_server_that_hangs_ends_it() {
    let (mock, lab) = (Mock::start(&["--ttft", "20ms"]), Lab::new());
    let phases = "phases: { fill: 0s, stabilize: 0s, measure: 60s, drain: 1s }\n";
    lab.write("plan.yaml", &plan(mock.port, ["", "", "batch_size: [3]", phases]));
    let mut command = lab.command(&["run", "plan.yaml"]);
    let running = lab::Running::start(command.env("SWEEPLINE_PATIENCE", "400ms"));
    mock.log(11);
    // The server's connections stay open, the kernel accepts new ones, and no request ever gets a
    // response.
    mock.signal(Signal::STOP);
    let ended = running.end();
    let words = format!(
        "with 3 requests in flight, and http://127.0.0.1:{}/v1 did not respond to a check within 400ms, twice",
        mock.port
    );
    spoiled(&lab, &ended, "silent", &words);
    assert!(ended.stderr.contains("nothing was received for "), "{}", ended.stderr);
}

#[test]
fn a_server_that_hangs_with_one_request_under_way_ends_it() {
    // Every request times out before the silence is long enough to count, because the next request
    // continues the silence.
    let (mock, lab) = (Mock::start(&["--ttft", "20ms"]), Lab::new());
    let phases =
        "timeouts: { request: 250ms, stall: 250ms }\nphases: { fill: 0s, stabilize: 0s, measure: 60s, drain: 1s }\n";
    lab.write("plan.yaml", &plan(mock.port, ["", "", "batch_size: [1]", phases]));
    let mut command = lab.command(&["run", "plan.yaml"]);
    let running = lab::Running::start(command.env("SWEEPLINE_PATIENCE", "600ms"));
    mock.log(11);
    mock.signal(Signal::STOP);
    let ended = running.end();
    spoiled(&lab, &ended, "silent", "did not respond to a check within 600ms, twice");
}

#[test]
fn a_slow_server_of_one_thread_is_not_taken_for_dead() {
    // The server sends nothing while it computes, for longer than both the allowed silence and the
    // timeout of a check.
    let server = Single::start(|generation| match generation {
        None | Some(0) => probe_answer(),
        Some(_) => {
            std::thread::sleep(Duration::from_millis(1_700));
            good()
        }
    });
    let lab = Lab::new();
    let phases =
        "phases: { fill: 0s, stabilize: 0s, measure: { for: 10ms, min_requests: 3, at_most: 60s }, drain: 30s }\n";
    lab.write("plan.yaml", &plan(server.port, ["", "", "batch_size: [2]", phases]));
    let ended = Ended::from(lab.command(&["run", "plan.yaml"]).env("SWEEPLINE_PATIENCE", "1s").output().unwrap());
    let (_, ok) = committed(&lab, &ended, Outcome::Ok);
    assert!(ok >= 3, "{ok}");
}

#[test]
fn neither_a_clean_nor_an_overloaded_run_is_taken_for_an_outage() {
    let clean: usize = std::env::var("SWEEPLINE_CLEAN").ok().and_then(|runs| runs.parse().ok()).unwrap_or(2);
    // Responses take 64 ms, so two slots serve 31 requests per second.
    let mock = Mock::start(&["--slots", "2", "--ttft", "50ms", "--itl", "2ms"]);
    let phases = "phases: { fill: 0s, stabilize: 0s, measure: 1s, drain: 30s }\n";
    for (qps, runs) in [(15, clean), (37, clean.div_ceil(10))] {
        for _ in 0..runs {
            let lab = Lab::new();
            lab.write("plan.yaml", &plan(mock.port, ["", "", &format!("qps: [{qps}]"), phases]));
            let ended = lab.run(&["run", "plan.yaml"]);
            committed(&lab, &ended, Outcome::Ok);
        }
    }
}
