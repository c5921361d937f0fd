//! Checks the plans in README.md and docs/: complete plans are valid, and excerpts are valid parts of a plan.

use std::collections::BTreeSet;

use serde_json::Value;

use lab::Lab;
use lab::pages::{Block, blocks};

/// Defaults for the keys that an excerpt omits.
const REST: [(&str, &str); 5] = [
    ("sweepline", "1"),
    ("name", "excerpt"),
    ("endpoints", "{ vllm: { url: \"http://127.0.0.1:8000/v1\", engine: vllm } }"),
    ("models", "{ llama: { id: meta-llama/Llama-3.1-8B-Instruct } }"),
    ("sweeps", "{ load: { matrix: { batch_size: [1, 8] } } }"),
];

/// The errors that an incomplete plan may cause: a missing file, key, name, server or value for a
/// comparison.
const INCOMPLETE: [&str; 8] = ["E001", "E006", "E014", "E015", "E018", "E024", "E030", "E040"];

/// Returns the lines before an excerpt that begins with this key, and its indentation; `None` if it is not
/// part of a plan.
fn place(key: &str, keys: &BTreeSet<String>, is_yaml: bool) -> Option<(&'static str, usize)> {
    match key {
        _ if keys.contains(key) => Some(("", 0)),
        "matrix" | "exclude" | "arrivals" => Some(("sweeps:\n  load:\n", 4)),
        "shape" | "batch_size" => Some(("sweeps:\n  load:\n    matrix:\n", 6)),
        "resources" | "telemetry" => Some(("endpoints:\n  vllm:\n    engine: vllm\n", 4)),
        "command" => Some(("endpoints:\n  vllm:\n    engine: vllm\n    launch:\n", 6)),
        "ladder" | "tuned" | "sustained" | "load" if is_yaml => Some(("sweeps:\n", 2)),
        _ => None,
    }
}

/// Returns the key of a line that is not indented.
fn key(line: &str) -> Option<&str> {
    let (key, rest) = line.split_once(':')?;
    let is_key = key.chars().all(|c| c.is_ascii_lowercase() || c == '_') && (rest.is_empty() || rest.starts_with(' '));
    (is_key && !key.is_empty()).then_some(key)
}

/// Returns the keys of a plan, from its schema.
pub fn keys_of_a_plan(lab: &Lab) -> BTreeSet<String> {
    lab.ok(&["schema"]).json()["properties"].as_object().unwrap().keys().cloned().collect()
}

/// Returns the place of a block in a plan; `None` if it is neither a plan nor a part of a plan.
fn place_of(block: &Block, keys: &BTreeSet<String>) -> Option<(&'static str, usize)> {
    let first = block.lines.iter().find(|line| !line.is_empty() && !line.starts_with('#'))?;
    place(key(first)?, keys, block.language == "yaml")
}

/// Whether a block is a plan or a part of a plan.
pub fn is_plan(block: &Block, keys: &BTreeSet<String>) -> bool {
    place_of(block, keys).is_some()
}

/// Returns the alternatives in a block. This is the whole block, or each entry separately if the entries
/// have the same keys.
fn alternatives(block: &Block) -> Vec<String> {
    let lines = || block.lines.iter().filter(|line| !line.contains(": …"));
    let keys: Vec<&str> = lines().filter_map(|line| key(line)).collect();
    if keys.iter().collect::<BTreeSet<_>>().len() == keys.len() {
        return vec![lines().map(|line| format!("{line}\n")).collect()];
    }
    let mut entries: Vec<String> = Vec::new();
    for line in lines().filter(|line| !line.starts_with('#')) {
        match (key(line), entries.last_mut()) {
            (None, Some(entry)) => *entry += &format!("{line}\n"),
            _ => entries.push(format!("{line}\n")),
        }
    }
    entries
}

/// Completes an excerpt to a plan.
fn completed(excerpt: &str, (head, indentation): (&str, usize)) -> String {
    let indent = |line: &str| format!("{}{line}\n", " ".repeat(indentation));
    let part = format!("{head}{}", excerpt.lines().map(indent).collect::<String>());
    let is_given = |key: &str| part.lines().any(|line| line.starts_with(&format!("{key}:")));
    let rest = REST.iter().filter(|(key, _)| !is_given(key)).map(|(key, value)| format!("{key}: {value}\n"));
    // Defaults are placed after the excerpt, so that its line numbers change as little as possible.
    format!("{part}{}", rest.collect::<String>())
}

#[test]
fn every_plan_of_the_docs_is_correct_as_far_as_it_goes() {
    let lab = Lab::new();
    let keys = keys_of_a_plan(&lab);
    let blocks = blocks();
    let mut plans: Vec<(String, &Block)> = Vec::new();
    for (block, place) in blocks.iter().filter_map(|block| Some((block, place_of(block, &keys)?))) {
        for excerpt in alternatives(block) {
            let name = format!("{:03}.yaml", plans.len());
            lab.write(&name, &completed(&excerpt, place));
            plans.push((name, block));
        }
    }
    let files: Vec<&str> = plans.iter().map(|(name, _)| name.as_str()).collect();
    let answer = lab.run(&[&["check", "--format", "json"], &files[..]].concat()).json();
    let of = |name: &str| plans.iter().find(|(other, _)| other == name).unwrap().1;
    let is_whole = |block: &Block| block.lines.iter().any(|line| line.starts_with("sweepline: "));
    let mut wrong = Vec::new();
    for found in answer["diagnostics"].as_array().unwrap() {
        let text = |key: &str| found[key].as_str().unwrap_or_default();
        let block = of(text("file"));
        if found["severity"] == "error" && (is_whole(block) || !INCOMPLETE.contains(&text("code"))) {
            wrong.push(format!("{}: {}: {}", block.place(), text("code"), text("message")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(plans.len() > 80 && blocks.iter().filter(|block| is_whole(block)).count() > 2, "{} plans", plans.len());
}

/// An excerpt that contains an error is rejected.
#[test]
fn an_excerpt_with_an_unknown_key_is_found() {
    let lab = Lab::new();
    let keys = keys_of_a_plan(&lab);
    let codes = |excerpt: &str| -> Vec<String> {
        let place = place(excerpt.lines().find_map(key).unwrap(), &keys, true).unwrap();
        lab.write("plan.yaml", &completed(excerpt, place));
        let answer: Value = lab.run(&["check", "--format", "json", "plan.yaml"]).json();
        let found = answer["diagnostics"].as_array().unwrap().iter().filter(|found| found["severity"] == "error");
        found.map(|found| found["code"].as_str().unwrap().to_owned()).collect()
    };
    for (excerpt, code) in [
        ("phases: { mesure: 20s }\n", "E005"),
        ("matrix: { rps: [1] }\n", "E012"),
        ("resources: { gpu: 8 }\n", "E005"),
        ("slo: { ttft: { p99: 500 } }\n", "E008"),
    ] {
        let found = codes(excerpt);
        assert!(found.iter().any(|found| found == code), "{excerpt}: {found:?}");
        assert!(!INCOMPLETE.contains(&code));
    }
}
