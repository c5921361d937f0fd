//! Tests secrets that a command prints (`{ secret: { command, valid } }`) against a server that logs the
//! credentials it receives and rejects tokens after a number of requests, as if they had expired.

use std::collections::HashMap;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use sweepline::rows::Outcome;

use lab::plans::by_number;
use lab::server::{good, read_request};
use lab::{Ended, Lab};

/// Every token begins with this text, which must not appear anywhere.
const CANARY: &str = "canary7f3a9c51";

/// A script that prints another token each time, and adds a line to `calls` each time. The argument becomes a part
/// of the token.
const SCRIPT: &str = "\
echo \"$PWD $*\" >> calls
echo \"warning: not the token\" >&2
printf '%s\\n' \"canary7f3a9c51-$1-$(wc -l < calls | tr -d ' ')\"
";

/// How the server answers a request with a token.
type Policy = Box<dyn Fn(&Request) -> Answer + Send + Sync>;

/// A request, as the server sees it.
#[derive(Debug, Clone)]
struct Request {
    /// The `x-request-id`.
    id: String,
    /// The bearer token, or the value of `x-key`.
    token: String,
    /// How many measured requests with this token the server has received before.
    before: usize,
}

impl Request {
    fn is_probe(&self) -> bool {
        self.id == "sweepline-probe"
    }

    /// The number of the token, as the script counts it.
    fn token_number(&self) -> usize {
        self.token.rsplit_once('-').map_or(0, |(_, number)| number.parse().unwrap())
    }
}

/// A response.
enum Answer {
    /// The normal response.
    Good,
    /// An error with this status and message.
    Status(u16, String),
}

/// A server that logs the credentials it receives.
struct Gate {
    port: u16,
    seen: Arc<Mutex<Vec<Request>>>,
    over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Gate {
    fn start(policy: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Gate {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (seen, over): (Arc<Mutex<Vec<Request>>>, Arc<AtomicBool>) = Default::default();
        let (theirs, end, policy) = (Arc::clone(&seen), Arc::clone(&over), Arc::new(Box::new(policy) as Policy));
        let accepting = std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if end.load(SeqCst) {
                    return;
                }
                stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                let (seen, policy) = (Arc::clone(&theirs), Arc::clone(&policy));
                std::thread::spawn(move || serve(stream, &seen, &policy));
            }
        });
        Gate { port, seen, over, accepting: Some(accepting) }
    }

    /// Returns the requests so far, in the order of arrival.
    fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }

    /// Returns the numbers of the tokens of each attempt's requests, by the start of their request ids.
    fn tokens_by_attempt(&self) -> HashMap<String, Vec<usize>> {
        let mut tokens: HashMap<String, Vec<usize>> = HashMap::new();
        for request in self.seen().iter().filter(|request| !request.is_probe()) {
            let (attempt, _) = request.id.rsplit_once('-').unwrap();
            let of_attempt = tokens.entry(attempt.to_owned()).or_default();
            if !of_attempt.contains(&request.token_number()) {
                of_attempt.push(request.token_number());
            }
        }
        tokens
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.over.store(true, SeqCst);
        let _ = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)));
        if let Some(accepting) = self.accepting.take().filter(|_| !std::thread::panicking()) {
            accepting.join().unwrap();
        }
    }
}

