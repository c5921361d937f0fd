//! Tests runs over a mix: the class of each request, the requests of each class, and the results of each
//! class.

use std::collections::BTreeMap;

use serde_json::Value;
use sweepline::rows::{Outcome, RequestRow};

use lab::mock::Mock;
use lab::sweeps::honest;
use lab::{Lab, Run};

const HEAD: &str = "\
sweepline: 1
name: mix
seed: 7
models: { m: { id: m } }
phases: { fill: 0s, stabilize: 0s, measure: { for: 300ms, min_requests: 400, at_most: 60s }, drain: 30s }
scenarios:
  short: { prompt_tokens: 30, output_tokens: 3, extra: { top_k: 5 } }
  long: { prompt_tokens: 120, output_tokens: 6, temperature: 0.5 }
  talk: { base: D, prompt_tokens: 20, output_tokens: 4, turns: 3 }
  mixed:
    mix:
      - { scenario: short, share: 0.5 }
      - { scenario: long, share: 0.3 }
      - { scenario: talk, share: 0.2 }
";

/// The lengths that each of these scenarios requests: prompt tokens of its first turn, and output tokens.
const LENGTHS: [(&str, u32, u32, f64); 3] = [("short", 30, 3, 0.5), ("long", 120, 6, 0.3), ("talk", 20, 4, 0.2)];

/// Returns a run of `mixed` for each of `endpoints`, and the bodies that the server received by request
/// id.
fn experiment(endpoints: &str, matrix: &str) -> (Lab, Vec<Run>, BTreeMap<String, Value>) {
    let lab = Lab::new();
    let mut mock = Mock::start(&[]);
    let endpoints = endpoints.replace("URL", &format!("http://127.0.0.1:{}/v1", mock.port));
    lab.write("plan.yaml", &format!("{HEAD}endpoints: {{ {endpoints} }}\nsweeps: {{ s: {{ matrix: {matrix} }} }}\n"));
    honest(&lab.run(&["run", "plan.yaml"]));
    mock.terminate();
    let runs: Vec<Run> = lab.runs().into_values().collect();
    let mut bodies = BTreeMap::new();
    for line in mock.log_now() {
        if let (Some(id), Some(body)) = (line["request_id"].as_str(), line["request"].as_str()) {
            bodies.insert(id.to_owned(), serde_json::from_str(body).unwrap());
        }
    }
    (lab, runs, bodies)
}

fn rows(run: &Run) -> Vec<RequestRow> {
    let mut rows: Vec<RequestRow> = run.records.iter().map(|record| record.row.clone()).collect();
    rows.sort_by_key(|row| row.request);
    rows
}

/// Returns the body of a row's request.
fn body<'b>(run: &Run, row: &RequestRow, bodies: &'b BTreeMap<String, Value>) -> &'b Value {
    let id = format!("{}-{}-{}", run.dir.file_name().unwrap().to_str().unwrap(), run.json["attempt"], row.request);
    bodies.get(&id).unwrap_or_else(|| panic!("{id} is not in the log: {:?}", bodies.keys().next()))
}

fn class(row: &RequestRow) -> &str {
    row.class.as_deref().expect("every request has a class")
}

