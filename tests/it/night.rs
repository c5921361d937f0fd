//! Tests an unattended sweep: servers are away, loading or misconfigured, or die during a run; also tests
//! the messages for the user.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sweepline::rows::Outcome;

use lab::front::{Front, Mood};
use lab::mock::Mock;
use lab::server::{Server, answer_probe, good, read_request};
use lab::sweeps::wait_for_attempt;
use lab::{Ended, Lab, wait_for};

/// Returns a plan with two loads on each endpoint (name, address, further fields).
fn plan(endpoints: &[(&str, u16, &str)]) -> String {
    let endpoint = |(name, port, more): &(&str, u16, &str)| {
        format!("  {name}: {{ url: 'http://127.0.0.1:{port}/v1', engine: mock{more} }}\n")
    };
    let names: Vec<&str> = endpoints.iter().map(|(name, ..)| *name).collect();
    format!(
        "sweepline: 1\nname: night\nendpoints:\n{}models: {{ m: {{ id: tiny }} }}\n\
         scenarios: {{ short: {{ base: B1, output_tokens: 4 }} }}\n\
         phases: {{ fill: 0s, stabilize: 0s, measure: 200ms, drain: 5s }}\n\
         sweeps: {{ s: {{ matrix: {{ endpoint: [{}], scenario: [short], batch_size: [1, 2] }} }} }}\n",
        endpoints.iter().map(endpoint).collect::<String>(),
        names.join(", ")
    )
}

fn lab(endpoints: &[(&str, u16, &str)]) -> Lab {
    let lab = Lab::new();
    lab.write("plan.yaml", &plan(endpoints));
    lab
}

/// Returns the endpoints of the committed runs.
fn committed(lab: &Lab) -> Vec<String> {
    let name = |run: lab::Run| run.json["spec"]["endpoint"]["name"].as_str().unwrap().to_owned();
    let mut names: Vec<String> = lab.runs().into_values().map(name).collect();
    names.sort();
    names
}

#[track_caller]
fn says(ended: &Ended, text: &str) {
    assert!(ended.stderr.contains(text), "`{text}` is missing in\n{}{}", ended.stderr, ended.stdout);
}

#[test]
fn a_server_that_never_comes_is_waited_for_and_named() {
    let mock = Mock::start(&["--ttft", "1ms"]);
    let front = Front::absent(mock.port);
    let lab = lab(&[("gone", front.port, ", ready: { within: 1500ms }"), ("here", mock.port, "")]);
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(6), "{}", ended.stderr);
    says(&ended, "gone: waiting for up to 2s: http://127.0.0.1:");
    says(&ended, "gone: not ready within 1500ms: http://127.0.0.1:");
    says(&ended, "Connection refused");
    says(&ended, "2 skipped; the same command continues with the missing runs");
    assert_eq!(ended.stderr.matches("gone: waiting for up to").count(), 1, "once for each reason: {}", ended.stderr);
    assert_eq!(committed(&lab), ["here", "here"], "other endpoints continue meanwhile");
    let order = |text: &str| ended.stderr.find(text).unwrap_or_else(|| panic!("{text}: {}", ended.stderr));
    assert!(order("gone: waiting") < order("gone: not ready"));
}

#[test]
fn a_server_that_comes_late_is_measured() {
    let mock = Mock::start(&["--ttft", "1ms"]);
    for (early, of) in [(Mood::Absent, "Connection refused"), (Mood::loading(), "HTTP 503")] {
        let front = match early {
            Mood::Absent => Front::absent(mock.port),
            mood => Front::start(mock.port, mood),
        };
        let lab = lab(&[("late", front.port, "")]);
        let mut command = lab.command(&["run", "plan.yaml"]);
        let told = lab.path().join("stderr");
        command.stderr(std::fs::File::create(&told).unwrap());
        let mut running = command.spawn().unwrap();
        let read = || std::fs::read_to_string(&told).unwrap();
        wait_for("the wait", || read().contains("late: waiting for up to").then_some(()));
        front.turn(Mood::Passes);
        let status = running.wait().unwrap();
        assert!(matches!(status.code(), Some(0 | 3)), "{}", read());
        assert!(read().contains(of) && read().contains("late: ready\n"), "{}", read());
        assert_eq!(committed(&lab), ["late", "late"]);
    }
}

#[test]
fn a_path_says_when_the_server_is_ready() {
    let mock = Mock::start(&["--ttft", "1ms"]);
    let lab = lab(&[("a", mock.port, ", ready: { path: /nowhere, within: 1m }")]);
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    says(&ended, "returns HTTP 404 for /nowhere but lists its models: the path does not exist; correct `ready.path`");
    lab.write("plan.yaml", &plan(&[("a", mock.port, ", ready: { path: /health, within: 10s }")]));
    assert!(matches!(lab.run(&["run", "plan.yaml"]).code, Some(0 | 3)));
    assert_eq!(committed(&lab), ["a", "a"]);
}

