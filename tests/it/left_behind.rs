//! Tests that a run begins on an idle server: it waits for the work that the previous run left there, and
//! reports work of other users.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use lab::mock::Mock;
use lab::server::{good, read_request};
use lab::sweeps::Talking;
use lab::{Ended, Lab, wait_for};

/// The server has one slot and takes 120 ms per response, which it always completes. 1.5 s at 30
/// requests/s leave about three seconds of work.
const SLOW: [&str; 7] = ["--ttft", "20ms", "--itl", "5ms", "--slots", "1", "--finish-abandoned"];

/// Returns a run that leaves much work behind, between two light runs that leave none, on two endpoints of
/// one server.
fn heavy_and_light(port: u16) -> String {
    format!(
        "sweepline: 1
name: left
seed: 5
endpoints:
  a: {{ url: 'http://127.0.0.1:{port}/v1', engine: mock }}
  b: {{ url: 'http://127.0.0.1:{port}/v1', engine: mock, api: completions }}
models: {{ m: {{ id: tiny }} }}
scenarios: {{ s: {{ base: B1, output_tokens: 20 }} }}
phases: {{ fill: 0s, stabilize: 0s, measure: 1s, drain: 500ms }}
sweeps:
  first: {{ matrix: {{ endpoint: b, model: m, scenario: s, batch_size: 1 }} }}
  heavy: {{ after: first, matrix: {{ endpoint: a, model: m, scenario: s, qps: 30 }} }}
  light: {{ after: heavy, matrix: {{ endpoint: b, model: m, scenario: s, batch_size: 1, prompt_tokens: 40 }} }}
"
    )
}

/// Returns the record of the light run after the heavy one.
fn light(lab: &Lab) -> Value {
    let run = lab.runs().into_values().find(|run| !run.json["spec"]["labels"]["axes"]["prompt_tokens"].is_null());
    run.expect("the light run").json
}

fn at(line: &Value, name: &str) -> u64 {
    line[name].as_u64().unwrap_or_else(|| panic!("no {name}: {line}"))
}

/// Runs both loads on a mock with `flags`; returns the facts about the start of the light run, and the
/// number of probes among the generations. Asserts that the server was idle when the light run's first
/// request arrived.
fn light_begins_idle(flags: &[&str]) -> (Value, usize) {
    let mut mock = Mock::start(&[&SLOW[..], flags].concat());
    let lab = Lab::new();
    lab.write("plan.yaml", &heavy_and_light(mock.port));
    let ended = lab.run(&["run", "plan.yaml"]);
    let light = light(&lab);
    let id = light["id"].as_str().unwrap()[..8].to_owned();
    mock.terminate();
    let log = mock.log_now();
    let generations: Vec<&Value> = log.iter().filter(|line| !line["n"].is_null()).collect();
    let is_light = |line: &&&Value| line["request_id"].as_str().unwrap().starts_with(&id);
    let first =
        generations.iter().filter(is_light).map(|line| at(line, "arrival_ns")).min().expect("the light run sent");
    let earlier = generations.iter().filter(|line| !is_light(line));
    let latest = earlier.map(|line| at(line, "done_ns")).max().unwrap();
    assert!(latest <= first, "{} ms of work remained: {ended:?}", (latest - first) / 1_000_000);
    let abandoned = generations.iter().filter(|line| line["outcome"] == "client_closed").count();
    assert!(abandoned > 5, "the heavy run must leave work behind: {abandoned}");
    assert_eq!(light["facts"]["began"]["idle"], true, "{}", light["facts"]);
    assert!(light["facts"]["began"]["waited_ns"].as_u64().unwrap() > 500_000_000, "{}", light["facts"]["began"]);
    (light["facts"]["began"].clone(), generations.iter().filter(|line| line["request_id"] == "sweepline-probe").count())
}

#[test]
fn a_light_run_waits_for_what_a_heavy_one_left_by_a_probe() {
    let (began, probes) = light_begins_idle(&["--no-load-gauges"]);
    assert_eq!((&began["asked"], &began["endpoint"]), (&"probe".into(), &"a".into()), "b left no work: {began}");
    assert!(began["ttft_ns"].as_u64().unwrap() < 1_000_000_000, "{began}");
    // Two probes for readiness, two that agree for each endpoint, and the probes after the heavy
    // run.
    assert!((7..30).contains(&probes), "{probes} probes");
}