#[test]
fn each_class_has_its_share_its_lengths_and_its_fields() {
    let (_lab, runs, bodies) = experiment("a: { url: URL, engine: mock }", "{ scenario: mixed, batch_size: 4 }");
    let rows = rows(&runs[0]);
    for (name, prompt, output, share) in LENGTHS {
        let own: Vec<&RequestRow> = rows.iter().filter(|row| class(row) == name).collect();
        // Each request's class is drawn independently. The counts are within five standard deviations of a
        // binomial count, for a fixed seed.
        let (n, found) = (rows.len() as f64, own.len() as f64);
        assert!((found - n * share).abs() < 5.0 * (n * share * (1.0 - share)).sqrt(), "{name}: {found} of {n}");
        for row in own.iter().filter(|row| row.sent_ns.is_some()) {
            assert_eq!(row.requested_tokens, output, "{name}");
            assert_eq!(row.turn.is_some(), name == "talk");
            if row.turn.unwrap_or(0) == 0 {
                assert!(row.intended_prompt_tokens.abs_diff(prompt) <= 1, "{name}: {}", row.intended_prompt_tokens);
            }
            let body = body(&runs[0], row, &bodies);
            assert_eq!(body["max_tokens"], output);
            assert_eq!(body["top_k"], if name == "short" { 5.into() } else { Value::Null }, "{name}");
            assert_eq!(body["temperature"].as_f64(), Some(if name == "long" { 0.5 } else { 0.0 }), "{name}");
            let messages = body["messages"].as_array().unwrap().len() as u32;
            assert_eq!(messages, 2 * row.turn.unwrap_or(0) + 1, "a turn contains the earlier ones");
        }
    }
    let texts = |row: &RequestRow| body(&runs[0], row, &bodies)["messages"][0]["content"].to_string();
    let sent = || rows.iter().filter(|row| row.sent_ns.is_some() && row.turn.unwrap_or(0) == 0);
    let openings: std::collections::BTreeSet<String> =
        sent().map(|row| texts(row).chars().take(24).collect()).collect();
    assert_eq!(openings.len(), sent().count(), "no two prompts start alike, whatever their classes");
    assert!(rows.iter().any(|row| row.turn == Some(2) && row.outcome == Outcome::Ok), "conversations continue");
}

#[test]
fn every_endpoint_and_load_gets_the_same_classes_with_the_same_texts() {
    let (_lab, runs, bodies) = experiment(
        "a: { url: URL, engine: mock, resource: a }, b: { url: URL, engine: mock, resource: b }",
        "{ endpoint: [a, b], scenario: mixed, batch_size: [1, 3] }",
    );
    assert_eq!(runs.len(), 4);
    let all: Vec<Vec<RequestRow>> = runs.iter().map(rows).collect();
    let common = all.iter().map(Vec::len).min().unwrap();
    let classes: Vec<Vec<&str>> = all.iter().map(|rows| rows[..common].iter().map(class).collect()).collect();
    assert!(classes.iter().all(|of_run| *of_run == classes[0]));
    // After the nonce, the texts of requests without a history are equal.
    let text = |run: usize, k: usize| {
        let content = body(&runs[run], &all[run][k], &bodies)["messages"][0]["content"].as_str().unwrap().to_owned();
        content.split_once("] ").unwrap().1.to_owned()
    };
    let plain = (0..common).filter(|k| class(&all[0][*k]) != "talk");
    let sent = plain.filter(|k| all.iter().all(|rows| rows[*k].sent_ns.is_some()));
    let compared = sent.filter(|k| (1..4).all(|run| text(run, *k) == text(0, *k))).count();
    assert!(compared > common / 2, "{compared} of {common}");
    let differ = (0..common)
        .filter(|k| class(&all[0][*k]) != "talk" && all.iter().all(|rows| rows[*k].sent_ns.is_some()))
        .filter(|k| (1..4).any(|run| text(run, *k) != text(0, *k)))
        .count();
    assert_eq!(differ, 0);
}

