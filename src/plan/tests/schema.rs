//! Tests that the schema accepts and rejects the same plans as `check`, as far as a schema can, and that
//! it describes every field for editors.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;

/// Returns the target of a schema node's reference, or the node itself if it has no reference.
fn target<'s>(root: &'s Value, node: &'s Value) -> &'s Value {
    let name = node["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/$defs/"));
    name.map_or(node, |name| &root["$defs"][name])
}

/// Calls `look` on every property of a schema, with its path.
fn properties<'s>(at: &str, node: &'s Value, look: &mut impl FnMut(&str, &'s Value)) {
    match node {
        Value::Array(items) => items.iter().for_each(|item| properties(at, item, look)),
        Value::Object(fields) => {
            for (key, value) in fields {
                let Value::Object(named) = value else { continue };
                match key.as_str() {
                    "properties" => {
                        for (name, property) in named {
                            let at = format!("{at}/{name}");
                            look(&at, property);
                            properties(&at, property, look);
                        }
                    }
                    "$defs" => named.iter().for_each(|(name, def)| properties(name, def, look)),
                    // Conditions only restrict values; they contain no descriptions.
                    "if" | "then" | "else" | "not" | "default" | "example" => {}
                    _ => properties(at, value, look),
                }
            }
            for key in ["anyOf", "oneOf", "allOf"] {
                // If the schema has its own `properties`, the properties in these branches are conditions
                // too.
                if !fields.contains_key("properties") {
                    properties(at, &node[key], look);
                }
            }
        }
        _ => {}
    }
}

/// Returns whether an editor can offer a value, here or at the target of the reference.
fn offers(root: &Value, node: &Value) -> bool {
    let here = ["examples", "enum", "const", "default"].iter().any(|key| node.get(key).is_some());
    let within =
        || ["anyOf", "oneOf"].iter().filter_map(|key| node[key].as_array()).flatten().any(|one| offers(root, one));
    let target = target(root, node);
    here || within() || (!std::ptr::eq(target, node) && offers(root, target)) || first_type(node) == "boolean"
}

/// Returns whether the value is a table or a list of tables, whose fields are described with the table.
fn is_table(root: &Value, node: &Value) -> bool {
    let node = target(root, node);
    first_type(node) == "object" || (first_type(node) == "array" && is_table(root, &node["items"]))
}

/// Returns the type that a value should have. Besides this type, the schema may allow an expression.
fn first_type(node: &Value) -> &str {
    node["type"].as_str().or_else(|| node["type"][0].as_str()).unwrap_or_default()
}

/// Scalars for which an example would add nothing to the description.
const WITHOUT_EXAMPLE: [&str; 0] = [];

#[test]
fn every_field_is_described_and_has_a_value_to_offer() {
    let schema = schema();
    let (mut bare, mut mute, mut seen) = (Vec::new(), BTreeSet::new(), 0);
    properties("", &schema, &mut |at, property| {
        seen += 1;
        if property["description"].as_str().is_none_or(|text| text.trim().len() < 10) {
            bare.push(at.to_owned());
        }
        if !is_table(&schema, property) && !offers(&schema, property) {
            mute.insert(at.to_owned());
        }
    });
    assert!(seen > 100, "{seen}");
    assert!(bare.is_empty(), "without description: {bare:#?}");
    assert_eq!(mute, BTreeSet::from(WITHOUT_EXAMPLE.map(str::to_owned)), "without example, default or choices");
}

/// Errors that a schema detects everywhere.
const SEEN: [Code; 5] = [Code::UnknownKey, Code::MissingField, Code::WrongType, Code::NoValue, Code::Version];

/// Errors that a schema cannot detect, with the reason.
const UNSEEN: [(Code, &str); 16] = [
    (Code::File, "it sees a text, not a file"),
    (Code::Syntax, "an editor reports it before it applies a schema"),
    (Code::TooLarge, "the expanded size of aliases is not visible in the text"),
    (Code::DuplicateKey, "an editor reports it before it applies a schema"),
    (Code::UnknownName, "names are declared elsewhere in the plan"),
    (Code::AxisTwice, "it depends on two names for one thing, and on excludes"),
    (Code::MissingAxis, "whether an axis is needed depends on how many entries another table has"),
    (Code::NoLoad, "required axes of a matrix may be set elsewhere"),
    (Code::DeadExclude, "it depends on the values of another table"),
    (Code::AllExcluded, "it depends on the values of another table"),
    (Code::Circle, "it follows names through the plan"),
    (Code::Contradiction, "most are between tables, or between two durations"),
    (Code::NoModelId, "it depends on the engine of an endpoint elsewhere"),
    (Code::NoEffect, "it depends on other tables"),
    (Code::PathOutside, "a path is checked part by part"),
    (Code::TooManyCells, "cells are a product of the lengths of axes"),
];

