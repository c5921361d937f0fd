//! Tests the plans in the repository. Each is correct and documents itself, and is run here unchanged
//! except for its scale: --set shortens the windows and points the endpoints to one mock.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sweepline::rows::Outcome;

use lab::sweeps::honest;
use lab::{Lab, Server};

/// Every plan, the selection of its cells that is run here, and the number of runs in these cells.
/// `readme` runs the quickstart, the demonstration and the slow server.
const PLANS: &[(&str, &str, usize)] = &[
    ("flags", "batch_size == 8 and server.max_num_batched_tokens == 2048 and server.max_num_seqs == 64", 4),
    ("cold-start", "repeat < 1", 2),
    ("saturation", "batch_size <= 2 and model == 'qwen-7b' and scenario in ['B1', 'summary']", 8),
    // Each load of a search has its own repeat numbers.
    ("search", "qps == 10 and repeat == 78", 1),
    ("release-gate", "qps == 10 and repeat == 0", 2),
    ("nightly", "qps == 25 and repeat < 2", 2),
    ("qps-curve", "qps >= 16", 4),
    ("engine-comparison", "qps == 8 and repeat < 2", 8),
    ("length-matrix", "qps == 4", 5),
    ("presets", "qps == 4", 5),
    ("conversations", "sweep == 'users' and batch_size == 8", 2),
    ("prefix", "qps == 2 and repeat < 1", 3),
    ("mix", "repeat == 0", 2),
    ("trace", "repeat < 1", 2),
    ("dataset", "qps == 16 and repeat < 1", 3),
    ("profile", "repeat < 1 and (sweep == 'recorded' or qps == 4)", 2),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("plans")
}

/// Returns the changes that make the runs of a plan take only a moment, with every server at `url`.
fn changes(text: &str, url: &str) -> Vec<String> {
    let plan: Value = serde_yaml::from_str(text).unwrap();
    let endpoints = plan["endpoints"].as_object().unwrap().keys();
    let moment =
        ["phases.idle=0s", "phases.fill=20ms", "phases.stabilize=50ms", "phases.measure=400ms", "phases.drain=20s"];
    let set = moment.into_iter().chain(["between.cooldown=0s"]).map(str::to_owned);
    let is_launched = |endpoint: &str| plan["endpoints"][endpoint]["launch"].is_object();
    // The embedded mock already exists.
    let is_embedded = |endpoint: &String| plan["endpoints"][endpoint.as_str()]["mock"].is_object();
    let led = endpoints.filter(|endpoint| !is_embedded(endpoint)).flat_map(|endpoint| match is_launched(endpoint) {
        true => launched(endpoint),
        false => vec![format!("endpoints.{endpoint}.url={url}")],
    });
    let set = set.chain(led);
    set.flat_map(|set| ["--set".to_owned(), set]).collect()
}

/// Replaces a server that a plan launches with the mock, which uses the port but none of the flags.
fn launched(endpoint: &str) -> Vec<String> {
    let mock = "exec sweepline mock --ttft 1ms --itl 1ms --port $0";
    let command = format!("[sh, -c, '{mock}', '{{{{ port }}}}', '{{{{ server.args }}}}']");
    vec![
        format!("endpoints.{endpoint}.launch.command={command}"),
        format!("endpoints.{endpoint}.launch.env={{}}"),
        format!("endpoints.{endpoint}.ready.path=/v1/models"),
    ]
}

