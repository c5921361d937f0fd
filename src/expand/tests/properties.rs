//! Properties of every matrix: its cells, their order and their number equal those of a naive model. All
//! written forms of a plan yield the same run ids; irrelevant edits keep the ids, and different values
//! change them.

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::naive::{Matrix, Row, matrix};
use super::plan_json;
use crate::expand::{RunId, expand, matrix as grid, order};
use crate::plan::{Format, ResolvedPlan, parse};
use crate::units::Seed;

fn read(json: &Value) -> ResolvedPlan {
    serde_json::from_value(json.clone()).expect("a plan")
}

fn whole(matrix: &Matrix) -> Value {
    plan_json(json!({ "s": matrix.json() }))
}

/// Returns the ids of a plan's runs, in order.
fn ids(plan: &ResolvedPlan) -> Vec<RunId> {
    expand(plan).expect("expands").runs.iter().map(|run| run.id).collect()
}

fn parsed(text: &str, format: Format) -> ResolvedPlan {
    let name = if format == Format::Yaml { "plan.yaml" } else { "plan.toml" };
    parse(Path::new(name), text, format).unwrap_or_else(|errors| panic!("{text}\n{errors}")).plan
}

/// Checks the text of a plan; returns the rendered errors if the plan does not pass.
fn passes(json: &Value) -> Result<(), String> {
    match parse(Path::new("plan.yaml"), &json.to_string(), Format::Yaml) {
        Ok(_) => Ok(()),
        Err(errors) => Err(errors.render(false)),
    }
}

/// Returns `value` with the keys of every table reversed, except for matrices, whose order is that of the
/// runs.
fn turned(value: &Value) -> Value {
    let Value::Object(table) = value else { return value.clone() };
    let keep = |key: &str| matches!(key, "matrix" | "sweeps");
    let one = |(key, value): (&String, &Value)| {
        let value = match (key.as_str(), value) {
            ("sweeps", Value::Object(sweeps)) => {
                sweeps.iter().map(|(name, sweep)| (name.clone(), turned(sweep))).collect()
            }
            (key, value) if keep(key) => value.clone(),
            (_, value) => turned(value),
        };
        (key.clone(), value)
    };
    Value::Object(table.iter().rev().map(one).collect())
}

/// Returns a plan as TOML, with each table on one line to keep the order of keys.
fn as_toml(plan: &Value) -> String {
    fn inline(value: &Value) -> String {
        match value {
            Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
            Value::Object(table) => {
                let entries: Vec<String> =
                    table.iter().map(|(key, value)| format!("\"{key}\" = {}", inline(value))).collect();
                format!("{{ {} }}", entries.join(", "))
            }
            scalar => scalar.to_string(),
        }
    }
    let entries = plan.as_object().expect("a table").iter();
    entries.map(|(key, value)| format!("{key} = {}\n", inline(value))).collect()
}

/// Returns the text of a plan with the axes of its sweeps under their aliases.
fn under_aliases(text: &str) -> String {
    let (head, sweeps) = text.split_at(text.find("\"sweeps\"").expect("sweeps"));
    let renamed = sweeps.replace("\"batch_size\"", "\"concurrency\"").replace("\"output_tokens\"", "\"max_tokens\"");
    format!("{head}{renamed}")
}

