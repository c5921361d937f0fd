//! Tests how a running sweep is reported to other programs: metrics for Prometheus, the dashboard for
//! them, and a file of events.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use lab::{Lab, Running, Server, wait_for};

/// A short run, and a long one in which some requests fail.
const PLAN: &str = "\
sweepline: 1
name: watched
endpoints: { one: { engine: openai, url: URL } }
models: { m: { id: tiny } }
scenarios: { short: { base: B1, output_tokens: 6 } }
phases: { fill: 100ms, stabilize: 100ms, measure: SHORT, drain: 5s }
validity: { client_late: { suspect: 100%, invalid: 100% }, unsteady: { suspect: 99% }, errors: { suspect: 98%, invalid: 99% } }
sweeps:
  first: { matrix: { endpoint: [one], model: [m], scenario: [short], batch_size: [2] } }
  then: { after: [first], phases: { measure: LONG }, matrix: { endpoint: [one], model: [m], scenario: [short], qps: [50] } }
";

/// Returns the plan for a server that fails some requests.
fn served(lab: &Lab, short: &str, long: &str) -> Server {
    let server = Server::start(lab, &["--fault", "invalid-json@20%"]);
    lab.write("plan.yaml", &PLAN.replace("URL", &server.url()).replace("SHORT", short).replace("LONG", long));
    server
}

/// A process that prints its address; it is killed on drop.
pub(super) struct Listening {
    child: Child,
    /// Host and port.
    pub(super) address: String,
}

impl Listening {
    /// Starts the process and reads the address from stderr, between `before` and `after`.
    pub(super) fn start(command: &mut Command, before: &str, after: char) -> Listening {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let address = lines
            .find_map(|line| Some(line.split_once(before)?.1.split(after).next()?.to_owned()))
            .expect("the address on stderr");
        // The rest is drained, so that the process does not block.
        std::thread::spawn(move || lines.for_each(drop));
        Listening { child, address }
    }

    /// Returns status and body of a GET.
    fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let address = &self.address;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no response to {path}: {text:?}"));
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the samples of a scrape: their values by name and labels as written.
fn samples(text: &str) -> BTreeMap<&str, f64> {
    let sample = |line| str::rsplit_once(line, ' ').map(|(name, value)| (name, value.parse().unwrap()));
    text.lines().filter(|line| !line.starts_with('#')).filter_map(sample).collect()
}

/// Returns the names of our metrics in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("sweepline_")).collect()
}

/// Returns the queries of the dashboard, for all sweeps and endpoints.
fn queries() -> Vec<String> {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/live/grafana.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let queries = targets.map(|target| target["expr"].as_str().unwrap());
    let filled =
        |query: &str| query.replace("$__rate_interval", "6s").replace("$sweep", ".*").replace("$endpoint", ".*");
    queries.map(filled).collect()
}

/// Whether a program is installed; if not, prints a message, and the checks that need it are
/// skipped.
pub(super) fn is_there(program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        eprintln!("skipped in part: no {program} (Debian: prometheus, prometheus-node-exporter)");
    }
    is_there
}

