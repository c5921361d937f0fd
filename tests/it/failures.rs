//! Tests that a run with failed requests reports their number, kinds and messages, and does not show
//! figures of failed requests.

use std::io::Write;

use lab::server::{Server, stream_of, token};
use lab::{Ended, Lab};

const KEY: &str = "canary7f3a9c51d2e84b60";

/// Returns a plan with two models and two repeats on one server; `more` is next to the sweeps.
fn plan(port: u16, models: &str, repeats: u32, more: &str) -> String {
    format!(
        "sweepline: 1\nname: failing\n\
         endpoints: {{ srv: {{ url: 'http://127.0.0.1:{port}/v1', engine: openai, api_key: {{ secret: env:SWEEP_KEY }} }} }}\n\
         models: {{ m: {{ id: tiny }}, other: {{ id: small }} }}\nscenarios: {{ short: {{ base: B1, output_tokens: 8 }} }}\n\
         phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 200ms, min_requests: 3, at_most: 60s }}, drain: 5s }}\n{more}\
         sweeps: {{ s: {{ matrix: {{ endpoint: [srv], model: [{models}], scenario: [short], batch_size: [1] }}, repeats: {repeats} }} }}\n"
    )
}

fn run(lab: &Lab, args: &[&str]) -> Ended {
    Ended::from(lab.command(args).env("SWEEP_KEY", KEY).output().unwrap())
}

