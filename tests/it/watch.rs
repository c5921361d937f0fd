//! Tests `report --watch`: the page of a sweep on loopback, and `live.json`, which a running sweep
//! updates for it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use lab::report::{Page, browser, dom_of};
use lab::{Lab, Server, wait_for};

/// A plan with two runs of a few seconds, one of which is an open loop in which some requests fail.
const PLAN: &str = "\
sweepline: 1
name: watched
seed: 5
endpoints: { one: { engine: openai, url: URL } }
models: { m: { id: tiny } }
scenarios: { short: { base: B1, output_tokens: 6 } }
phases: { fill: 200ms, stabilize: 200ms, measure: 5s, drain: 5s }
validity: { client_late: { suspect: 100%, invalid: 100% }, unsteady: { suspect: 99% }, errors: { suspect: 90%, invalid: 95% } }
sweeps:
  first: { matrix: { endpoint: [one], model: [m], scenario: [short], batch_size: [3] } }
  then: { after: [first], phases: { measure: 9s }, matrix: { endpoint: [one], model: [m], scenario: [short], qps: [40] } }
";

/// A running `report --watch`, which is killed on drop.
struct Watch {
    child: Child,
    stdin: Option<ChildStdin>,
    port: u16,
    token: String,
}

/// A server's response.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Watch {
    fn start(lab: &Lab, args: &[&str]) -> Watch {
        let mut command = lab.command(&[&["report", "--watch", "plan.yaml"], args].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let rest = line.trim().strip_prefix("http://127.0.0.1:").unwrap_or_else(|| panic!("no address: {line:?}"));
        let (port, token) = rest.split_once('/').unwrap();
        let token = token.strip_suffix('/').unwrap();
        assert!(token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "128 bits: {token}");
        Watch { stdin: child.stdin.take(), port: port.parse().unwrap(), token: token.to_owned(), child }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    fn ask(&self, method: &str, path: &str, host: &str) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) =
            text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no response to {method} {path}: {text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    fn get(&self, what: &str) -> Answer {
        self.ask("GET", &format!("/{}/{what}", self.token), &format!("127.0.0.1:{}", self.port))
    }

    /// Returns the report's number and the text about the running sweep.
    fn live(&self) -> (u64, String) {
        let answer = self.get("live");
        assert_eq!(answer.status, 200, "{answer:?}");
        let live: Value = serde_json::from_str(&answer.body).unwrap();
        let html = live["html"].as_str().unwrap();
        (live["report"].as_u64().unwrap(), Page { text: format!("<body>{html}<script") }.words())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until the command ends, and returns its exit code and output.
    fn end(mut self) -> (Option<i32>, String) {
        let status = wait_for("the end of the watch", || self.child.try_wait().unwrap());
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (status.code(), said)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a server that fails some requests, with its plan.
fn served(lab: &Lab) -> Server {
    let server = Server::start(lab, &["--fault", "invalid-json@5%"]);
    lab.write("plan.yaml", &PLAN.replace("URL", &server.url()));
    server
}

fn live_json(lab: &Lab) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(lab.results().join("live.json")).ok()?).ok()
}

#[test]
fn a_sweep_is_watched_while_it_runs_and_when_it_is_over() {
    let lab = Lab::new();
    let _server = served(&lab);
    let watch = Watch::start(&lab, &[]);
    let (number, words) = watch.live();
    assert!(number == 0 && words.contains("No sweep is running"), "{words}");
    assert!(watch.get("").body.contains("No run of watched has a result yet"));

    let sweep = lab.start(&["run", "plan.yaml", "-q"]);
    // The page shows the current run, with changing figures.
    let busy = |words: &str| words.contains("watched is running") && words.contains("batch 3");
    let first = wait_for("a run under way", || {
        let (_, words) = watch.live();
        (busy(&words) && words.contains("measure") && words.contains("0 of 2 runs are done")).then_some(words)
    });
    wait_for("other figures", || {
        let (_, words) = watch.live();
        (busy(&words) && words != first).then_some(())
    });
    let state =
        wait_for("a rate", || live_json(&lab).filter(|state| state["sweep"]["running"][0]["ttft_ms"].is_number()));
    lab.follows("live", &state);
    let run = &state["sweep"]["running"][0];
    assert_eq!(
        (&state["plan"], &state["sweep"]["runs"], &run["wanted_per_s"]),
        (&"watched".into(), &2.into(), &Value::Null)
    );
    assert!(run["in_flight"].as_u64().unwrap() <= 3 && run["ttft_ms"].as_f64().unwrap() >= 1.0, "{state:#}");
    assert!(state["sweep"]["left_s"].as_f64().unwrap() > 0.0, "{state:#}");

    // The page shows a commit, and the open loop with its target rate.
    let number = wait_for("the first commit", || Some(watch.live().0).filter(|number| *number > 0));
    let page = Page { text: watch.get("").body };
    assert_eq!(page.tables("runs")[0].rows.len(), 2);
    assert!(page.section("each-run").is_some() && page.words().contains("1 not measured"), "{}", page.words());
    let state = wait_for("the open loop", || {
        live_json(&lab)
            .filter(|state| state["sweep"]["running"][0]["wanted_per_s"].as_f64().is_some_and(|rate| rate > 30.0))
    });
    assert_eq!((&state["sweep"]["committed"], &state["sweep"]["running"][0]["number"]), (&1.into(), &2.into()));
    let failed = wait_for("a failure", || {
        live_json(&lab).filter(|state| state["sweep"]["running"][0]["latest_failure"].is_string())
    });
    assert!(failed["sweep"]["running"][0]["failed"].as_u64().unwrap() > 0);
    in_a_browser(&watch);

    // The page shows the end of the sweep.
    assert_eq!(sweep.end().code, Some(0));
    assert!(!lab.results().join("live.json").exists(), "a finished sweep publishes nothing");
    wait_for("the last commit", || {
        let (now, words) = watch.live();
        (now > number && words.contains("No sweep is running") && words.contains("2 of 2 runs")).then_some(())
    });
    // The watched page is the report.
    lab.ok(&["report", "plan.yaml"]);
    let (file, served) = (Page::of(&lab, "report.html"), Page { text: watch.get("").body });
    assert_eq!(file.section("runs"), served.section("runs"));
    watch.signal(Signal::INT);
    let token = watch.token.clone();
    let (code, said) = watch.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains(&token), "the address is only on stdout: {said}");
}

/// Loads the page in Chromium: its script polls the running sweep without errors.
fn in_a_browser(watch: &Watch) {
    let Some(browser) = browser() else { return };
    let Some(dom) = dom_of(browser, &watch.url()) else { return };
    assert!(dom.contains("is running") && dom.contains("<progress"), "{}", &dom[..dom.len().min(4000)]);
    assert!(dom.contains("class=\"save\"") && !dom.contains("class=\"save\" hidden"), "the script of the page ran");
}

#[test]
fn only_who_has_the_address_may_look_and_nobody_may_change_anything() {
    let lab = Lab::new();
    lab.write("plan.yaml", &PLAN.replace("URL", "http://127.0.0.1:9/v1"));
    let watch = Watch::start(&lab, &[]);
    let here = format!("127.0.0.1:{}", watch.port);
    let path = format!("/{}/", watch.token);
    let page = watch.ask("GET", &path, &here);
    assert_eq!(page.status, 200);
    for header in [
        "referrer-policy: no-referrer",
        "cache-control: no-store",
        "x-content-type-options: nosniff",
        "frame-ancestors 'none'",
    ] {
        assert!(page.head.contains(header), "{header} is not in {}", page.head);
    }
    assert!(page.body.contains("default-src 'none'") && page.body.contains("connect-src 'self'"));
    assert!(!page.body.contains(&watch.token), "the page does not repeat its address");
    let head = watch.ask("HEAD", &path, &here);
    assert!(head.status == 200 && head.body.is_empty() && head.head.contains("content-length: "), "{head:?}");
    assert_eq!(watch.ask("GET", &path, &format!("localhost:{}", watch.port)).status, 200);
    let almost = format!("/{}0/", &watch.token[..31]);
    for (method, path, host, status) in [
        ("GET", "/", here.as_str(), 403),
        ("GET", "/live", &here, 403),
        ("GET", "/00000000000000000000000000000000/", &here, 403),
        ("GET", if almost == path { "/x/" } else { &almost }, &here, 403),
        ("POST", &path, &here, 405),
        ("PUT", &path, &here, 405),
        ("DELETE", &path, &here, 405),
        ("GET", &path, "evil.example", 403),
        ("GET", &path, &format!("evil.example:{}", watch.port), 403),
        ("GET", &path, "127.0.0.1", 403),
        ("GET", &format!("{path}../etc/passwd"), &here, 404),
    ] {
        let answer = watch.ask(method, path, host);
        assert_eq!(answer.status, status, "{method} {path} {host}");
        assert!(!answer.body.contains("watched"), "{answer:?}");
    }
    assert!(watch.ask("POST", &path, &here).head.contains("allow: get, head"));

    // A second instance reports that the port is in use.
    let port = watch.port.to_string();
    let refused = lab.run(&["report", "--watch", "plan.yaml", "--port", &port]);
    assert!(
        refused.code == Some(2) && refused.stderr.contains("choose another port with --port"),
        "{}",
        refused.stderr
    );
    let names: Vec<_> = std::fs::read_dir(lab.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["plan.yaml"], "it writes nothing");

    // The command ends when the process that started it ends.
    let mut watch = watch;
    drop(watch.stdin.take());
    let (code, said) = watch.end();
    assert_eq!(code, Some(0), "{said}");
    let wrong = lab.run(&["report", "--watch", "nowhere.yaml"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
}

#[test]
fn a_sweep_that_was_killed_is_said_to_be_stale() {
    let lab = Lab::new();
    let _server = served(&lab);
    let sweep = lab.start(&["run", "plan.yaml", "-q"]);
    wait_for("a run under way", || live_json(&lab).filter(|state| state["sweep"]["running"][0].is_object()));
    let id = sweep.id();
    sweep.signal(Signal::KILL);
    drop(sweep);
    let left = live_json(&lab).unwrap();
    assert_eq!(left["pid"], id);
    let watch = Watch::start(&lab, &[]);
    let (_, words) = watch.live();
    for said in ["watched: stale", &format!("Its process ({id}) was killed"), "continues with the missing runs"] {
        assert!(words.contains(said), "{said} is not in {words}");
    }
    // Damage is reported, and the page still works.
    std::fs::write(lab.results().join("live.json"), "{").unwrap();
    assert!(watch.live().1.contains("live.json cannot be read"));
    std::fs::write(lab.results().join("live.json"), left.to_string()).unwrap();

    // The next sweep replaces the damaged file with its own, and removes that at the end.
    let sweep = lab.start(&["run", "plan.yaml", "-q"]);
    wait_for("the next sweep", || watch.live().1.contains("watched is running").then_some(()));
    sweep.signal(Signal::INT);
    assert_eq!(sweep.end().code, Some(130));
    assert!(!lab.results().join("live.json").exists());
    watch.signal(Signal::TERM);
    assert_eq!(watch.end().0, Some(0));
}
