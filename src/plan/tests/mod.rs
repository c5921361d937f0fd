//! Tests of valid plans: YAML and TOML are equivalent, plans survive a round trip, and places are found.
//! `broken` contains the tests of invalid plans.

mod broken;
mod broken_matrix;
mod broken_taken;
mod compare;
mod hostile;
mod matrix;
mod reuse;
mod schema;
mod servers_page;

use std::path::Path;

use super::*;

const YAML: &str = include_str!("full.yaml");
const TOML: &str = include_str!("full.toml");

/// Reads a plan that must be valid.
fn good(text: &str, format: Format) -> Loaded {
    let name = if format == Format::Yaml { "plan.yaml" } else { "plan.toml" };
    parse(Path::new(name), text, format).unwrap_or_else(|errors| panic!("{errors}"))
}

fn steps(path: &str) -> Vec<Step> {
    path.split('/').map(|step| step.parse::<usize>().map_or_else(|_| step.into(), Step::from)).collect()
}

#[test]
fn yaml_and_toml_give_the_same_plan() {
    assert_eq!(good(YAML, Format::Yaml).plan, good(TOML, Format::Toml).plan);
}

#[test]
fn a_plan_written_as_json_reads_back() {
    let plan = good(YAML, Format::Yaml).plan;
    let json = serde_json::to_string_pretty(&plan).unwrap();
    assert_eq!(good(&json, Format::Yaml).plan, plan);
}

#[test]
fn the_full_plan_meets_its_own_schema() {
    let plan = serde_json::to_value(good(YAML, Format::Yaml).plan).unwrap();
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let errors: Vec<String> = validator.iter_errors(&plan).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

/// The tables of the full plan that must contain every key. Each is given by its type in the schema and by
/// its path in a plan, with `*` for any name.
const WHOLE: [(&str, &str); 10] = [
    ("", ""),
    ("Sweep", "sweeps/*"),
    ("Search", "sweeps/*/search"),
    ("SearchRange", "sweeps/*/search/*"),
    ("SkipIf", "sweeps/*/skip_if"),
    ("Gate", "sweeps/*/gate"),
    ("Optimize", "sweeps/*/optimize"),
    ("Compare", "sweeps/*/compare"),
    ("Budget", "budget"),
    ("Telemetry", "endpoints/*/telemetry"),
];

/// Keys that no loaded plan has, because fragments and variables are resolved during reading.
const GONE: [&str; 2] = ["use", "vars"];

/// Returns the tables at a path, with `*` for any name.
fn tables<'v>(value: &'v serde_json::Value, path: &str) -> Vec<&'v serde_json::Map<String, serde_json::Value>> {
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let Some(table) = value.as_object() else { return Vec::new() };
    match first {
        "" => vec![table],
        "*" => table.values().flat_map(|value| tables(value, rest)).collect(),
        name => table.get(name).map(|value| tables(value, rest)).unwrap_or_default(),
    }
}

#[test]
fn the_full_plan_has_every_key_of_plans_and_sweeps() {
    let plan = serde_json::to_value(good(YAML, Format::Yaml).plan).unwrap();
    let schema = serde_json::to_value(schema()).unwrap();
    let mut missing = Vec::new();
    for (name, path) in WHOLE {
        let table = if name.is_empty() { &schema } else { &schema["$defs"][name] };
        let keys = table["properties"].as_object().unwrap_or_else(|| panic!("{name} is not a table")).keys();
        let is_there = |key: &&String| tables(&plan, path).iter().any(|table| table.contains_key(*key));
        missing.extend(
            keys.filter(|key| !is_there(key) && !GONE.contains(&key.as_str())).map(|key| format!("{path}: {key}")),
        );
    }
    assert_eq!(missing, [""; 0], "add them to full.yaml and full.toml");
}

#[test]
fn the_schema_file_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/plan.schema.json");
    if std::env::var_os("SWEEPLINE_BLESS").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, schema_text()).unwrap();
    }
    let stored = std::fs::read_to_string(&file).unwrap_or_default();
    let how = "run `sweepline schema plan > schemas/plan.schema.json`, or this test with SWEEPLINE_BLESS=1";
    assert!(stored == schema_text(), "schemas/plan.schema.json is out of date with the types: {how}");
}

#[test]
fn matrices_have_one_form() {
    let plan = good(YAML, Format::Yaml).plan;
    let axes = |sweep: &str| plan.sweeps[sweep].matrix.keys().cloned().collect::<Vec<_>>();
    assert_eq!(axes("saturation"), ["endpoint", "model", "scenario", "batch_size"]);
    assert_eq!(axes("ladder"), ["model", "endpoint", "scenario", "qps", "temperature"]);
    assert!(plan.sweeps["saturation"].exclude.iter().all(|exclude| exclude.contains_key("batch_size")));

    let least = "sweepline: 1\nname: a\nendpoints: { e: { engine: mock } }\nmodels: { m: { id: m } }\n\
                 sweeps: { s: { matrix: { qps: 5 } } }\n";
    let plan = good(least, Format::Yaml).plan;
    let matrix = &plan.sweeps["s"].matrix;
    assert_eq!(matrix.keys().collect::<Vec<_>>(), ["endpoint", "model", "scenario", "qps"]);
    assert_eq!(matrix["scenario"], Axis::one(Scalar::Text("B1".to_owned())));
    let only = good(&format!("{least}scenarios: {{ long: {{ prompt_tokens: 900 }} }}\n"), Format::Yaml);
    assert_eq!(only.plan.sweeps["s"].matrix["scenario"], Axis::one(Scalar::Text("long".to_owned())));
    let place = only.place(&steps("sweeps/s/matrix/scenario/0")).unwrap();
    assert_eq!(place.to_string(), "plan.yaml:6:14", "where it is declared");
}