/// Serves one request of a connection.
fn serve(mut stream: TcpStream, seen: &Mutex<Vec<Request>>, policy: &Policy) {
    let Some(head) = read_request(&mut stream) else { return };
    let field = |name: &str| head.split(name).nth(1).map_or("", |rest| rest.split('\r').next().unwrap()).to_owned();
    let bearer = field("authorization: bearer ");
    let token = if bearer.is_empty() { field("x-key: ") } else { bearer };
    let request = {
        let mut seen = seen.lock().unwrap();
        let before = seen.iter().filter(|request| request.token == token && !request.is_probe()).count();
        let request = Request { id: field("x-request-id: "), token, before };
        seen.push(request.clone());
        request
    };
    let bytes = match policy(&request) {
        Answer::Good if request.is_probe() => json(
            200,
            r#"{"data":[{"id":"tiny"}],"choices":[{"message":{"content":"hi"}}],"usage":{"completion_tokens":1}}"#,
        ),
        Answer::Good => good(),
        Answer::Status(status, message) => json(status, &format!(r#"{{"error":{{"message":"{message}"}}}}"#)),
    };
    // The client may have disconnected.
    let _ = stream.write_all(&bytes);
}

fn json(status: u16, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Status\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        .into_bytes()
}

/// A server that rejects the first token after this many measured requests.
fn expires_after(requests: usize) -> Gate {
    Gate::start(move |request| match request.token_number() == 1 && request.before >= requests {
        true => Answer::Status(401, format!("token {} has expired", request.token)),
        false => Answer::Good,
    })
}

/// A reference to the script, as a value in a plan.
fn command(word: &str, valid: &str) -> String {
    format!("{{ secret: {{ command: [sh, token.sh, {word}], valid: {valid} }} }}")
}

/// Returns a plan with this endpoint, and as many runs as repeats.
fn plan(port: u16, endpoint: &str, repeats: usize, requests: usize) -> String {
    format!(
        "sweepline: 1\nname: tokens\nendpoints:\n  a: {{ url: 'http://127.0.0.1:{port}/v1', engine: openai, {endpoint} }}\n\
         models: {{ m: {{ id: tiny }} }}\nscenarios: {{ short: {{ base: B1, output_tokens: 8 }} }}\n\
         phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 200ms, min_requests: {requests}, at_most: 60s }}, drain: 20s }}\n\
         sweeps: {{ s: {{ matrix: {{ endpoint: [a], model: [m], scenario: [short], batch_size: [2] }}, repeats: {repeats} }} }}\n"
    )
}

fn lab(text: &str) -> Lab {
    let lab = Lab::new();
    lab.write("token.sh", SCRIPT);
    lab.write("plan.yaml", text);
    lab
}

/// Returns how often the script was executed.
fn calls(lab: &Lab) -> usize {
    std::fs::read_to_string(lab.path().join("calls")).map_or(0, |text| text.lines().count())
}

/// Asserts that no file below `folder` contains a part of a token.
fn is_clean(folder: &Path) -> usize {
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files += is_clean(&path);
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(CANARY.len()).any(|part| part == CANARY.as_bytes()), "{}", path.display());
        files += 1;
    }
    files
}

/// Asserts that neither the outputs nor the results contain a part of a token, nor the rows after decoding.
fn nothing_is_shown(lab: &Lab, ended: &[&Ended]) {
    for ended in ended {
        assert!(!format!("{}{}", ended.stdout, ended.stderr).contains(CANARY), "{}{}", ended.stdout, ended.stderr);
    }
    assert!(is_clean(&lab.results()) >= 4);
    for (id, run) in lab.runs() {
        assert!(!format!("{:?}{}", run.records, run.json).contains(CANARY), "{id}");
    }
}

/// Returns the records of all attempts that are kept, which are those that were not committed.
fn attempts(lab: &Lab) -> Vec<Value> {
    let Ok(folders) = std::fs::read_dir(lab.results().join("attempts")) else { return Vec::new() };
    let mut paths: Vec<_> = folders.map(|entry| entry.unwrap().path().join("attempt.json")).collect();
    paths.sort();
    paths.iter().filter_map(|path| serde_json::from_slice(&std::fs::read(path).ok()?).ok()).collect()
}

#[test]
fn a_token_that_expires_during_a_run_spoils_the_attempt_and_is_printed_again() {
    for endpoint in
        [format!("api_key: {}", command("key", "1h")), format!("headers: {{ X-Key: {} }}", command("header", "1h"))]
    {
        for more in ["", ", errors: measured"] {
            let server = expires_after(5);
            let lab = lab(&plan(server.port, &format!("{endpoint}{more}"), 1, 20));
            let ended = lab.ok(&["run", "plan.yaml", "-v"]);
            assert_eq!(calls(&lab), 2, "{}", ended.stderr);
            let run = lab.only_run();
            assert!(by_number(run).iter().take(20).all(|record| record.row.outcome.is_ok()), "{}", ended.stderr);
            let spoiled: Vec<Value> = attempts(&lab).iter().map(|attempt| attempt["spoiled"].clone()).collect();
            assert_eq!(spoiled.len(), 1, "{spoiled:?}");
            assert_eq!(spoiled[0]["cause"], "unauthorized");
            let words = "HTTP 401: the token has expired, or was revoked: token [secret] has expired";
            assert_eq!(spoiled[0]["detail"], words);
            assert!(ended.stderr.contains(words), "{}", ended.stderr);
            let mut tokens: Vec<Vec<usize>> = server.tokens_by_attempt().into_values().collect();
            tokens.sort();
            assert_eq!(tokens, [[1], [2]], "each attempt has one token");
            let listed = lab.ok(&["export", "--rows", "requests", "--format", "json"]);
            let shown = lab.ok(&["run", "plan.yaml", "-v"]);
            nothing_is_shown(&lab, &[&ended, &listed, &shown]);
        }
    }
}