#[test]
fn all_requests_failed() {
    let server = Server::start(|_, stream| {
        let body = format!(
            r#"{{"error":{{"message":"CUDA out of memory for {KEY}\u202e{}","type":"oom"}}}}"#,
            " Tried to allocate".repeat(40)
        );
        let head = format!("HTTP/1.1 500 No\r\ncontent-length: {}\r\n\r\n", body.len());
        let _ = stream.write_all(format!("{head}{body}").as_bytes());
    });
    let lab = Lab::new();
    // A run without a complete response is invalid, whatever the plan allows.
    let lenient = "validity: { errors: { suspect: 100%, invalid: 100% } }\n";
    lab.write("plan.yaml", &plan(server.port, "m, other", 2, lenient));
    let ended = run(&lab, &["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(3), "{}{}", ended.stdout, ended.stderr);

    let lines: Vec<&str> = ended.stderr.lines().filter(|line| line.contains(" requests · ")).collect();
    assert_eq!(lines.len(), 4, "{}", ended.stderr);
    for line in &lines {
        let said = "all failed: http_500, first: \"CUDA out of memory for [secret]";
        assert!(line.contains(said) && line.contains(" · invalid: ") && line.contains("errors"), "{line}");
        assert!(line.chars().count() < 250 && !line.contains("TTFT") && !line.contains("tok/s"), "{line}");
    }
    for name in ["m · short · batch 1 · repeat 0 ·", "other · short · batch 1 · repeat 1 ·"] {
        assert_eq!(lines.iter().filter(|line| line.contains(&format!("srv · {name}"))).count(), 1, "{name}: {lines:?}");
    }

    let table = &ended.stdout;
    let header = table.lines().find(|line| line.contains("requests")).unwrap();
    assert!(header.contains("errors"), "{table}");
    assert_eq!(table.matches("http_500, first: CUDA out of memory for [secret]").count(), 1, "reported once: {table}");
    let rows: Vec<&str> = table.lines().filter(|line| line.contains("batch 1")).collect();
    // These are TTFT, its tail, TPOT and the throughput of tokens.
    assert!(rows.iter().all(|row| row.matches("n/a").count() == 4 && row.contains("invalid:")), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");

    let (id, _) = lab.runs().pop_first().unwrap();
    let page = run(&lab, &["show", &id, "--plan", "plan.yaml"]).stdout;
    assert!(
        page.contains(" http_500, first: CUDA out of memory for [secret]") && page.contains("verdict: invalid"),
        "{page}"
    );
    assert!(page.contains("requests completed (") && page.contains("none of "), "{page}");
    assert!(!page.lines().any(|line| line.starts_with("TTFT") || line.starts_with("E2E")), "{page}");
    let json = run(&lab, &["show", &id, "--plan", "plan.yaml", "--format", "json"]).json();
    lab.follows("show", &json);
    let failure = &json["failures"][0];
    assert_eq!(failure["outcome"], "http_500");
    assert_eq!(failure["count"], json["metrics"]["requests"]);
    assert!(failure["message"].as_str().unwrap().starts_with("CUDA out of memory for [secret]"));
    for none in ["ttft_p50_ms", "e2e_p50_ms", "e2e_max_ms", "output_throughput_tokens_per_s"] {
        assert!(json["metrics"][none].is_null(), "{none}: {}", json["metrics"][none]);
    }
    let rows = run(&lab, &["export", "plan.yaml", "--format", "json"]).json();
    assert!(rows.as_array().unwrap().iter().all(|row| row["failed.http_500"] == row["failed"]), "{rows}");
    let errors = rows[0]["errors"].as_str().unwrap();
    assert!(errors.ends_with(" http_500") && rows[0]["first_error"].as_str().unwrap().starts_with("CUDA"), "{errors}");
}

#[test]
fn an_answer_without_words_is_said_to_have_none() {
    let server = Server::start(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n");
    });
    let lab = Lab::new();
    lab.write("plan.yaml", &plan(server.port, "m", 1, ""));
    let ended = run(&lab, &["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(ended.stderr.contains("all failed: http_500 (no message) · "), "{}", ended.stderr);
    assert!(ended.stdout.contains("\nhttp_500: (no message)\n"), "{}", ended.stdout);
    let (id, _) = lab.runs().pop_first().unwrap();
    let page = run(&lab, &["show", &id, "--plan", "plan.yaml"]).stdout;
    assert!(page.contains(" http_500: (no message)\n"), "{page}");
    let json = run(&lab, &["show", &id, "--plan", "plan.yaml", "--format", "json"]).json();
    lab.follows("show", &json);
    assert!(json["failures"][0]["message"].is_null(), "{}", json["failures"]);
}

#[test]
fn tokens_of_failures_are_no_figures() {
    // Each response starts, and breaks off after its first token.
    let server = Server::start(|_, stream| {
        let _ = stream.write_all(&stream_of(&token("a")));
    });
    let lab = Lab::new();
    lab.write("plan.yaml", &plan(server.port, "m", 1, ""));
    let ended = run(&lab, &["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let line = ended.stderr.lines().find(|line| line.contains("all failed: reset")).expect("the line reports it");
    assert!(!line.contains("TTFT") && !line.contains("tok/s"), "{line}");
    let row = ended.stdout.lines().find(|line| line.contains("batch 1")).unwrap();
    assert_eq!(row.matches("n/a").count(), 4, "{}", ended.stdout);
}

#[test]
fn some_requests_failed_and_others_not() {
    let server = Server::start(|number, stream| {
        let answer = match number % 3 {
            0 => b"HTTP/1.1 503 No\r\ncontent-length: 4\r\n\r\nbusy".to_vec(),
            _ => lab::server::good(),
        };
        let _ = stream.write_all(&answer);
    });
    let lab = Lab::new();
    lab.write("plan.yaml", &plan(server.port, "m", 1, ""));
    let ended = run(&lab, &["run", "plan.yaml"]);
    let line = ended.stderr.lines().find(|line| line.contains(" requests · ")).unwrap();
    assert!(line.contains(" failed: http_503, first: \"busy\" · TTFT"), "{line}");
    assert!(line.contains("srv · short · batch 1 ·"), "one model and one repeat need no name: {line}");
    assert!(ended.stdout.contains("http_503, first: busy"), "{}", ended.stdout);

    lab.write("good.yaml", lab::sweeps::PLAN);
    // A busy machine may make it late.
    let good = lab.run(&["run", "good.yaml", "--only", "batch_size == 1", "--results", "good"]);
    assert!(
        good.stdout.contains("TTFT p50") && !good.stdout.contains("errors"),
        "no column if no request failed: {}",
        good.stdout
    );
}