fn row(cell: &crate::expand::Cell) -> Row {
    cell.iter().map(|(axis, value)| (axis.to_owned(), serde_json::to_value(value).expect("JSON"))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn cells_are_those_of_the_naive_model(matrix in matrix()) {
        let plan = read(&whole(&matrix));
        let cells = grid::cells("s", &plan.sweeps["s"]);
        let Some(expected) = matrix.cells() else {
            prop_assert!(cells.is_err(), "a cell would be changed or created twice");
            return Ok(());
        };
        let cells: Vec<Row> = cells.expect("cells").iter().map(row).collect();
        prop_assert_eq!(&cells, &expected);
        let has_load = |cell: &Row| cell.iter().any(|(axis, _)| axis == "batch_size");
        if !expected.iter().all(has_load) {
            prop_assert!(expand(&plan).is_err());
            return Ok(());
        }
        let runs = expand(&plan).expect("expands").runs;
        prop_assert_eq!(runs.len(), 2 * expected.len());
        for (repeat, block) in runs.chunks(expected.len().max(1)).enumerate() {
            let order = order::block(Seed(42), "s", repeat as u32, expected.len());
            for (run, at) in block.iter().zip(order) {
                prop_assert_eq!((run.repeat as usize, &row(&run.cell)), (repeat, &expected[at]));
            }
        }
        // All axes of these plans affect the measurements, so different cells have different ids.
        let distinct: BTreeSet<RunId> = runs.iter().map(|run| run.id).collect();
        let cells: BTreeSet<String> = expected.iter().map(|row| {
            let mut row = row.clone();
            row.sort_by(|a, b| a.0.cmp(&b.0));
            format!("{row:?}")
        }).collect();
        prop_assert_eq!(distinct.len(), 2 * cells.len());
    }

    #[test]
    fn check_knows_without_cells_what_the_naive_model_finds_in_them(matrix in matrix()) {
        let told = passes(&whole(&matrix));
        prop_assert_eq!(told.is_ok(), matrix.makes_sense(), "{:?}", told);
    }

    #[test]
    fn every_form_of_a_plan_names_the_same_runs(matrix in matrix()) {
        if !matrix.makes_sense() {
            return Ok(());
        }
        let json = whole(&matrix);
        let plan = parsed(&json.to_string(), Format::Yaml);
        let named = ids(&plan);
        prop_assert_eq!(&ids(&read(&json)), &named, "as it was written");
        let resolved = serde_json::to_value(&plan).expect("JSON");
        let again = parsed(&resolved.to_string(), Format::Yaml);
        prop_assert_eq!(&again, &plan, "the resolved form is a fixed point");
        prop_assert_eq!(&ids(&parsed(&as_toml(&json), Format::Toml)), &named, "TOML");
        prop_assert_eq!(&ids(&parsed(&as_toml(&resolved), Format::Toml)), &named, "the resolved form in TOML");
        let yaml = serde_yaml::to_string(&plan).expect("YAML");
        prop_assert_eq!(&ids(&parsed(&yaml, Format::Yaml)), &named, "YAML");
        prop_assert_eq!(&ids(&parsed(&turned(&json).to_string(), Format::Yaml)), &named, "keys reversed");
        prop_assert_eq!(&ids(&parsed(&under_aliases(&json.to_string()), Format::Yaml)), &named, "aliases");
    }
}

/// Tests that equivalent texts of one sweep yield the same runs, regardless of the text around the sweep.
#[test]
fn forms_that_mean_the_same_name_the_same_runs() {
    let head = "sweepline: 1\nname: a\nendpoints: { e: { engine: mock }, f: { url: \"http://h/v1\" } }\nmodels: { m: { id: m } }\n";
    let of = |sweep: &str| ids(&parsed(&format!("{head}sweeps:\n  s:\n    {sweep}\n"), Format::Yaml));
    let set = |sweep: &str| of(sweep).into_iter().collect::<BTreeSet<_>>();
    let first =
        of("matrix: { endpoint: [e, f], batch_size: [1, 2, 4, 8], prompt_tokens: 64, output_tokens: [16, 32] }");
    for same in [
        "matrix: { endpoint: [e, f], batch_size: { from: 1, to: 8, times: 2 }, prompt_tokens: 64, output_tokens: [16, 32] }",
        "matrix: { endpoint: [e, f], batch_size: [1, { from: 2, to: 9, times: 2 }], prompt_tokens: [64], max_tokens: { from: 16, to: 32, step: 16 } }",
        "matrix: { endpoint: [e, f], concurrency: [{ value: [1, 2] }, 4.0, 8], prompt_tokens: 64, output_tokens: [16, 32] }",
        "matrix: { endpoint: [e, f], batch_size: [1, 2, 4, 8], shape: { zip: { prompt_tokens: [64, 64], output_tokens: [16, 32] } } }",
        "matrix: { endpoint: [e, f], batch_size: [1, 2, 4, 8], shape: [{ prompt_tokens: 64, output_tokens: 16 }, { prompt_tokens: 64, max_tokens: 32 }] }",
        "matrix: { endpoint: &both [e, f], batch_size: [1, 2, 4, 8], prompt_tokens: 64, output_tokens: [16, 32] }\n    when: { endpoint: *both }",
        "matrix: # all of it\n      endpoint: [e, f]\n      batch_size: [1, 2, 4, 8]\n      prompt_tokens: 64\n      output_tokens: [16, 32]",
        "matrix: { endpoint: [e, f], batch_size: [1, 2, 4, 8, 16], prompt_tokens: 64, output_tokens: [16, 32] }\n    exclude: [{ batch_size: { from: 9 } }]",
        "matrix: { endpoint: [e, f], batch_size: [1, 2, 4, 8], output_tokens: [16, 32] }\n    extend: [{ when: { endpoint: e }, with: { prompt_tokens: 64 } }, { when: { endpoint: f }, with: { prompt_tokens: 64 } }]",
    ] {
        assert_eq!(of(same), first, "{same}");
    }
    let apart =
        "matrix: { endpoint: e, batch_size: [1, 2, 4, 8], prompt_tokens: 64, output_tokens: [16, 32] }\n    add: [";
    let cell = |batch: u32, output: u32| {
        format!("{{ endpoint: f, batch_size: {batch}, prompt_tokens: 64, output_tokens: {output} }}")
    };
    let cells: Vec<String> = [1, 2, 4, 8].iter().flat_map(|batch| [cell(*batch, 16), cell(*batch, 32)]).collect();
    assert_eq!(of(&format!("{apart}{}]", cells.join(", "))), first, "cells written out");
    assert_eq!(
        set("matrix: { output_tokens: [32, 16], endpoint: [f, e], prompt_tokens: 64, batch_size: [8, 4, 2, 1] }"),
        first.iter().copied().collect(),
        "a different order of values yields the same runs in a different order"
    );
    assert_ne!(
        of("matrix: { endpoint: [e, f], batch_size: [1, 2, 4, 9], prompt_tokens: 64, output_tokens: [16, 32] }"),
        first
    );
}

#[test]
fn an_axis_that_does_not_apply_is_absent() {
    let plan = parsed(
        "sweepline: 1\nname: a\nendpoints: { e: { engine: mock }, f: { engine: mock } }\nmodels: { m: { id: m } }\nsweeps:\n  s:\n    \
         matrix: { endpoint: [e, f], temperature: { value: [0.5, 1], when: { endpoint: f } }, batch_size: 1 }\n",
        Format::Yaml,
    );
    let cells = grid::cells("s", &plan.sweeps["s"]).expect("cells");
    let temperatures: Vec<Option<String>> =
        cells.iter().map(|cell| cell.get("temperature").map(ToString::to_string)).collect();
    assert_eq!(temperatures, [None, Some("0.5".to_owned()), Some("1".to_owned())]);
    let labels = |at: usize| {
        expand(&plan).expect("expands").runs.iter().filter(|run| run.spec.labels.axes.iter().count() == at).count()
    };
    assert_eq!((labels(0), labels(1)), (1, 2), "absent, not null");
}

#[test]
fn one_run_has_one_generator() {
    let plan = |second: &str| {
        read(&plan_json(json!({
            "a": { "matrix": { "endpoint": "demo", "model": "small", "scenario": "B1", "batch_size": [1, 2] }, "engine": { "threads": 2 } },
            "b": { "matrix": { "endpoint": "demo", "model": "small", "scenario": "B1", "batch_size": [2, 3] }, "engine": { "threads": 2, "timer": second } },
        })))
    };
    assert_eq!(expand(&plan("timerfd")).expect("the same").runs.len(), 4);
    let error = expand(&plan("spin")).expect_err("another").to_string();
    assert!(
        error.starts_with(
            "sweep `b`, cell { endpoint: demo, model: small, scenario: B1, batch_size: 2 }: \
             sweep `a` contains the same run"
        ),
        "{error}"
    );
}
