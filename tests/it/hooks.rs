//! Hooks of a plan: what they are told, when they happen, what their failure means, what is recorded of them.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};
use timed_test::timed_test;

use super::lab::{Ended, Lab, wait_for};

/// A plan whose mock `m` has these further fields; `axes` and `repeats` of its one sweep.
fn plan(endpoint: &str, axes: &str, repeats: u32) -> String {
    format!(
        "\
sweepline: 1
name: hooked
endpoints:
  m: {{ engine: mock, {endpoint} }}
models: {{ tiny: {{ id: mock }} }}
scenarios: {{ short: {{ base: B1, output_tokens: 8 }} }}
phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 200ms }}, drain: 10s }}
validity: {{ client_late: {{ suspect: 100%, invalid: 100% }} }}
sweeps:
  s: {{ matrix: {{ {axes} }}, repeats: {repeats} }}
"
    )
}

const MOCK: &str = "mock: { ttft: 5ms, itl: 1ms }";

fn lab(plan: &str) -> Lab {
    let lab = Lab::new();
    lab.write("plan.yaml", plan);
    lab
}

/// Writes a program into the lab's folder.
fn program(lab: &Lab, name: &str, lines: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = lab.write(name, &format!("#!/bin/sh\n{lines}\n"));
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn run(lab: &Lab, args: &[&str]) -> Ended {
    lab.run(&[&["run", "plan.yaml"], args].concat())
}

fn hooks(run: &Value) -> Vec<(&str, &str, &str)> {
    let hooks = run["facts"]["hooks"].as_array().map(Vec::as_slice).unwrap_or_default();
    hooks
        .iter()
        .map(|hook| {
            let text = |key: &str| hook[key].as_str().unwrap();
            (text("when"), text("what"), text("outcome"))
        })
        .collect()
}

#[timed_test]
fn hooks_happen_around_runs_and_cells_and_are_told_their_circumstances() {
    let lab = lab(&plan(
        &format!(
            "{MOCK}, hooks: {{ before_cell: {{ command: [./note.sh, '{{{{ model.id }}}}'] }}, before_run: [{{ command: [./note.sh] }}, {{ request: POST /reset_prefix_cache }}], after_run: {{ command: [./note.sh, a b] }}, after_cell: {{ command: [./note.sh] }} }}"
        ),
        "batch_size: [1, 2]",
        2,
    ));
    program(&lab, "note.sh", r#"echo "$SWEEPLINE_HOOK $SWEEPLINE_AXES $SWEEPLINE_REPEAT $SWEEPLINE_RUN_ID $SWEEPLINE_ENDPOINT $SWEEPLINE_SWEEP $SWEEPLINE_URL|$*" | tee -a notes"#);
    lab.ok(&["run", "plan.yaml"]);
    let notes = fs::read_to_string(lab.path().join("notes")).unwrap();
    let mut seen: Vec<Vec<String>> = Vec::new();
    for line in notes.lines() {
        let (told, arguments) = line.split_once('|').unwrap();
        let told: Vec<&str> = told.split(' ').collect();
        let axes: Value = serde_json::from_str(told[1]).unwrap();
        let run = &lab.runs()[told[3]].json;
        assert_eq!(run["spec"]["load"]["closed"]["batch_size"], axes["batch_size"], "{line}");
        assert_eq!((told[4], told[5], axes["endpoint"].as_str()), ("m", "s", Some("m")));
        assert!(told[6].starts_with("http://127.0.0.1:") && told[6].ends_with("/v1"), "{line}");
        assert_eq!(run["spec"]["repeat"].to_string(), told[2]);
        let expected = match told[0] {
            "before_cell" => "mock",
            "after_run" => "a b",
            _ => "",
        };
        assert_eq!(arguments, expected);
        seen.push([told[3], told[0]].map(str::to_owned).to_vec());
    }
    // Of four runs each has its own two; of two cells each its own.
    let of = |point: &str| seen.iter().filter(|entry| entry[1] == point).count();
    assert_eq!(["before_cell", "before_run", "after_run", "after_cell"].map(of), [2, 4, 4, 2], "{notes}");
    // In the order of the execution: the first run of a cell begins with it, the last one ends with it.
    for pair in seen.windows(2) {
        if pair[0][1] == "before_cell" {
            assert_eq!((&pair[1][0], pair[1][1].as_str()), (&pair[0][0], "before_run"));
        }
        if pair[1][1] == "after_cell" {
            assert_eq!((&pair[0][0], pair[0][1].as_str()), (&pair[1][0], "after_run"));
        }
    }
    for run in lab.runs().values() {
        let hooks = hooks(&run.json);
        assert!(hooks.contains(&("before_run", "POST /reset_prefix_cache", "ok")), "{hooks:?}");
        assert!(hooks.contains(&("after_run", "./note.sh 'a b'", "ok")), "{hooks:?}");
        let recorded = &run.json["facts"]["hooks"];
        assert_eq!((&recorded[hooks.len() - 1]["exit_code"], recorded[0]["took_ns"].as_u64() > Some(0)), (&json!(0), true));
        assert!(recorded[0]["output"].as_str().unwrap().contains(" m s http://"), "{recorded}");
        assert_eq!(run.json["verdict"]["state"], Value::Null);
    }
}