#[test]
fn every_view_of_a_run_tells_its_classes() {
    let (lab, runs, _) = experiment("a: { url: URL, engine: mock }", "{ scenario: [mixed, short], qps: 200 }");
    let run = runs.iter().find(|run| run.json["spec"]["labels"]["scenario"] == "mixed").unwrap();
    let id = run.json["id"].as_str().unwrap();
    let window = run.window("measure_start_ns")..run.window("measure_end_ns");
    let measured = |name: &str| {
        let rows = run.records.iter().map(|record| &record.row);
        rows.filter(|row| window.contains(&row.scheduled_ns) && class(row) == name).count() as u64
    };
    let shown = lab.ok(&["show", id, "--format", "json"]).json();
    let classes = shown["classes"].as_array().unwrap();
    assert_eq!(classes.iter().map(|one| one["class"].as_str().unwrap()).collect::<Vec<_>>(), ["short", "long", "talk"]);
    for one in classes {
        assert_eq!(one["requests"].as_u64().unwrap(), measured(one["class"].as_str().unwrap()), "{one}");
        assert!(one["ttft_p50_ms"].as_f64().unwrap() > 0.0);
    }
    let sum = |field: &str| classes.iter().map(|one| one[field].as_f64().unwrap()).sum::<f64>();
    for whole in ["requests", "output_throughput_tokens_per_s"] {
        let (parts, all) = (sum(whole), shown["metrics"][whole].as_f64().unwrap());
        assert!((parts - all).abs() < 1e-6 * all, "{whole}: {parts} of {all}");
    }
    let text = lab.ok(&["show", id]).stdout;
    assert!(text.contains("by class\n") && text.contains("└ talk"), "{text}");
    let plain = runs.iter().find(|run| run.json["spec"]["labels"]["scenario"] == "short").unwrap();
    assert!(lab.ok(&["show", plain.json["id"].as_str().unwrap(), "--format", "json"]).json()["classes"].is_null());
    let table = lab.run(&["run", "plan.yaml"]).stdout;
    assert!(["└ short", "└ long", "└ talk"].iter().all(|class| table.contains(class)), "{table}");
    let csv = lab.ok(&["export", "plan.yaml", "--rows", "classes"]).stdout;
    assert_eq!(csv.lines().count(), 4, "a header and three classes: {csv}");
    assert!(csv.lines().nth(2).unwrap().starts_with("s,long,"), "{csv}");
    let requests = lab.ok(&["export", "plan.yaml", "--rows", "requests", "--format", "json"]).stdout;
    assert!(requests.contains("\"class\": \"talk\"") || requests.contains("\"class\":\"talk\""));
}

#[test]
fn shares_and_members_decide_what_a_run_is_and_names_do_not() {
    let lab = Lab::new();
    let plan = format!(
        "{HEAD}endpoints: {{ a: {{ engine: mock }} }}\nsweeps: {{ s: {{ matrix: {{ scenario: mixed, qps: 5 }} }} }}\n"
    );
    let id = |text: &str| -> String {
        lab.write("plan.yaml", text);
        let preview = lab.ok(&["preview", "plan.yaml", "--format", "json"]).json();
        preview["runs"][0]["id"].as_str().unwrap().to_owned()
    };
    let before = id(&plan);
    let same = [
        (
            "share: 0.5 }\n      - { scenario: long, share: 0.3 }\n      - { scenario: talk, share: 0.2",
            "share: 5 }\n      - { scenario: long, share: 3 }\n      - { scenario: talk, share: 2",
        ),
        ("mixed", "traffic"),
        ("short", "brief"),
    ];
    for (old, new) in same {
        assert_eq!(id(&plan.replace(old, new)), before, "{old} → {new}");
    }
    let others = [
        ("share: 0.5 }\n      - { scenario: long, share: 0.3", "share: 0.6 }\n      - { scenario: long, share: 0.2"),
        ("output_tokens: 6", "output_tokens: 7"),
        ("top_k: 5", "top_k: 6"),
        ("temperature: 0.5", "temperature: 0.6"),
        ("turns: 3", "turns: 4"),
    ];
    for (old, new) in others {
        assert_ne!(id(&plan.replace(old, new)), before, "{old} → {new}");
    }
    // An axis, and keys next to the mix, apply to every class.
    let axis = plan.replace("qps: 5", "qps: 5, output_tokens: 9");
    assert_eq!(id(&axis), id(&plan.replace("  mixed:\n", "  mixed:\n    output_tokens: 9\n")));
}