#[test]
fn a_light_run_waits_for_what_a_heavy_one_left_by_the_gauge() {
    let (began, probes) = light_begins_idle(&[]);
    assert_eq!((&began["asked"], &began["running"], &began["waiting"]), (&"gauge".into(), &0.into(), &0.into()));
    assert_eq!(probes, 2, "a gauge that changes is enough");
}

#[test]
fn a_run_that_leaves_nothing_is_followed_at_once() {
    for (flags, probes) in [(&["--no-load-gauges"][..], 3), (&[], 1)] {
        let mut mock = Mock::start(&[&["--ttft", "2ms", "--itl", "1ms"], flags].concat());
        let lab = Lab::new();
        lab.write(
            "plan.yaml",
            &format!(
                "sweepline: 1\nname: clean\nseed: 5\nmodels: {{ m: {{ id: tiny }} }}\nendpoints: {{ a: {{ url: 'http://127.0.0.1:{}/v1', \
                 engine: mock }} }}\nscenarios: {{ s: {{ base: B1, output_tokens: 4 }} }}\nphases: {{ fill: 0s, stabilize: 0s, \
                 measure: 200ms, drain: 30s }}\nsweeps: {{ s: {{ matrix: {{ scenario: [s], batch_size: [1] }}, repeats: 3 }} }}\n",
                mock.port
            ),
        );
        lab.run(&["run", "plan.yaml"]);
        assert_eq!(lab.runs().len(), 3);
        mock.terminate();
        let log = mock.log_now();
        let asked = log.iter().filter(|line| line["request_id"] == "sweepline-probe");
        let (generations, others): (Vec<&Value>, Vec<&Value>) = asked.partition(|line| !line["n"].is_null());
        assert!(generations.len() >= probes, "{flags:?}: {generations:?}");
        let measured = log.iter().filter(|line| !line["n"].is_null() && line["request_id"] != "sweepline-probe");
        let first = measured.map(|line| at(line, "arrival_ns")).min().unwrap();
        let between = generations.iter().filter(|line| at(line, "arrival_ns") > first).count();
        assert_eq!(between, 0, "{flags:?}: no work was left, so there are no probes");
        let gauges = others.iter().filter(|line| line["path"] == "/metrics").count();
        assert_eq!(
            gauges,
            if flags.is_empty() { 3 } else { 1 },
            "{flags:?}: read before each run, if there is a gauge"
        );
    }
}

/// A server with its own gauge, where `load` maps the number of generations so far to the running and
/// waiting requests.
struct Gauged {
    port: u16,
    seen: Arc<Mutex<Vec<String>>>,
    over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Gauged {
    fn start(load: impl Fn(usize) -> (u64, u64) + Send + 'static) -> Gauged {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (seen, over): (Arc<Mutex<Vec<String>>>, Arc<AtomicBool>) = Default::default();
        let (theirs, end, generations) = (Arc::clone(&seen), Arc::clone(&over), AtomicUsize::new(0));
        let accepting = std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                if end.load(Ordering::SeqCst) {
                    return;
                }
                stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                let Some(head) = read_request(&mut stream) else { continue };
                let (running, waiting) = load(generations.load(Ordering::SeqCst));
                let metrics = format!(
                    "vllm:num_requests_running{{m=\"x\"}} {running}.0\nvllm:num_requests_waiting{{m=\"x\"}} {waiting}.0\n"
                );
                let whole = r#"{"data":[],"model":"m","choices":[{"message":{"content":"hi"}}]}"#;
                let plain = |body: &str| {
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
                        .into_bytes()
                };
                let answer = match () {
                    () if head.starts_with("get /metrics") => plain(&metrics),
                    () if head.contains("\"stream\":true") => good(),
                    () => plain(whole),
                };
                generations.fetch_add(usize::from(head.starts_with("post")), Ordering::SeqCst);
                theirs.lock().unwrap().push(head);
                // The client may have disconnected.
                let _ = stream.write_all(&answer);
            }
        });
        Gauged { port, seen, over, accepting: Some(accepting) }
    }

    /// Returns the number of requests so far that begin with this text.
    fn seen(&self, start: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|head| head.starts_with(start)).count()
    }

    /// Returns the number of measured requests.
    fn measured(&self) -> usize {
        self.seen.lock().unwrap().iter().filter(|head| head.contains("\"stream\":true")).count()
    }

    /// Returns a plan with one run of requests sent one after the other.
    fn plan(&self) -> String {
        format!(
            "sweepline: 1\nname: gauged\nseed: 5\nmodels: {{ m: {{ id: tiny }} }}\nendpoints: {{ a: {{ url: 'http://127.0.0.1:{}/v1' }} }}\n\
             scenarios: {{ s: {{ base: B1, output_tokens: 2 }} }}\nphases: {{ fill: 0s, stabilize: 0s, measure: 100ms, drain: 30s }}\n\
             sweeps: {{ s: {{ matrix: {{ scenario: [s], batch_size: [1] }} }} }}\n",
            self.port
        )
    }
}