/// Returns the codes of the errors that `check` reports for a text.
fn codes(name: &Path, text: &str) -> BTreeSet<Code> {
    let checked = parse(name, text, Format::of(name).unwrap_or(Format::Yaml));
    checked.err().iter().flat_map(|errors| errors.diagnostics.iter().map(|found| found.code)).collect()
}

/// Returns the files of a folder of this repository.
fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Returns the content of a text, parsed without knowledge of plans; `None` if it is not valid YAML or
/// TOML.
fn value(path: &Path, text: &str) -> Option<Value> {
    match Format::of(path)? {
        Format::Yaml => serde_yaml::from_str(text).ok(),
        Format::Toml => ::toml::from_str(text).ok(),
    }
}

#[test]
fn plans_meet_the_schema_and_broken_ones_do_not_where_it_can_see() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for path in files("plans").into_iter().filter(|path| path.is_file()) {
        let plan = value(&path, &std::fs::read_to_string(&path).unwrap()).unwrap();
        let errors: Vec<String> =
            validator.iter_errors(&plan).map(|error| format!("{}: {error}", error.instance_path)).collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
    }
    let (mut wrong, mut refused) = (Vec::new(), 0);
    for path in files("tests/broken") {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let Some(plan) = value(&path, &text) else { continue };
        let codes = codes(&path, &text);
        let sees = codes.iter().any(|code| UNSEEN.iter().all(|(unseen, _)| unseen != code));
        let refuses = !validator.is_valid(&plan);
        refused += usize::from(refuses);
        let name = path.file_name().unwrap().display().to_string();
        // If a plan consists of several files, all errors may be in the other files. The `# expect` line then
        // names the file before the place.
        let in_another = |line: &str| line.starts_with("# expect: ") && line.split(' ').count() > 4;
        let several = plan.get("use").is_some() || text.lines().any(in_another);
        if sees && !refuses && !several && !codes.contains(&Code::Syntax) {
            wrong.push(format!("{name}: {codes:?}, but the schema accepts it"));
        }
        if refuses && codes.is_empty() {
            wrong.push(format!("{name}: `check` accepts it, but the schema does not"));
        }
    }
    println!("{refused} broken plans rejected by the schema");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(refused > 30, "{refused}");
}

/// Every table, list and value of a plan, by path.
fn nodes(at: &str, value: &Value, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| nodes(&format!("{at}/{}", key.replace('/', "~1")), value, found))
        }
        Value::Array(items) => {
            // The first element suffices, because all elements of a list have the same type.
            items.iter().enumerate().take(1).for_each(|(index, value)| nodes(&format!("{at}/{index}"), value, found))
        }
        _ => {}
    }
}

/// Returns variants of the plan with one change at `at`: a description of the change, and the plan.
fn mutants(plan: &Value, at: &str) -> Vec<(String, Value)> {
    let with = |what: &str, change: &dyn Fn(&mut Value)| {
        let mut mutant = plan.clone();
        change(mutant.pointer_mut(at).unwrap());
        (format!("{at} {what}"), mutant)
    };
    let others = match plan.pointer(at).unwrap() {
        Value::String(text) if text.ends_with('%') => vec![json!(7), json!("120%"), json!("12 %")],
        Value::String(_) => vec![json!(7), json!("0s"), json!("ftp://x/v1")],
        Value::Number(_) => vec![json!(-1), json!(0), json!("30")],
        _ => vec![json!(null), json!("text"), json!([]), json!({})],
    };
    let mut made: Vec<_> =
        others.iter().map(|other| with(&format!("= {other}"), &|value| *value = other.clone())).collect();
    if let Some(Value::Object(fields)) = plan.pointer(at) {
        made.push(with("+ nonsense", &|value| value["nonsense"] = json!(7)));
        made.extend(
            fields
                .keys()
                .map(|key| with(&format!("- {key}"), &|value| drop(value.as_object_mut().unwrap().shift_remove(key)))),
        );
    }
    made
}