#[test]
fn numbers_stay_what_was_written() {
    let plan = good(YAML, Format::Yaml).plan;
    let text = serde_json::to_value(&plan).unwrap();
    assert_eq!(plan.endpoints["vllm"].hardware.as_ref().unwrap().cost_per_hour(), Some(31.2));
    assert_eq!(plan.models["llama-70b"].parameters.unwrap().to_string(), "70600000000");
    assert_eq!(text["sweeps"]["ladder"]["matrix"]["qps"], serde_json::json!([0.5, 1, 20]));
    let server = &plan.endpoints["vllm"].server;
    assert_eq!(server["version"], Fact::One(Scalar::Text("0.33.0".to_owned())));
}

#[test]
fn yaml_means_what_it_looks_like() {
    let plan = good(
        "sweepline: 1\nname: 'yes'\nendpoints: { e: { engine: mock, server: { a: on, b: '5', c: 017, d: 1_000, e: 5 } } }\n\
         models: { m: { id: m } }\nsweeps: { s: { matrix: { qps: 5 } } }\n",
        Format::Yaml,
    )
    .plan;
    let server = serde_json::to_value(&plan.endpoints["e"].server).unwrap();
    assert_eq!(server, serde_json::json!({ "a": "on", "b": "5", "c": "017", "d": "1_000", "e": 5 }));
}

#[test]
fn anchors_and_merges_are_followed() {
    let loaded = good(
        "sweepline: 1\nname: a\nendpoints:\n  e: &base { engine: mock, mock: { slots: 4 } }\n  f: { <<: *base, api: completions }\n\
         models: { m: { id: m } }\nsweeps: { s: { matrix: { endpoint: [e, f], qps: 5 } } }\n",
        Format::Yaml,
    );
    assert_eq!(loaded.plan.endpoints["f"].mock.as_ref().unwrap().slots, 4);
    assert_eq!(loaded.plan.endpoints["f"].api, Api::Completions);
}

#[test]
fn places_point_at_what_was_written() {
    let yaml = good(YAML, Format::Yaml);
    let place = |path: &str| yaml.place(&steps(path)).unwrap().to_string();
    assert_eq!(place("endpoints/vllm/url"), "plan.yaml:9:10");
    assert_eq!(place("sweeps/saturation/matrix/endpoint/1"), "plan.yaml:50:24");
    // An axis is found by its primary name although the plan uses the alternative name, and a single value is
    // found as the first element of a list.
    assert_eq!(place("sweeps/saturation/matrix/batch_size/3"), "plan.yaml:53:30");
    assert_eq!(place("sweeps/saturation/matrix/model/0"), "plan.yaml:51:14");
    // A value that was not written is found at its nearest written parent.
    assert_eq!(place("sweeps/ladder/matrix/turns/0"), "plan.yaml:59:5");
    assert_eq!(yaml.place(&steps("nothing")), None);
    let toml = good(TOML, Format::Toml);
    assert_eq!(toml.place(&steps("sweeps/saturation/matrix/batch_size/3")).unwrap().to_string(), "plan.toml:97:25");
}

#[test]
fn files_that_cannot_be_read_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let message = |name: &str, bytes: Option<&[u8]>| {
        let path = dir.path().join(name);
        if let Some(bytes) = bytes {
            std::fs::write(&path, bytes).unwrap();
        }
        load(&path).unwrap_err().render(false).replace(&dir.path().display().to_string(), "DIR")
    };
    insta::assert_snapshot!(
        [
            message("plan.json", Some(b"{}")),
            message("missing.yaml", None),
            message("latin.yaml", Some(b"sweepline: 1\nname: caf\xe9\n")),
        ]
        .join("\n\n")
    );
    std::fs::write(dir.path().join("plan.yml"), YAML).unwrap();
    assert!(load(&dir.path().join("plan.yml")).is_ok());
}

#[test]
fn byte_order_marks_and_carriage_returns_do_no_harm() {
    for (text, format) in [(YAML, Format::Yaml), (TOML, Format::Toml)] {
        let plan = good(text, format).plan;
        let crlf = text.replace('\n', "\r\n");
        assert_eq!(good(&crlf, format).plan, plan);
        let marked = format!("\u{feff}{text}");
        assert_eq!(good(&marked, format).plan, plan);
        let place = |text: &str| good(text, format).place(&steps("endpoints/vllm/url")).unwrap().line;
        assert_eq!((place(&crlf), place(&marked)), (place(text), place(text)));
    }
    let text = "sweepline: 1\r\nname: é\r\nphases: { fill: 1s, \"é\": 1, b: 2 }\r\n";
    let errors = parse(Path::new("x.yaml"), text, Format::Yaml).unwrap_err();
    let last = errors.place(errors.diagnostics.last().unwrap()).unwrap();
    assert_eq!((last.line, last.column), (3, 29), "{errors}");
}