#[test]
fn a_token_is_printed_again_before_a_run_once_it_is_no_longer_valid() {
    for (valid, most) in [("1ms", usize::MAX), ("1h", 1)] {
        let server = Gate::start(|_| Answer::Good);
        let lab = lab(&plan(server.port, &format!("api_key: {}", command("key", valid)), 3, 4));
        let ended = lab.ok(&["run", "plan.yaml"]);
        assert_eq!(lab.runs().len(), 3, "{}", ended.stderr);
        let tokens = server.tokens_by_attempt();
        assert_eq!(tokens.len(), 3);
        assert!(tokens.values().all(|tokens| tokens.len() == 1), "the token of a run does not change: {tokens:?}");
        let used: std::collections::BTreeSet<usize> = tokens.values().flatten().copied().collect();
        assert!(calls(&lab) <= most, "{valid}: {} calls", calls(&lab));
        assert_eq!(used.len(), if most == 1 { 1 } else { 3 }, "{valid}: {tokens:?}");
        let folder = std::fs::canonicalize(lab.path()).unwrap();
        let log = std::fs::read_to_string(lab.path().join("calls")).unwrap();
        assert!(log.lines().all(|line| line == format!("{} key", folder.display())), "{log}");
        nothing_is_shown(&lab, &[&ended]);
    }
}

#[test]
fn only_commands_that_send_requests_print_tokens() {
    let server = Gate::start(|_| Answer::Good);
    let text = plan(server.port, &format!("api_key: {}", command("key", "1h")), 1, 4);
    let lab = lab(&text);
    let reading: [&[&str]; 6] = [
        &["check", "plan.yaml"],
        &["preview", "plan.yaml"],
        &["preview", "plan.yaml", "--format", "json"],
        &["graph", "plan.yaml"],
        &["freeze", "plan.yaml"],
        &["run", "plan.yaml", "--dry-run"],
    ];
    for args in reading {
        lab.ok(args);
    }
    let preview = lab.ok(&["preview", "plan.yaml"]).stdout;
    assert!(preview.contains("a: `sh token.sh key` prints a token before a run"), "{preview}");
    let json = lab.ok(&["preview", "plan.yaml", "--format", "json"]).json();
    lab.follows("preview", &json);
    assert_eq!(json["token_commands"][0]["command"], "sh token.sh key");
    assert_eq!((calls(&lab), server.seen().len()), (0, 0));
    let probed = lab.ok(&["probe", "plan.yaml"]);
    assert_eq!(calls(&lab), 1);
    let ran = lab.ok(&["run", "plan.yaml"]);
    assert_eq!(calls(&lab), 2);
    let id = lab.runs().into_keys().next().unwrap();
    let of_results: [&[&str]; 5] =
        [&["why", "--plan", "plan.yaml", &id], &["show", &id], &["list"], &["export", "plan.yaml"], &["verify"]];
    for args in reading.into_iter().chain(of_results) {
        lab.ok(args);
    }
    assert_eq!(calls(&lab), 2);
    nothing_is_shown(&lab, &[&probed, &ran]);
    // The frozen plan contains the command.
    let frozen = lab.ok(&["freeze", "plan.yaml"]).stdout;
    assert!(frozen.contains("token.sh") && frozen.contains("valid: 1h"), "{frozen}");
}