#[test]
fn the_schema_and_the_check_agree_on_every_change_of_a_plan() {
    let plan: Value = serde_yaml::from_str(YAML).unwrap();
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let mut places = Vec::new();
    nodes("", &plan, &mut places);
    let (mut wrong, mut tried, mut refused, mut blind) = (Vec::new(), 0, 0, std::collections::BTreeMap::new());
    // Every 17th change; the measured suite (`SWEEPLINE_WHOLE=1`) tries each.
    let step = if std::env::var("SWEEPLINE_WHOLE").is_ok_and(|whole| whole == "1") { 1 } else { 17 };
    for (what, mutant) in places.iter().flat_map(|at| mutants(&plan, at)).step_by(step) {
        let codes = codes(Path::new("plan.yaml"), &mutant.to_string());
        tried += 1;
        match (validator.is_valid(&mutant), codes.is_empty()) {
            // In an exclude, a field with an empty list matches nothing; `check` accepts this.
            (false, true) if what.contains("/exclude/") && what.ends_with("= []") => {}
            (false, true) => wrong.push(format!("{what}: `check` accepts it, but the schema does not")),
            // No schema can detect dependencies between parts of a plan, such as the price for
            // `budget.money` or the objective of a gate.
            (true, false) if what.contains("hardware") || what == " - slo" || what.starts_with("/slo ") => {}
            (true, false) => {
                if codes.iter().any(|code| SEEN.contains(code)) {
                    wrong.push(format!("{what}: {codes:?}, but the schema accepts it"));
                }
                for code in codes {
                    blind.entry(code).or_insert_with(Vec::new).push(what.clone());
                }
            }
            (false, false) => refused += 1,
            (true, true) => {}
        }
    }
    println!("{tried} changed plans, {refused} rejected by both; detected by `check` only: {blind:#?}");
    assert!(wrong.is_empty(), "{} of {tried}: {wrong:#?}", wrong.len());
}

#[test]
fn expressions_and_fragments_leave_the_schema_content() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let check = |plan: &str| validator.is_valid(&serde_yaml::from_str::<Value>(plan).unwrap());
    let plan = "sweepline: 1\nname: a\nvars: { n: 2, mock: { slots: 4 } }\nseed: '{{ n }}'\nstream: '{{ n > 1 }}'\n\
        endpoints: { e: { engine: '{{ \"mock\" }}', mock: '{{ mock }}' } }\nmodels: { m: { id: 'm-{{ n }}' } }\n\
        phases: { measure: '{{ n }}s', fill: { for: '{{ n }}s' } }\nnonce: '{{ \"off\" }}'\n\
        sweeps: { s: { matrix: { endpoint: [e], batch_size: ['{{ n }}', 8] }, repeats: '{{ n + 1 }}' } }\n";
    assert!(codes(Path::new("x.yaml"), plan).is_empty(), "{:?}", codes(Path::new("x.yaml"), plan));
    assert!(check(plan));
    for (from, to) in
        [("'{{ n }}'", "'n'"), ("'{{ n > 1 }}'", "'yes'"), ("'{{ n }}s'", "'{ n }s'"), ("'{{ mock }}'", "'mock'")]
    {
        assert!(!check(&plan.replacen(from, to, 1)), "{from} → {to}");
    }
    let rest = "sweepline: 1\nname: a\nuse: [base.yaml]\nendpoints: { e: { hardware: { gpus: 2 } } }\n\
        models: { m: { precision: fp8 } }\nsweeps: { s: { repeats: 3 } }\n";
    assert!(check(rest));
    assert!(!check(&rest.replace("use: [base.yaml]\n", "")));
    assert!(!check(&rest.replace("gpus: 2", "gpus: 0")) && !check(&rest.replace("repeats", "repeat")));
}

#[test]
fn a_field_of_a_scenario_is_no_field_of_extra() {
    let schema = serde_json::to_value(schemars::schema_for!(crate::plan::model::scenario::Scenario)).unwrap();
    let own: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    // `documents` of a scenario is a number; the rerank field of that name is checked for each endpoint.
    let other = |field: &str| field != "documents" && crate::plan::model::extra::dialect::takes(field).is_some();
    let twice: Vec<_> = own.iter().filter(|field| other(field)).collect();
    assert!(own.len() > 20);
    assert!(
        twice.is_empty(),
        "move {twice:?} from FIELDS to REFUSED in src/plan/model/extra/dialect.rs: they are sent twice"
    );
}
