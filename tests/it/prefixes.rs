//! Tests declared shared prefixes of prompts by comparing them with the hits of a prefix cache in the
//! mock, which does not know the plan.

use serde_json::Value;
use sweepline::rows::Phase;

use lab::{Lab, Run, Server};

/// Returns a plan with a window over `scenarios` (the text of `scenarios:` and the values of the axis), on
/// an embedded mock whose cache keeps this many tokens, in blocks of the usual size.
fn plan(cache: u32, scenarios: &str, values: &str) -> String {
    format!(
        "sweepline: 1\nname: prefixes\nseed: 5\nmodels: {{ m: {{ id: tiny }} }}\nendpoints:\n  a: {{ engine: mock, mock: {{ ttft: 1ms, \
         itl: 1ms, prefix_cache: {cache} }} }}\nphases: {{ fill: 0s, stabilize: 300ms, measure: {{ for: 1s, \
         min_requests: 200, at_most: 60s }}, drain: 30s }}\nscenarios:\n{scenarios}sweeps: {{ s: {{ matrix: {{ scenario: {values}, \
         batch_size: [4] }} }} }}\n"
    )
}

/// Returns a share of the prompt tokens of the window's requests, in percentage points.
fn points(run: &Run, part: impl Fn(&sweepline::rows::RequestRow) -> (Option<u32>, Option<u32>)) -> f64 {
    let measured = run.records.iter().map(|record| &record.row).filter(|row| row.phase == Phase::Measure);
    let (mut some, mut all) = (0u64, 0u64);
    for (tokens, whole) in measured.map(part).filter_map(|(tokens, whole)| tokens.zip(whole)) {
        some += u64::from(tokens);
        all += u64::from(whole);
    }
    100.0 * some as f64 / all as f64
}

fn declared(run: &Run) -> f64 {
    points(run, |row| (row.reusable_tokens, Some(row.intended_prompt_tokens)))
}

fn cached(run: &Run) -> f64 {
    points(run, |row| (row.cached_tokens, row.prompt_tokens))
}

/// Returns the reasons in a run's verdict by name, with the state of each.
fn reasons(lab: &Lab, run: &Run) -> Vec<(String, String)> {
    let shown = lab.ok(&["show", run.json["id"].as_str().unwrap(), "--format", "json"]).json();
    let reasons = shown["verdict"]["reasons"].as_array().unwrap_or_else(|| panic!("no reasons in {shown}"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    reasons.iter().map(|reason| (text(&reason["name"]), text(&reason["state"]))).collect()
}

#[test]
fn a_cache_gives_back_what_is_declared() {
    let lab = Lab::new();
    // 12 contexts of 1 024 tokens are twice as large as the tiles' cache, and a fifth of the other
    // cache.
    let groups = "  warm: { base: B1, output_tokens: 4, prompt_tokens: 64, prefix: { share: 0.6, tokens: 1024, groups: 8, order: zipf } }\n  \
                  all: { base: warm, prefix: { tokens: 1024, groups: 3, order: cycle } }\n  \
                  cold: { base: warm, cache: cold }\n  none: { base: warm, prefix: { tokens: 1024, share: 0 } }\n";
    lab.write("groups.yaml", &plan(60_000, groups, "[warm, all, cold, none]"));
    // On a busy machine runs are late, which does not affect caching.
    lab.run(&["run", "groups.yaml"]);
    let tiles = "  tile: { base: B1, output_tokens: 4, prompt_tokens: 64, prefix: { tokens: 1024, groups: 12, order: tile } }\n";
    lab.write("tiles.yaml", &plan(5_000, tiles, "[tile]"));
    lab.run(&["run", "tiles.yaml"]);
    let mut seen = Vec::new();
    for run in lab.runs().values() {
        let name = run.json["spec"]["labels"]["scenario"].as_str().unwrap();
        let (declared, cached) = (declared(run), cached(run));
        println!("{name}: declared {declared:.1} %, cached {cached:.1} %");
        assert!((declared - cached).abs() <= 2.0, "{name}: declared {declared:.2} %, cached {cached:.2} %");
        match name {
            "warm" => assert!((40.0..75.0).contains(&declared), "three of five requests share 94 %: {declared}"),
            "all" => assert!(declared > 90.0, "{declared}"),
            _ => assert_eq!(declared, 0.0, "{name}"),
        }
        assert!(!reasons(&lab, run).iter().any(|(name, _)| name == "warm_cache"), "{name}");
        seen.push(name.to_owned());
    }
    seen.sort();
    assert_eq!(seen, ["all", "cold", "none", "tile", "warm"]);
}

#[test]
fn a_leak_is_caught() {
    let lab = Lab::new();
    let server = Server::start(&lab, &["--prefix-cache", "1000000"]);
    // Without a nonce, both batch sizes send the same texts, so the second run hits the texts that the
    // first one cached.
    let plan = format!(
        "sweepline: 1\nname: leak\nseed: 5\nnonce: off\nmodels: {{ m: {{ id: tiny }} }}\nendpoints: {{ a: {{ url: '{}', engine: mock }} }}\n\
         phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 300ms, min_requests: 100, at_most: 60s }}, drain: 30s }}\n\
         scenarios: {{ s: {{ base: B1, prompt_tokens: 400, output_tokens: 4 }} }}\n\
         sweeps: {{ s: {{ matrix: {{ scenario: [s], batch_size: [2, 3] }} }} }}\n",
        server.url()
    );
    lab.write("leak.yaml", &plan);
    let ended = lab.run(&["run", "leak.yaml"]);
    let runs = lab.runs();
    let leaks: Vec<(f64, Vec<(String, String)>)> = runs.values().map(|run| (cached(run), reasons(&lab, run))).collect();
    let invalid = ("warm_cache".to_owned(), "invalid".to_owned());
    let caught = leaks.iter().filter(|(_, reasons)| reasons.contains(&invalid)).count();
    assert_eq!(caught, 1, "the second run: {leaks:?}");
    assert!(leaks.iter().all(|(cached, reasons)| (*cached > 10.0) == reasons.contains(&invalid)), "{leaks:?}");
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
}