impl Drop for Gauged {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)), Duration::from_secs(1));
        if let Some(accepting) = self.accepting.take().filter(|_| !std::thread::panicking()) {
            accepting.join().unwrap();
        }
    }
}

#[test]
fn a_server_that_others_keep_busy_makes_a_run_suspect() {
    let server = Gauged::start(|_| (3, 2));
    let lab = Lab::new();
    lab.write("plan.yaml", &server.plan());
    let ended = Ended::from(lab.command(&["run", "plan.yaml"]).env("SWEEPLINE_IDLE_WITHIN", "300ms").output().unwrap());
    assert!(matches!(ended.code, Some(0 | 3)), "{ended:?}");
    let run = lab.only_run();
    let began = &run.json["facts"]["began"];
    assert_eq!((&began["idle"], &began["running"], &began["waiting"]), (&false.into(), &3.into(), &2.into()));
    assert!(began["waited_ns"].as_u64().unwrap() >= 300_000_000, "{began}");
    assert!(ended.stdout.contains("not_idle"), "{}", ended.stdout);
    let id = run.json["id"].as_str().unwrap();
    let shown = lab.run(&["show", id, "--format", "json"]).json();
    let reasons = shown["verdict"]["reasons"].as_array().unwrap();
    let text = reasons.iter().find(|reason| reason["name"] == "not_idle").unwrap()["text"].as_str().unwrap();
    assert!(text.contains("still busy when the load began") && text.ends_with(": 3 running, 2 waiting"), "{text}");
}

#[test]
fn a_gauge_that_stands_still_is_made_to_speak_by_one_generation() {
    // This is the behavior of vLLM after all requests were cut off: the gauge shows old values until the
    // server works again. The probe of the sweep comes first.
    let server = Gauged::start(|generations| if generations < 2 { (24, 6) } else { (0, 0) });
    let lab = Lab::new();
    lab.write("plan.yaml", &server.plan());
    lab.run(&["run", "plan.yaml"]);
    let began = &lab.only_run().json["facts"]["began"];
    assert_eq!((&began["idle"], &began["asked"]), (&true.into(), &"gauge".into()), "{began}");
    let waited = began["waited_ns"].as_u64().unwrap();
    assert!(waited >= 1_000_000_000, "only if it is unchanged for a second: {began}");
    assert_eq!(server.seen("post") - server.measured(), 2, "the sweep's probe, and one to update the gauge");
}

#[test]
fn a_stop_ends_the_wait_at_once_and_says_what_was_waited_for() {
    let server = Gauged::start(|_| (1, 0));
    let lab = Lab::new();
    lab.write("plan.yaml", &server.plan());
    let talking = Talking::start(&mut lab.command(&["run", "plan.yaml"]), lab.path().join("stderr"));
    talking.wait_to_say("a: still busy with earlier requests (1 running, 0 waiting); waiting for at most 1m");
    wait_for("a question", || (server.seen("get /metrics") > 2).then_some(()));
    let stopped = Instant::now();
    talking.signal(Signal::INT);
    assert_eq!(talking.end(), Some(130));
    assert!(stopped.elapsed() < Duration::from_secs(20), "{:?}", stopped.elapsed());
    assert_eq!((server.measured(), lab.runs().len()), (0, 0), "nothing was measured");
}