#[test]
fn a_command_that_prints_no_token_is_reported_with_the_remedy() {
    let server = Gate::start(|_| Answer::Good);
    for (script, reason, quoted) in [
        (
            "echo canary7f3a9c51-left; echo 'login required for canary7f3a9c51-left' >&2; exit 3",
            "ended with exit code 3",
            "login required for [secret]",
        ),
        ("true", "printed nothing on its standard output", ""),
        ("echo canary7f3a9c51; echo canary7f3a9c51", "printed several lines", ""),
        ("sleep 600 & wait", "did not end within 600ms", ""),
        ("echo 'canary7f3a9c51 with blank'", "contains characters that a header cannot carry", ""),
    ] {
        let lab = lab(&plan(server.port, &format!("api_key: {}", command("key", "1h")), 1, 4));
        lab.write("token.sh", script);
        for args in [&["run", "plan.yaml"][..], &["probe", "plan.yaml"]] {
            let ended = Ended::from(lab.command(args).env("SWEEPLINE_PATIENCE", "200ms").output().unwrap());
            assert_eq!(ended.code, Some(2), "{script}: {}{}", ended.stdout, ended.stderr);
            let said = format!("{}{}", ended.stdout, ended.stderr);
            for part in ["sh token.sh key", reason, quoted] {
                assert!(said.contains(part), "{script}: {part}: {said}");
            }
            assert!(said.contains("endpoint `a`: ") || said.contains("a: not ready: "), "{said}");
            assert!(!said.contains(CANARY), "{said}");
        }
        assert!(lab.runs().is_empty());
    }
    let missing = "api_key: { secret: { command: [no-such-program-here], valid: 1h } }";
    let ended = lab(&plan(server.port, missing, 1, 4)).run(&["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    let words = "endpoint `a`: the token command of the endpoint's api_key, `no-such-program-here`, cannot start it";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    assert!(server.seen().is_empty(), "nothing is sent without a token");
}

#[test]
fn a_command_that_fails_once_spoils_the_attempt() {
    let server = Gate::start(|_| Answer::Good);
    let lab = lab(&plan(server.port, &format!("api_key: {}", command("key", "1ms")), 1, 4));
    // The first call is for the probe, the second one for the run.
    lab.write("token.sh", &format!("{SCRIPT}[ $(wc -l < calls) -ne 2 ]\n"));
    let ended = lab.ok(&["run", "plan.yaml"]);
    assert_eq!(lab.runs().len(), 1, "{}", ended.stderr);
    let spoiled: Vec<Value> = attempts(&lab).iter().map(|attempt| attempt["spoiled"].clone()).collect();
    assert_eq!((spoiled.len(), &spoiled[0]["cause"]), (1, &Value::from("unauthorized")));
    let words = "the token command of the endpoint's api_key, `sh token.sh key`, ended with exit code 1";
    assert!(spoiled[0]["detail"].as_str().unwrap().starts_with(words), "{spoiled:?}");
    assert!(ended.stderr.contains("warning: not the token"), "its standard error is quoted: {}", ended.stderr);
    nothing_is_shown(&lab, &[&ended]);
}

#[test]
fn a_token_is_printed_again_after_hooks_that_outlast_it() {
    let server = Gate::start(|_| Answer::Good);
    // The hook is a command that ends long after the token has expired.
    let endpoint =
        format!("api_key: {}, hooks: {{ before_run: {{ command: [sleep, '1'] }} }}", command("key", "900ms"));
    let lab = lab(&plan(server.port, &endpoint, 1, 4));
    let ended = lab.ok(&["run", "plan.yaml"]);
    let tokens: Vec<usize> = server.tokens_by_attempt().into_values().flatten().collect();
    assert_eq!(tokens, [calls(&lab)], "the load has the last token: {}", ended.stderr);
    assert!(calls(&lab) >= 2, "{}", ended.stderr);
}

#[test]
fn endpoints_with_the_same_command_share_a_token() {
    let server = Gate::start(|_| Answer::Good);
    let text = plan(server.port, &format!("api_key: {}", command("key", "1h")), 1, 4);
    let line = text.lines().find(|line| line.starts_with("  a: ")).unwrap();
    let both = format!("{line}\n{}", line.replacen("  a: ", "  b: ", 1));
    let lab = lab(&text.replace(line, &both).replace("endpoint: [a]", "endpoint: [a, b]"));
    let ended = lab.ok(&["run", "plan.yaml"]);
    assert_eq!((lab.runs().len(), calls(&lab)), (2, 1), "{}", ended.stderr);
}

#[test]
fn an_earlier_token_stays_hidden() {
    // The server repeats the first token in the errors of later ones.
    let first = Arc::new(Mutex::new(String::new()));
    let server = Gate::start(move |request| {
        let mut first = first.lock().unwrap();
        if request.token_number() == 1 {
            first.clone_from(&request.token);
        }
        match request.is_probe() {
            true => Answer::Good,
            false => Answer::Status(500, format!("{} replaced {first}", request.token)),
        }
    });
    let endpoint = format!("errors: measured, api_key: {}", command("key", "1ms"));
    let lab = lab(&plan(server.port, &endpoint, 3, 4));
    let ended = lab.run(&["run", "plan.yaml", "-v"]);
    assert_eq!(lab.runs().len(), 3, "{}", ended.stderr);
    for run in lab.runs().into_values() {
        let failed = by_number(run).into_iter().filter(|record| record.row.outcome == Outcome::Http(500));
        let errors: Vec<String> = failed.filter_map(|record| record.row.error).collect();
        assert!(
            !errors.is_empty() && errors.iter().all(|error| error.contains("[secret] replaced [secret]")),
            "{errors:?}"
        );
    }
    nothing_is_shown(&lab, &[&ended]);
}

#[test]
fn a_token_that_the_server_rejects_before_a_run_is_printed_again() {
    // The first token is rejected from the second run on, before any of its requests.
    let server = Gate::start(|request| match request.token_number() == 1 && request.before >= 12 {
        true => Answer::Status(401, "revoked".to_owned()),
        false => Answer::Good,
    });
    let lab = lab(&plan(server.port, &format!("api_key: {}", command("key", "1h")), 2, 4));
    let ended = lab.ok(&["run", "plan.yaml"]);
    assert_eq!(lab.runs().len(), 2, "{}", ended.stderr);
    assert!(
        lab.runs().into_values().all(|run| run.records.iter().all(|record| record.row.outcome != Outcome::Http(401)))
    );
    // A token that is rejected although it is new is not printed again and again.
    let server = Gate::start(|_| Answer::Status(401, "unknown client".to_owned()));
    let lab = self::lab(&plan(server.port, &format!("api_key: {}", command("key", "1h")), 2, 4));
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_eq!((ended.code, calls(&lab)), (Some(2), 1), "{}", ended.stderr);
    assert!(ended.stderr.contains("rejects the API key (HTTP 401): unknown client"), "{}", ended.stderr);
    assert!(ended.stderr.contains("; the token was printed by `sh token.sh key`"), "{}", ended.stderr);
}

#[test]
fn the_workers_of_a_load_print_their_own_tokens() {
    // The tokens of the first attempt, of the coordinator and of both workers, expire.
    let server = Gate::start(|request| match request.token_number() <= 3 && request.before >= 2 {
        true => Answer::Status(401, format!("token {} has expired", request.token)),
        false => Answer::Good,
    });
    let text = plan(server.port, &format!("api_key: {}", command("key", "1h")), 1, 20) + "engine: { workers: 2 }\n";
    let lab = lab(&text.replace("{ for: 200ms, min_requests: 20, at_most: 60s }", "500ms"));
    let ended = lab.run(&["run", "plan.yaml", "-v"]);
    assert_eq!(lab.runs().len(), 1, "{}{}", ended.stdout, ended.stderr);
    let run = lab.only_run();
    assert_eq!(run.json["facts"]["workers"].as_array().map(Vec::len), Some(2), "{}", ended.stderr);
    assert!(run.records.iter().all(|record| record.row.outcome != Outcome::Http(401)), "{}", ended.stderr);
    let spoiled: Vec<Value> = attempts(&lab).iter().map(|attempt| attempt["spoiled"]["cause"].clone()).collect();
    assert_eq!(spoiled, ["unauthorized"], "{}", ended.stderr);
    assert_eq!(calls(&lab), 6, "each process prints a token for each attempt");
    nothing_is_shown(&lab, &[&ended]);
}

#[test]
fn how_long_a_token_is_valid_is_no_part_of_an_identity() {
    let ids = |valid: &str, word: &str| {
        let endpoint = format!("headers: {{ X-Key: {} }}", command(word, valid));
        let listed = lab(&plan(1, &endpoint, 1, 4)).ok(&["preview", "plan.yaml", "--format", "json"]).json();
        listed["runs"][0]["id"].as_str().unwrap().to_owned()
    };
    assert_eq!(ids("50m", "key"), ids("1h", "key"));
    assert_ne!(ids("50m", "key"), ids("50m", "other"));
}