#[test]
fn what_an_edit_must_mend_is_told_at_once_and_together() {
    let mock = Mock::start(&["--ttft", "1ms", "--model", "tiny"]);
    let key = Front::start(mock.port, Mood::says("401 Unauthorized", "", r#"{"error":{"message":"no key"}}"#));
    let lab = lab(&[("fine", mock.port, ""), ("locked", key.port, "")]);
    let text = std::fs::read_to_string(lab.path().join("plan.yaml")).unwrap();
    let unknown = "  unknown: { url: 'http://no-such-host.invalid:1/v1' }\n";
    let more = text
        .replace("models:", &format!("{unknown}models:"))
        .replace("{ m: { id: tiny } }", "{ m: { id: tiny }, n: { id: huge } }")
        .replace("[fine, locked]", "[fine, locked, unknown]")
        .replace("scenario: [short]", "model: [m, n], scenario: [short]");
    lab.write("plan.yaml", &more);
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    says(&ended, "endpoint `fine`: http://127.0.0.1:");
    says(&ended, "does not have the model `huge`; it lists tiny");
    says(&ended, "endpoint `locked`: http://127.0.0.1:");
    says(&ended, "rejects the API key (HTTP 401)");
    says(&ended, "endpoint `unknown`: http://no-such-host.invalid:1/v1 does not respond");
    assert!(committed(&lab).is_empty(), "nothing is measured before the plan is fixed");
    assert!(!ended.stderr.contains("waiting for"), "{}", ended.stderr);
}

/// A running sweep, with its output so far.
struct Night {
    child: std::process::Child,
    told: std::path::PathBuf,
}

impl Night {
    fn start(lab: &Lab, patience: &str) -> Night {
        let told = lab.path().join("stderr");
        let mut command = lab.command(&["run", "plan.yaml"]);
        command.env("SWEEPLINE_PATIENCE", patience).stderr(std::fs::File::create(&told).unwrap());
        Night { child: command.spawn().unwrap(), told }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.told).unwrap()
    }

    /// Waits until the sweep has printed this text.
    fn until(&self, text: &str) {
        wait_for(text, || self.said().contains(text).then_some(()));
    }

    /// Returns the sweep's exit code and its whole output.
    fn end(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        (code, self.said())
    }
}

/// Returns a slow mock, a front in front of it, and a lab with two runs of two seconds on that front.
fn slow(more: &str) -> (Mock, Front, Lab) {
    let mock = Mock::start(&["--ttft", "20ms", "--itl", "5ms"]);
    let front = Front::start(mock.port, Mood::Passes);
    let lab = lab(&[("a", front.port, more)]);
    let longer = std::fs::read_to_string(lab.path().join("plan.yaml")).unwrap().replace("200ms", "2s");
    lab.write("plan.yaml", &longer);
    (mock, front, lab)
}

/// Waits until the load has started.
fn under_load(mock: &Mock) {
    wait_for("the load", || (mock.log_now().len() > 10).then_some(()));
}

/// Asserts that both runs exist, unaffected by the events, and that the sweep ends as if nothing had
/// happened.
#[track_caller]
fn complete(lab: &Lab, (code, said): (Option<i32>, String)) {
    // A busy machine may make a run invalid; no run is missing.
    assert!(matches!(code, Some(0 | 3)), "{code:?} {said}");
    assert_eq!(committed(lab), ["a", "a"], "{said}");
    for run in lab.runs().into_values() {
        let failed = run.records.iter().filter(|record| !record.row.outcome.is_ok()).count();
        let cut = run.records.iter().filter(|record| record.row.outcome == Outcome::CutAtDrain).count();
        assert_eq!(failed, cut, "{said}");
    }
}

#[test]
fn a_server_that_dies_and_comes_back_costs_an_attempt() {
    let (mock, front, lab) = slow("");
    let night = Night::start(&lab, "10s");
    under_load(&mock);
    front.turn(Mood::Absent);
    night.until("a: waiting for up to");
    front.turn(Mood::Passes);
    let (code, said) = night.end();
    for words in [" in a row", "to be retried (1 of 3)", "Connection refused", "a: ready\n"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!(said.matches(" started, about ").count(), 3, "the spoiled run starts twice: {said}");
    complete(&lab, (code, said));
}

#[test]
fn a_server_that_dies_for_good_leaves_the_rest_to_the_next_invocation() {
    let (mock, front, lab) = slow(", ready: { within: 500ms }");
    let night = Night::start(&lab, "10s");
    under_load(&mock);
    front.turn(Mood::Absent);
    let (code, said) = night.end();
    assert_eq!(code, Some(6), "{said}");
    for words in ["to be retried (1 of 3)", "a: not ready within 500ms: ", "2 skipped; the same command continues"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(committed(&lab).is_empty());
    let preview = lab.ok(&["preview", "plan.yaml", "--all"]).stdout;
    assert!(preview.contains("failed: connection re"), "{preview}");
    front.turn(Mood::Passes);
    complete(&lab, Night::start(&lab, "10s").end());
}

#[test]
fn a_server_that_hangs_is_waited_for() {
    let (mock, front, lab) = slow("");
    let night = Night::start(&lab, "500ms");
    under_load(&mock);
    front.turn(Mood::Silent);
    night.until("to be retried (1 of 3)");
    front.turn(Mood::Passes);
    let (code, said) = night.end();
    assert!(said.contains("nothing was received for"), "{said}");
    complete(&lab, (code, said));
}

/// Asserts that the sweep waits for a server that responds in this way for a while.
#[track_caller]
fn is_waited_for(mood: Mood, words: &[&str]) {
    let (mock, front, lab) = slow("");
    let night = Night::start(&lab, "10s");
    under_load(&mock);
    front.turn(mood);
    night.until("a: waiting for up to");
    front.turn(Mood::Passes);
    let (code, said) = night.end();
    for words in words {
        assert!(said.contains(words), "{words}: {said}");
    }
    complete(&lab, (code, said));
}

#[test]
fn a_model_that_is_swapped_under_way_is_waited_for() {
    let other = r#"{"error":{"message":"the model `tiny` does not exist"},"data":[{"id":"huge"}]}"#;
    is_waited_for(Mood::says("404 Not Found", "", other), &["HTTP 404 three times", "does not exist"]);
}

#[test]
fn a_key_that_is_no_longer_taken_is_waited_for() {
    let expired = r#"{"error":{"message":"the key has expired"}}"#;
    is_waited_for(Mood::says("401 Unauthorized", "", expired), &["HTTP 401 three times: the key has expired"]);
}

#[test]
fn a_server_that_is_unavailable_for_a_while_is_waited_for() {
    is_waited_for(Mood::loading(), &["HTTP 503"]);
}

#[test]
fn a_gateway_without_a_server_behind_it_is_waited_for() {
    is_waited_for(Mood::says("502 Bad Gateway", "", "<html>Bad Gateway</html>"), &["HTTP 502"]);
}

#[test]
fn a_rate_limit_is_left_alone_for_as_long_as_it_asks() {
    let (mock, front, lab) = slow("");
    let night = Night::start(&lab, "10s");
    under_load(&mock);
    let slower = Mood::says("429 Too Many Requests", "Retry-After: 4\r\n", r#"{"error":{"message":"slow down"}}"#);
    front.turn(slower);
    night.until("a: waiting for up to 4s: the server requests it (Retry-After)");
    let (asked, began) = (front.own(), Instant::now());
    wait_for("the next question", || (front.own() > asked).then_some(()));
    // The wait had started shortly before it was reported.
    assert!(began.elapsed() > Duration::from_secs(2), "{:?}", began.elapsed());
    front.turn(Mood::Passes);
    let (code, said) = night.end();
    assert!(said.contains("HTTP 429 three times") && said.contains("slow down"), "{said}");
    complete(&lab, (code, said));
}

#[test]
fn what_is_spoiled_each_time_is_given_up() {
    // The probe always gets a response, but the load never does, because the limit affects only the
    // load.
    let server = Server::start(|_, stream| {
        drop(stream.write_all(b"HTTP/1.1 429 No\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n"));
    });
    let lab = lab(&[("a", server.port, ", retries: { runs: 1 }")]);
    let one = ["run", "plan.yaml", "--only", "batch_size == 1"];
    let ended = lab.run(&one);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    says(&ended, "spoiled, to be retried (1 of 1): HTTP 429 three times");
    says(&ended, "given up: 429 (1 of 1): HTTP 429 three times");
    says(&ended, "1 run was given up");
    says(&ended, "--redo given-up");
    assert!(committed(&lab).is_empty());
    assert!(lab.ok(&["preview", "plan.yaml", "--all"]).stdout.contains("given up: 429 (1 of 1)"));
    // The run stays given up, and no request is sent.
    let sent = server.seen().len();
    let again = lab.run(&one);
    assert_eq!((again.code, server.seen().len()), (Some(3), sent), "{}", again.stderr);
    assert!(
        !again.stderr.contains("are there already") && !again.stderr.contains("results of all"),
        "{}",
        again.stderr
    );
    let redone = lab.run(&[&one[..], &["--redo", "given-up"]].concat());
    assert_eq!(redone.code, Some(3), "{}", redone.stderr);
    says(&redone, "to be retried (1 of 1)");
    assert!(server.seen().len() > sent);
}

/// A gateway that lets five requests per second through, with a bucket of five, and responds to the others
/// with 429. Each connection has a separate thread, which ends when the connection does.
struct Gateway {
    port: u16,
    above: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Gateway {
    fn start() -> Gateway {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (above, over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (turned_away, end) = (Arc::clone(&above), Arc::clone(&over));
        let bucket = Arc::new(Mutex::new((Instant::now(), 5.0_f64)));
        let accepting = std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if end.load(SeqCst) {
                    return;
                }
                let (bucket, turned_away) = (Arc::clone(&bucket), Arc::clone(&turned_away));
                std::thread::spawn(move || serve(stream, &bucket, &turned_away));
            }
        });
        Gateway { port, above, over, accepting: Some(accepting) }
    }
}

fn serve(mut stream: TcpStream, bucket: &Mutex<(Instant, f64)>, turned_away: &AtomicUsize) {
    // The client may disconnect at any time.
    let Some(head) = read_request(&mut stream) else { return };
    if head.contains("x-request-id: sweepline-probe") {
        return answer_probe(&mut stream, &head);
    }
    let is_within = {
        let (filled, left) = &mut *bucket.lock().unwrap();
        *left = (*left + filled.elapsed().as_secs_f64() * 5.0).min(5.0);
        *filled = Instant::now();
        let is_within = *left >= 1.0;
        *left -= f64::from(u8::from(is_within));
        is_within
    };
    if is_within {
        let _ = stream.write_all(&good());
    } else {
        turned_away.fetch_add(1, SeqCst);
        let _ = stream.write_all(b"HTTP/1.1 429 No\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n");
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.over.store(true, SeqCst);
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        if let Some(accepting) = self.accepting.take().filter(|_| !std::thread::panicking()) {
            accepting.join().unwrap();
        }
    }
}

#[test]
fn a_gateway_that_limits_the_rate_sees_little_above_its_limit() {
    let gateway = Gateway::start();
    let lab = lab(&[("gateway", gateway.port, ", retries: { runs: 1 }")]);
    let plan = std::fs::read_to_string(lab.path().join("plan.yaml")).unwrap();
    let rates = plan.replace("batch_size: [1, 2]", "qps: [1, 2, 3, 4, 20, 30, 40, 50]").replace("200ms", "1s");
    lab.write("plan.yaml", &rates);
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("given up: 429 (1 of 1)").count(), 4, "{}", ended.stderr);
    assert_eq!(committed(&lab).len(), 4, "{}", ended.stderr);
    let above = gateway.above.load(SeqCst);
    // There are three for each of eight attempts, plus the requests that were in flight at that
    // time.
    assert!((24..100).contains(&above), "{above} requests above the limit: {}", ended.stderr);
}

#[test]
fn an_embedded_server_that_dies_is_started_again() {
    let lab = Lab::new();
    lab.write(
        "plan.yaml",
        "sweepline: 1\nname: revived\nendpoints: { a: { engine: mock, mock: { ttft: 39ms, itl: 1ms } } }\n\
         models: { m: { id: tiny } }\nscenarios: { short: { base: B1, output_tokens: 8 } }\n\
         phases: { fill: 0s, stabilize: 0s, measure: 6s, drain: 5s }\n\
         sweeps: { s: { matrix: { endpoint: [a], model: [m], scenario: [short], batch_size: [2] } } }\n",
    );
    let running = lab.start(&["run", "plan.yaml"]);
    wait_for_attempt(&lab);
    let server = lab::sweeps::child_with(running.id(), "--ttft=39ms").expect("the embedded server is a child");
    rustix::process::kill_process(server, rustix::process::Signal::KILL).unwrap();
    let ended = running.end();
    assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
    says(&ended, "spoiled, to be retried (1 of 3): the server process ended during the run");
    assert_eq!(committed(&lab), ["a"]);
}

#[test]
fn a_wait_ends_with_the_sweep() {
    let front = Front::absent(1);
    let lab = lab(&[("gone", front.port, ", ready: { within: 10m }")]);
    let told = lab.path().join("stderr");
    let mut command = lab.command(&["run", "plan.yaml"]);
    command.stderr(std::fs::File::create(&told).unwrap());
    let mut running = command.spawn().unwrap();
    wait_for("the wait", || std::fs::read_to_string(&told).unwrap().contains("waiting for up to 10m").then_some(()));
    let began = Instant::now();
    rustix::process::kill_process(rustix::process::Pid::from_child(&running), rustix::process::Signal::INT).unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(130));
    assert!(began.elapsed() < Duration::from_secs(10));
}