/// Returns the runs of a preview by state.
fn states(lab: &Lab, plan: &[&str]) -> BTreeMap<String, usize> {
    let preview = lab.ok(&[&["preview", "--format", "json"], plan].concat()).json();
    let mut states = BTreeMap::new();
    for run in preview["runs"].as_array().unwrap() {
        *states.entry(run["state"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    states
}

fn is_run_at_small_scale(name: &str) {
    let (_, only, runs) = PLANS.iter().copied().find(|(plan, ..)| *plan == name).unwrap();
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let path = folder().join(format!("{name}.yaml"));
    let changes = changes(&std::fs::read_to_string(&path).unwrap(), &server.url());
    let mut plan = vec![path.to_str().unwrap(), "--only", only];
    plan.extend(changes.iter().map(String::as_str));
    assert_eq!(states(&lab, &plan), BTreeMap::from([("new".to_owned(), runs)]));
    honest(&lab.run(&[&["run"], &plan[..]].concat()));
    let stored = lab.runs();
    assert_eq!(stored.len(), runs);
    let outcomes: Vec<Outcome> =
        stored.values().flat_map(|run| run.records.iter().map(|record| record.row.outcome)).collect();
    assert!(outcomes.contains(&Outcome::Ok), "{name}: {outcomes:?}");
    // Requests still in flight when the last measured request has ended are cut off; no other
    // failure is allowed.
    let is_well = |outcome: &Outcome| matches!(outcome, Outcome::Ok | Outcome::CutAtDrain);
    assert!(outcomes.iter().all(is_well), "{name}: {outcomes:?}");
    assert_eq!(states(&lab, &plan), BTreeMap::from([("cached".to_owned(), runs)]), "nothing remains to be done");
}

#[test]
fn the_saturation_plan_runs() {
    is_run_at_small_scale("saturation");
}

#[test]
fn the_flags_plan_runs() {
    is_run_at_small_scale("flags");
}

#[test]
fn the_cold_start_plan_runs() {
    is_run_at_small_scale("cold-start");
}

#[test]
fn the_release_gate_runs() {
    is_run_at_small_scale("release-gate");
}

#[test]
fn the_nightly_plan_runs() {
    is_run_at_small_scale("nightly");
}

#[test]
fn the_qps_curve_runs() {
    is_run_at_small_scale("qps-curve");
}

#[test]
fn the_prefix_plan_runs() {
    is_run_at_small_scale("prefix");
}

#[test]
fn the_engine_comparison_runs() {
    is_run_at_small_scale("engine-comparison");
}

#[test]
fn the_length_matrix_runs() {
    is_run_at_small_scale("length-matrix");
}

#[test]
fn the_presets_run() {
    is_run_at_small_scale("presets");
}

#[test]
fn the_conversations_plan_runs() {
    is_run_at_small_scale("conversations");
}

#[test]
fn the_mix_runs() {
    is_run_at_small_scale("mix");
}

#[test]
fn the_trace_plan_runs() {
    is_run_at_small_scale("trace");
}

#[test]
fn the_data_set_plan_runs() {
    is_run_at_small_scale("dataset");
}

#[test]
fn the_search_plan_runs() {
    is_run_at_small_scale("search");
}

#[test]
fn the_profile_plan_runs() {
    is_run_at_small_scale("profile");
}

#[test]
fn every_plan_is_right_and_explains_itself() {
    let lab = Lab::new();
    let start = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/START.md")).unwrap();
    let mut names = Vec::new();
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    for entry in files.filter(|path| path.is_file()) {
        let name = entry.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&entry).unwrap();
        assert!(text.starts_with("# yaml-language-server: $schema=../schemas/plan.schema.json\n"), "{name}");
        let comments = text.lines().filter(|line| line.contains("# ") || line.trim() == "#").count();
        assert!(comments * 5 > text.lines().count(), "{name}: {comments} lines of comment");
        assert!(text.lines().all(|line| line.chars().count() <= 120), "{name} has long lines");
        assert!(text.contains("hypothesis: "), "{name}");
        let path = entry.to_str().unwrap();
        // Every warning of the methodology lint is fixed, or allowed with a reason. The quickstart is
        // exempt.
        let strict: &[&str] = if name == "quickstart" { &[] } else { &["--strict"] };
        lab.ok(&[&["check", path], strict].concat());
        lab.ok(&["preview", path]);
        assert!(start.contains(&format!("plans/{name}.yaml")), "docs/START.md does not list {name}");
        names.push(name);
    }
    for (name, ..) in PLANS {
        assert!(names.contains(&(*name).to_owned()), "{name}");
    }
    assert_eq!(names.len(), PLANS.len() + 3, "{names:?}: a plan without a test");
}