/// Returns promtool's complaints about a scrape.
fn promtool(text: &str) -> String {
    let mut command = Command::new("promtool");
    command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

/// Starts a Prometheus that scrapes an address every second.
fn prometheus(lab: &Lab, address: &str) -> Listening {
    let config = format!(
        "global: {{ scrape_interval: 1s }}\nscrape_configs: [{{ job_name: s, static_configs: [{{ targets: ['{address}'] }}] }}]\n"
    );
    lab.write("prometheus.yml", &config);
    let mut command = Command::new("prometheus");
    command.args(["--config.file=prometheus.yml", "--storage.tsdb.path=tsdb", "--web.listen-address=127.0.0.1:0"]);
    Listening::start(command.current_dir(lab.path()), "msg=\"Listening on\" address=", ' ')
}

/// Returns the result of an instant query.
fn asked(prometheus: &Listening, query: &str) -> usize {
    let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let (status, body) = prometheus.get(&format!("/api/v1/query?query={encoded}"));
    // Prometheus listens before it can respond.
    if status == 503 {
        return 0;
    }
    let answer: Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {status} {body}"));
    assert_eq!(answer["status"], "success", "{query}: {body}");
    answer["data"]["result"].as_array().unwrap().len()
}

#[test]
fn metrics_on_loopback_are_for_loopback_names_only() {
    let lab = Lab::new();
    let _server = served(&lab, "500ms", "60s");
    let mut command = lab.command(&["run", "plan.yaml", "--metrics-addr", "0", "--progress", "plain"]);
    let sweep = Listening::start(&mut command, "metrics: http://", '/');
    let (_, port) = sweep.address.rsplit_once(':').unwrap();
    let status_for = |hosts: &[String]| {
        let hosts: String = hosts.iter().map(|host| format!("Host: {host}\r\n")).collect();
        let mut stream = TcpStream::connect(&sweep.address).unwrap();
        write!(stream, "GET /metrics HTTP/1.0\r\n{hosts}Connection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let status = text.split(' ').nth(1).unwrap().to_owned();
        assert_eq!(text.contains("sweepline_"), status == "200", "{text}");
        status
    };
    for name in ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"] {
        assert_eq!(status_for(&[format!("{name}:{port}")]), "200", "{name}");
        assert_eq!(status_for(&[format!("{name}:1")]), "200", "{name}, through a tunnel");
    }
    // The name of another site that resolves to this machine (DNS rebinding).
    for name in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "192.0.2.1"] {
        assert_eq!(status_for(&[format!("{name}:{port}")]), "403", "{name}");
    }
    assert_eq!(status_for(&[]), "403");
    assert_eq!(status_for(&[format!("localhost:{port}"), format!("evil.example:{port}")]), "403");
}

