//! Tests the broken plans in `tests/broken/`. Each lists its errors in its first lines, and `check`
//! reports exactly these. The snapshots next to the plans contain the output for users; read them aloud
//! before you accept a change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A code and its expected place, `E012 3:5`; without a place if the whole file is rejected.
type Expected = Vec<String>;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken")
}

/// Returns every broken plan; files in subfolders are fragments, not plans.
fn plans() -> Vec<String> {
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap());
    let mut names: Vec<String> = files
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Returns the errors that the first lines of a broken plan list for `check`, sorted.
fn expected(name: &str) -> Expected {
    let text = String::from_utf8_lossy(&fs::read(folder().join(name)).unwrap()).into_owned();
    let mut lines: Expected =
        text.lines().map_while(|line| line.strip_prefix("# expect: ")).map(str::to_owned).collect();
    assert!(!lines.is_empty(), "{name} does not list its errors");
    lines.sort();
    lines
}

/// Returns the additional arguments of `check` that a plan specifies in a line `# args: --set a=b`.
fn arguments(name: &str) -> Vec<String> {
    let text = String::from_utf8_lossy(&fs::read(folder().join(name)).unwrap()).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("# args: ")).unwrap_or_default().to_owned();
    line.split_whitespace().map(str::to_owned).collect()
}

fn check(name: &str, more: &[&str]) -> Output {
    let mut command = Command::new(lab::program());
    command.arg("check").arg(name).args(arguments(name)).args(more).current_dir(folder()).env("NO_COLOR", "1");
    command.output().unwrap()
}

/// Returns the errors that `check` reports, in the form of [`expected`]; lints are not errors.
fn found(name: &str) -> Expected {
    let output = check(name, &["--format", "json"]);
    assert_eq!(output.status.code(), Some(2), "{name}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mistakes = json["diagnostics"].as_array().unwrap().iter().filter(|one| one["severity"] == "error");
    let line = |one: &serde_json::Value| {
        let code = one["code"].as_str().unwrap();
        let file = one["file"].as_str().unwrap();
        let place = match (one["line"].as_u64(), one["column"].as_u64()) {
            (Some(line), Some(column)) => format!(" {line}:{column}"),
            _ => String::new(),
        };
        // An error in a fragment or on the command line is listed with its file.
        let file = if file == name { String::new() } else { format!(" {file}") };
        format!("{code}{file}{place}")
    };
    let mut found: Expected = mistakes.map(line).collect();
    found.sort();
    found
}

#[test]
fn each_broken_plan_names_every_mistake_in_it() {
    let names = plans();
    assert!(names.len() >= 60, "{} broken plans", names.len());
    let wrong: Vec<_> = names.iter().filter(|name| expected(name) != found(name)).collect();
    for name in &wrong {
        eprintln!("{name}:\n  expected {:?}\n  found    {:?}", expected(name), found(name));
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn broken_plans_read_well() {
    for name in plans() {
        let output = check(&name, &[]);
        assert!(output.stdout.is_empty(), "{name}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!said.contains("panicked"), "{name}: {said}");
        insta::with_settings!({ snapshot_path => "../broken/snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name.clone(), said);
        });
    }
}

/// Every error has a remedy.
#[test]
fn every_mistake_has_a_remedy() {
    for name in plans() {
        let json: serde_json::Value = serde_json::from_slice(&check(&name, &["--format", "json"]).stdout).unwrap();
        for one in json["diagnostics"].as_array().unwrap() {
            assert!(one["remedy"].as_str().is_some_and(|remedy| !remedy.is_empty()), "{name}: {one}");
        }
    }
}
