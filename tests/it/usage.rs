//! Tests a server with an impossible usage: none of its counts is used, the rows record why, and the
//! verdict reports it for the run.

use std::io::Write;

use serde_json::Value;
use sweepline::rows::{TokenSource, TokensUnknown};

use lab::mock::Mock;
use lab::server::{Server, stream_of, token};
use lab::{Lab, Run};

const ENGINES: [&str; 7] = ["vllm", "sglang", "nim", "tgi", "llamacpp", "openai", "mock"];

/// Returns a plan with one run for each engine against one server; each run requests 4 tokens.
fn plan(port: u16, engines: &[&str], stream: bool) -> String {
    let endpoint = |engine: &&str| format!("  {engine}: {{ url: 'http://127.0.0.1:{port}/v1', engine: {engine} }}\n");
    let endpoints: String = engines.iter().map(endpoint).collect();
    let phases = "fill: 0s, stabilize: 0s, measure: { for: 50ms, min_requests: 10, at_most: 60s }, drain: 10s";
    let matrix = format!("endpoint: [{}], model: [m], scenario: [short], batch_size: [2]", engines.join(", "));
    format!(
        "sweepline: 1\nname: test\nseed: 5\nendpoints:\n{endpoints}models: {{ m: {{ id: tiny }} }}\n\
         scenarios: {{ short: {{ base: B1, output_tokens: 4, stream: {stream} }} }}\nphases: {{ {phases} }}\n\
         sweeps: {{ s: {{ matrix: {{ {matrix} }} }} }}\n"
    )
}

/// Returns the verdict of a run from `show`, and its page.
fn shown(lab: &Lab, run: &Run) -> (Value, String) {
    let id = &run.json["id"].as_str().unwrap()[..16];
    let json = lab.ok(&["show", id, "--format", "json"]).json();
    (json["verdict"].clone(), lab.ok(&["show", id]).stdout)
}

fn reason(verdict: &Value) -> Option<&str> {
    let mut reasons = verdict["reasons"].as_array().unwrap().iter();
    reasons.find(|reason| reason["name"] == "impossible_usage").map(|reason| reason["text"].as_str().unwrap())
}

#[test]
fn more_tokens_than_can_be_are_believed_of_no_engine() {
    let mock = Mock::start(&["--fault", "usage:2000000000@all"]);
    for stream in [true, false] {
        let lab = Lab::new();
        lab.write("plan.yaml", &plan(mock.port, &ENGINES, stream));
        let ended = lab.run(&["run", "plan.yaml"]);
        let runs = lab.runs();
        assert_eq!(runs.len(), ENGINES.len(), "{}", ended.stderr);
        assert!(ended.stdout.contains("impossible_usage"), "the table lists it: {}", ended.stdout);
        for run in runs.values() {
            let engine = &run.json["spec"]["endpoint"]["name"];
            for row in run.records.iter().map(|record| &record.row).filter(|row| row.outcome.is_ok()) {
                let doubt = "2000000000 completion tokens for max_tokens 4";
                assert_eq!(row.usage_doubt.as_deref(), Some(doubt), "{engine}");
                assert_eq!((row.prompt_tokens, row.cached_tokens, row.reasoning_tokens), (None, None, None));
                assert_eq!((row.output_tokens, row.token_source, row.streamed_tokens), (None, None, None), "{engine}");
                assert_eq!(row.tokens_unknown, stream.then_some(TokensUnknown::ImpossibleUsage), "{engine}");
            }
            let (verdict, page) = shown(&lab, run);
            assert_ne!(verdict["state"], "valid", "{engine}: {verdict}");
            let text = reason(&verdict).unwrap_or_else(|| panic!("{engine}: {verdict}"));
            assert!(text.contains(" responses is impossible: 2000000000 completion tokens for max_tokens 4"), "{text}");
            assert!(page.contains("impossible_usage"), "{page}");
        }
        let rows = lab.ok(&["export", "plan.yaml", "--rows", "requests", "--format", "json"]).json();
        assert!(rows.as_array().unwrap().iter().any(|row| row["usage_doubt"].is_string()), "{rows}");
        for run in lab.ok(&["export", "plan.yaml", "--format", "json"]).json().as_array().unwrap() {
            let fast = run["output_throughput_tokens_per_s"].as_f64();
            assert!(fast.is_none_or(|fast| fast < 1e6), "{run}");
        }
    }
}

#[test]
fn every_count_is_held_against_what_can_be() {
    let cases = [
        (r#"{"completion_tokens":4,"prompt_tokens":40}"#, None),
        (r#"{"completion_tokens":5,"prompt_tokens":40}"#, None),
        (r#"{"completion_tokens":6}"#, Some("6 completion tokens for max_tokens 4")),
        (r#"{"completion_tokens":0}"#, Some("0 completion tokens for a response with text")),
        (r#"{"completion_tokens":-4}"#, Some("-4 completion tokens")),
        (r#"{"completion_tokens":5000000000}"#, Some("5000000000 completion tokens")),
        (r#"{"completion_tokens":4,"prompt_tokens":3000000}"#, Some("3000000 prompt tokens for about")),
        (r#"{"completion_tokens":4,"prompt_tokens":40,"prompt_tokens_details":{"cached_tokens":41}}"#, None),
    ];
    for (usage, doubt) in cases {
        let server = Server::start(move |_, stream| {
            let text: String = ["one", " two", " three", " four"].map(token).concat();
            let last = format!("data: {{\"choices\":[],\"usage\":{usage}}}\n\ndata: [DONE]\n\n");
            let _ = stream.write_all(&stream_of(&(text + &last)));
        });
        let lab = Lab::new();
        lab.write("plan.yaml", &plan(server.port, &["openai"], true));
        let ended = lab.run(&["run", "plan.yaml"]);
        let run = lab.only_run();
        let completed: Vec<_> =
            run.records.iter().map(|record| &record.row).filter(|row| row.outcome.is_ok()).collect();
        assert!(completed.len() >= 10, "{usage}: a response is complete whatever its usage: {}", ended.stderr);
        let (verdict, _) = shown(&lab, &run);
        match doubt {
            None => assert_eq!(reason(&verdict), None, "{usage}"),
            Some(doubt) => assert!(reason(&verdict).is_some_and(|text| text.contains(doubt)), "{usage}: {verdict}"),
        }
        for row in completed {
            assert_eq!(row.usage_doubt.is_some(), doubt.is_some(), "{usage}");
            assert_eq!(row.token_source, doubt.is_none().then_some(TokenSource::Usage), "{usage}");
        }
    }
}
