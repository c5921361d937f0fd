//! The plans that come with the repository: each is right, explains itself, and is run here at small scale, its servers
//! replaced by one mock.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use sweepline::rows::Outcome;

use super::lab::{Lab, Server};
use super::sweeps::honest;

/// Every plan, which of its cells are run here, and how many runs those are. The quickstart is run as it is by `readme`.
const PLANS: [(&str, &str, usize); 4] = [
    ("saturation", "batch_size <= 2 and model == 'qwen-7b' and scenario in ['B1', 'summary']", 8),
    ("qps-curve", "qps >= 16", 4),
    ("engine-comparison", "qps == 8 and repeat < 2", 8),
    ("length-matrix", "qps == 4", 5),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("plans")
}

fn text(name: &str) -> String {
    std::fs::read_to_string(folder().join(format!("{name}.yaml"))).unwrap()
}

/// The plan with windows of a moment, short texts, and every server at `url`; nothing else is changed.
fn small(text: &str, url: &str) -> Value {
    let mut plan: Value = serde_yaml::from_str(text).unwrap();
    let moment = json!({ "fill": "20ms", "stabilize": "50ms", "measure": "400ms", "drain": "20s" });
    plan["phases"] = moment;
    plan["between"] = json!({ "cooldown": "0s" });
    for endpoint in plan["endpoints"].as_object_mut().unwrap().values_mut() {
        endpoint["url"] = url.into();
    }
    let shorter = |fields: &mut Map<String, Value>| {
        for (field, most) in [("output_tokens", 8), ("system_tokens", 100)] {
            if let Some(Value::Number(_)) = fields.get(field) {
                fields.insert(field.to_owned(), most.into());
            }
        }
    };
    if let Some(Value::Object(scenarios)) = plan.get_mut("scenarios") {
        scenarios.values_mut().for_each(|scenario| shorter(scenario.as_object_mut().unwrap()));
    }
    plan
}

/// The runs of a preview by state.
fn states(lab: &Lab, only: &str) -> BTreeMap<String, usize> {
    let preview = lab.ok(&["preview", "plan.yaml", "--only", only, "--format", "json"]).json();
    let mut states = BTreeMap::new();
    for run in preview["runs"].as_array().unwrap() {
        *states.entry(run["state"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    states
}

fn is_run_at_small_scale(name: &str) {
    let (_, only, runs) = PLANS.into_iter().find(|(plan, ..)| *plan == name).unwrap();
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    lab.write("plan.yaml", &small(&text(name), &server.url()).to_string());
    assert_eq!(states(&lab, only), BTreeMap::from([("new".to_owned(), runs)]));
    honest(&lab.run(&["run", "plan.yaml", "--only", only]));
    let stored = lab.runs();
    assert_eq!(stored.len(), runs);
    let outcomes: Vec<Outcome> =
        stored.values().flat_map(|run| run.records.iter().map(|record| record.row.outcome)).collect();
    assert!(outcomes.contains(&Outcome::Ok), "{name}: {outcomes:?}");
    // What was still on its way when the last measured request had ended is cut; nothing else may go wrong.
    let is_well = |outcome: &Outcome| matches!(outcome, Outcome::Ok | Outcome::CutAtDrain);
    assert!(outcomes.iter().all(is_well), "{name}: {outcomes:?}");
    assert_eq!(states(&lab, only), BTreeMap::from([("cached".to_owned(), runs)]), "nothing is left to do");
}

#[test]
fn the_saturation_plan_runs() {
    is_run_at_small_scale("saturation");
}

#[test]
fn the_qps_curve_runs() {
    is_run_at_small_scale("qps-curve");
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
fn every_plan_is_right_and_explains_itself() {
    let lab = Lab::new();
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&entry).unwrap();
        assert!(text.starts_with("# yaml-language-server: $schema=../schemas/plan.schema.json\n"), "{name}");
        let comments = text.lines().filter(|line| line.contains("# ") || line.trim() == "#").count();
        assert!(comments * 5 > text.lines().count(), "{name}: {comments} lines of comment");
        assert!(text.lines().all(|line| line.chars().count() <= 120), "{name} has long lines");
        assert!(text.contains("hypothesis: "), "{name}");
        let path = entry.to_str().unwrap();
        // What the methodology lint would warn of is mended, or allowed with a reason. The quickstart is a first look.
        let strict: &[&str] = if name == "quickstart" { &[] } else { &["--strict"] };
        lab.ok(&[&["check", path], strict].concat());
        lab.ok(&["preview", path]);
        assert!(readme.contains(&format!("plans/{name}.yaml")), "the README does not list {name}");
        names.push(name);
    }
    for (name, ..) in PLANS {
        assert!(names.contains(&name.to_owned()), "{name}");
    }
    assert_eq!(names.len(), PLANS.len() + 1, "{names:?}: a plan without a test");
}
