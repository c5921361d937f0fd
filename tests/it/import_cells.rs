//! Tests public examples of other tools, under `tests/import/TOOL/`: each becomes the cells that its tool
//! would measure.
//!
//! `NAME.cells` is next to a file. It is written by hand according to the tool's own rules and contains
//! `import:` with the other arguments, a line with columns, and a line for each cell. A column is an axis,
//! `runs` (the number of runs of the cell), or a path into the plan: `scenario.prompt_tokens`, `model.id`,
//! `endpoint.engine`, `sweep.search`, `phases.measure`; a bare name is looked up in this order. `-` is an
//! empty value.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use lab::Lab;

fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The content of a `.cells` file.
struct Expected {
    typed: Vec<String>,
    columns: Vec<String>,
    cells: Vec<Vec<String>>,
}

fn expected(text: &str) -> Expected {
    let typed = text.lines().find_map(|line| line.strip_prefix("import:")).unwrap_or_default();
    let mut lines = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#') && !line.starts_with("import:"))
        .map(|line| line.split(" | ").map(|part| part.trim().to_owned()).collect::<Vec<_>>());
    let columns = lines.next().expect("a line with columns");
    Expected { typed: shlex::split(typed).unwrap(), columns, cells: lines.collect() }
}

/// Returns a value as a cell of a table.
fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// Returns a column's value for one run of `preview`.
fn value(column: &str, run: &Value, plan: &Value) -> String {
    let cell = &run["cell"];
    let entry = |table: &str| {
        let axis = table.trim_end_matches('s');
        let only = || plan[table].as_object().and_then(|all| all.keys().next().cloned());
        let name = cell[axis].as_str().map(str::to_owned).or_else(only).unwrap_or_default();
        plan[table][name.as_str()].clone()
    };
    let sweep = &plan["sweeps"][run["sweep"].as_str().unwrap()];
    let inside = |table: &Value, path: &str| path.split('.').try_fold(table.clone(), |at, key| at.get(key).cloned());
    let named = match column.split_once('.') {
        Some(("scenario", path)) => Some(inside(&entry("scenarios"), path)),
        Some(("model", path)) => Some(inside(&entry("models"), path)),
        Some(("endpoint", path)) => Some(inside(&entry("endpoints"), path)),
        Some(("sweep", path)) => Some(inside(sweep, path)),
        Some(("phases", path)) => Some(inside(&sweep["phases"], path).or_else(|| inside(&plan["phases"], path))),
        Some(("plan", path)) => Some(inside(plan, path)),
        _ => None,
    };
    if let Some(named) = named {
        return shown(named.as_ref());
    }
    let tables = [cell.clone(), entry("scenarios"), entry("models"), entry("endpoints"), sweep.clone()];
    // The axis of a server flag is one key of the cell, even if it contains dots.
    let found = |table: &Value| table.get(column).cloned().or_else(|| inside(table, column));
    shown(tables.iter().find_map(found).as_ref())
}

/// Returns the cells of a plan, sorted.
fn cells(lab: &Lab, columns: &[String]) -> Vec<Vec<String>> {
    let preview = lab.ok(&["preview", "plan.yaml", "--format", "json"]).json();
    let text = std::fs::read_to_string(lab.path().join("plan.yaml")).unwrap();
    let plan: Value = serde_yaml::from_str(&text).unwrap();
    let mut counted: BTreeMap<String, (Value, usize)> = BTreeMap::new();
    for run in preview["runs"].as_array().unwrap() {
        let key = format!("{} {}", run["sweep"], run["cell"]);
        counted.entry(key).or_insert((run.clone(), 0)).1 += 1;
    }
    let row = |(run, count): &(Value, usize)| {
        let one = |column: &String| if column == "runs" { count.to_string() } else { value(column, run, &plan) };
        columns.iter().map(one).collect::<Vec<_>>()
    };
    let mut rows: Vec<Vec<String>> = counted.values().map(row).collect();
    rows.sort();
    rows
}

/// Imports examples of one tool; returns the number of all.
fn examples(tool: &str) -> usize {
    let all = files(&home().join(tool));
    let mut count = 0;
    for path in all.iter().filter(|path| path.extension().is_some_and(|ending| ending == "cells")) {
        count += 1;
        // The plain suite imports two examples of each tool.
        if count > 2 && !lab::is_whole() {
            continue;
        }
        let lab = Lab::new();
        for file in &all {
            std::fs::copy(file, lab.path().join(file.file_name().unwrap())).unwrap();
        }
        let source = all.iter().find(|other| *other != path && other.file_stem() == path.file_stem());
        let source = source.unwrap_or_else(|| panic!("{}: no such file next to it", path.display()));
        let name = source.file_name().unwrap().to_str().unwrap();
        let mut expected = expected(&std::fs::read_to_string(path).unwrap());
        let typed: Vec<&str> = expected.typed.iter().map(String::as_str).collect();
        let ended = lab.run(&[&["import", name, "-o", "plan.yaml"], &typed[..]].concat());
        assert_eq!(ended.code, Some(0), "{tool}/{name}: {}", ended.stderr);
        assert!(ended.stderr.starts_with("import: "), "{tool}/{name}: {}", ended.stderr);
        let found = cells(&lab, &expected.columns);
        expected.cells.sort();
        let plan = || std::fs::read_to_string(lab.path().join("plan.yaml")).unwrap();
        assert_eq!(found, expected.cells, "{tool}/{name}: {:?}\n{}", expected.columns, plan());
        if lab::is_whole() {
            lab.ok(&["check", "plan.yaml"]);
            let again = lab.run(&[&["import", name, "--quick", "-o", "quick.yaml"], &typed[..]].concat());
            assert_eq!(again.code, Some(0), "{tool}/{name} --quick: {}", again.stderr);
            lab.ok(&["check", "quick.yaml"]);
        }
    }
    count
}

/// Each tool has five examples, and each example becomes the cells in its `.cells` file.
#[test]
fn public_examples_become_the_cells_that_their_owners_measure() {
    for folder in files(&home()).into_iter().filter(|path| path.is_dir()) {
        let tool = folder.file_name().unwrap().to_str().unwrap();
        let count = examples(tool);
        assert!(count >= 5, "{tool} has {count} examples");
    }
}