#[test]
fn prometheus_reads_a_running_sweep_and_every_query_of_the_dashboard_finds_data() {
    let lab = Lab::new();
    let _server = served(&lab, "500ms", "60s");
    let mut command = lab.command(&["run", "plan.yaml", "--metrics-addr", "0", "--progress", "plain"]);
    let sweep = Listening::start(&mut command, "metrics: http://", '/');
    assert!(sweep.address.starts_with("127.0.0.1:"), "{}", sweep.address);
    let prometheus = is_there("prometheus").then(|| prometheus(&lab, &sweep.address));
    let group = r#"sweep="then",endpoint="one",model="m",scenario="short""#;
    let text = wait_for("some failures in the second run", || {
        let (status, text) = sweep.get("/metrics");
        assert_eq!(status, 200);
        let failed = format!(r#"sweepline_requests_ended_total{{{group},outcome="malformed"}}"#);
        let target = format!("sweepline_target_requests_per_second{{{group}}}");
        let found = samples(&text);
        // The rate covers the last seconds, in which it rose.
        let is_reached = found.get(&*target).is_some_and(|rate| (45.0..=50.001).contains(rate));
        (found.get(&*failed) > Some(&3.0) && is_reached).then_some(text)
    });
    let found = samples(&text);
    let value = |name: &str| found[format!("sweepline_{name}").as_str()];
    assert_eq!(value(r#"runs{state="committed"}"#), 1.0);
    assert_eq!(value(r#"runs{state="running"}"#), 1.0);
    let first = r#"sweep="first",endpoint="one",model="m",scenario="short""#;
    assert_eq!(value(&format!(r#"runs_ended_total{{{first},result="committed"}}"#)), 1.0);
    // The counters of the finished run equal its rows.
    let rows = &lab.only_run().records;
    for outcome in ["ok", "malformed"] {
        let in_rows = rows.iter().filter(|record| record.row.outcome.to_string() == outcome).count();
        let name = format!(r#"requests_ended_total{{{first},outcome="{outcome}"}}"#);
        assert_eq!(value(&name), in_rows as f64, "{outcome}");
    }
    let median = value(&format!(r#"time_to_first_token_seconds{{{group},quantile="0.5"}}"#));
    assert!((0.001..10.0).contains(&median), "in seconds: {median}");
    // The number of label values is bounded: no label contains the id of a run.
    let ids: Vec<String> = lab.runs().into_keys().collect();
    assert!(ids.iter().all(|id| !text.contains(id.as_str())), "{text}");
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/LIVE.md")).unwrap();
    let queries = queries();
    let families: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    for family in &families {
        assert!(names(&docs).contains(family), "docs/LIVE.md does not list {family}");
        let is_shown = |query: &String| names(query).iter().any(|name| name.starts_with(family));
        assert!(queries.iter().any(is_shown), "the dashboard does not show {family}");
    }
    let served: BTreeSet<&str> = found.keys().map(|sample| sample.split('{').next().unwrap()).collect();
    for query in &queries {
        let unknown: Vec<_> = names(query).into_iter().filter(|name| !served.contains(name)).collect();
        assert!(unknown.is_empty(), "{query}: {unknown:?}");
    }
    assert_eq!((sweep.get("/").0, sweep.get("/metrics/x").0), (404, 404));
    if is_there("promtool") {
        assert_eq!(promtool(&text), "");
        assert_ne!(promtool(&text.replace("_ended_total", "_ended")), "", "promtool reports the error");
    }
    if let Some(prometheus) = prometheus {
        for query in &queries {
            wait_for(query, || (asked(&prometheus, query) > 0).then_some(()));
        }
        assert_eq!(asked(&prometheus, "sweepline_absent"), 0);
    }
    kill_process(Pid::from_child(&sweep.child), Signal::INT).unwrap();
}

fn lines(lab: &Lab) -> Vec<Value> {
    let text = std::fs::read_to_string(lab.path().join("events.jsonl")).unwrap();
    assert!(text.ends_with('\n'), "complete lines: {text:?}");
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn events_are_whole_lines_though_the_sweep_is_killed() {
    let lab = Lab::new();
    let _server = served(&lab, "300ms", "300ms");
    let args = ["run", "plan.yaml", "--events", "events.jsonl"];
    let killed = Running::start(lab.command(&args).env("SWEEPLINE_FAILPOINT", "before_rename:2")).end();
    assert_eq!(killed.code, None, "{}", killed.log);
    let before = lines(&lab);
    let path = lab.path().join("events.jsonl");
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(b"{\"format\":1,\"ti").unwrap();
    drop(file);
    let ended = lab.run(&args);
    assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.log);
    let all = lines(&lab);
    assert_eq!(all[..before.len()], before, "earlier lines remain, and the torn line is removed");
    // One event of each kind; each validation starts a process.
    let kinds: BTreeMap<&str, &Value> = all.iter().map(|line| (line["event"].as_str().unwrap(), line)).collect();
    kinds.values().for_each(|line| lab.follows("events", line));
    let of =
        |lines: &[Value], event: &str| lines.iter().filter(|line| line["event"] == event).cloned().collect::<Vec<_>>();
    // The second run was measured when the sweep was killed, but not yet reported as ended.
    assert_eq!((of(&before, "run_started").len(), of(&before, "run_ended").len()), (2, 1));
    let phases: Vec<Value> =
        before.iter().filter(|line| line["run"]["sweep"] == "first").map(|line| line["phase"].clone()).collect();
    let known: Vec<&str> = phases.iter().filter_map(Value::as_str).collect();
    assert_eq!(known, ["fill", "stabilize", "measure", "drain"], "{before:#?}");
    let end = &of(&before, "run_ended")[0];
    let id = end["run"]["id"].as_str().unwrap();
    let headline = &end["result"]["headline"];
    let shown = lab.ok(&["export", "plan.yaml", "--format", "json", "--columns", "all"]).json();
    let row = shown.as_array().unwrap().iter().find(|row| row["run_id"] == id);
    let row = row.unwrap_or_else(|| panic!("{id} in {shown}"));
    assert_eq!((&headline["verdict"], &headline["requests"]), (&row["verdict"], &row["requests"]), "{headline} {row}");
    for number in ["ttft_p50_ms", "ttft_p99_ms", "tpot_p50_ms", "output_throughput_tokens_per_s"] {
        assert_eq!(headline[number], row[number], "{number}");
    }
}

#[test]
fn outlets_that_cannot_be_had_are_refused_before_anything_is_done() {
    let lab = Lab::new();
    lab.write("plan.yaml", &PLAN.replace("URL", "http://127.0.0.1:9/v1").replace("SHORT", "1s").replace("LONG", "1s"));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (args, words) in [
        (["--metrics-addr", &port], "use another port, or port 0 for any free one"),
        (["--metrics-addr", "here:9464"], "like 127.0.0.1:9464"),
        (["--events", "-"], "stdout has the table of results"),
        (["--events", "absent/events.jsonl"], "name a file in an existing, writable folder"),
        (["--events", "."], "cannot be written"),
    ] {
        let refused = lab.run(&[&["run", "plan.yaml"][..], &args].concat());
        assert_eq!(refused.code, Some(2), "{args:?}: {}", refused.log);
        assert!(refused.stderr.contains(words) && refused.stderr.contains(args[0]), "{}", refused.stderr);
        assert!(!lab.results().exists(), "{args:?}");
    }
}
