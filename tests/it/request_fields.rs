//! Tests fields of a request other than its text: another name for the length field, another model
//! id, and no temperature.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use lab::Lab;
use lab::mock::Mock;
use lab::sweeps::honest;

const PLAN: &str = "\
sweepline: 1
name: fields
models: { m: { id: base-model } }
endpoints: { e: { url: URL, api: completions } }
scenarios:
  plain: { prompt_tokens: 16, output_tokens: 3 }
  newer: { prompt_tokens: 16, max_completion_tokens: 3, temperature: omit }
  sampled: { prompt_tokens: 16, output_tokens: 3, temperature: 0.7, top_p: 0.9 }
  back: { base: sampled, top_p: omit, output_tokens: 4 }
  adapter: { base: newer, model: sql-lora, output_tokens: 5, temperature: 0 }
phases: { fill: 0s, stabilize: 0s, measure: 200ms, drain: 20s }
sweeps:
  s: { matrix: { scenario: [plain, newer, sampled, back, adapter], batch_size: [1] } }
  axis: { matrix: { scenario: [plain], temperature: [0.5, omit], batch_size: [2] } }
";

/// Returns the request of each run, by scenario and axes: one body for all requests, without its text.
fn sent(lab: &Lab, mock: &Mock) -> BTreeMap<String, Value> {
    let mut names = BTreeMap::new();
    for run in lab.runs().into_values() {
        let axes = run.json.pointer("/spec/labels/axes").and_then(Value::as_object).cloned().unwrap_or_default();
        let scenario = run.json.pointer("/spec/labels/scenario").unwrap().as_str().unwrap();
        let id = run.dir.file_name().unwrap().to_str().unwrap().to_owned();
        let with_axis = |name, (axis, value): (&String, &Value)| format!("{name} {axis}={value}");
        names.insert(id, axes.iter().fold(scenario.to_owned(), with_axis));
    }
    let mut bodies: BTreeMap<String, Value> = BTreeMap::new();
    for line in mock.log_now() {
        let Some(id) = line["request_id"].as_str() else { continue };
        let Some((_, name)) = names.iter().find(|(run, _)| id.starts_with(run.as_str())) else { continue };
        let mut body: Value = serde_json::from_str(line["request"].as_str().unwrap()).unwrap();
        let fields = body.as_object_mut().unwrap();
        ["prompt", "stream", "stream_options"].iter().for_each(|field| drop(fields.remove(*field)));
        let known = bodies.entry(name.clone()).or_insert_with(|| body.clone());
        assert_eq!(*known, body, "{name}");
    }
    bodies
}

#[test]
fn each_arrives_as_it_is_said_and_nothing_where_it_is_omitted() {
    let lab = Lab::new();
    let mut mock = Mock::start(&["--ttft", "10ms"]);
    lab.write("plan.yaml", &PLAN.replace("URL", &format!("http://127.0.0.1:{}/v1", mock.port)));
    honest(&lab.run(&["run", "plan.yaml"]));
    let again = lab.run(&["run", "plan.yaml"]);
    assert!(again.stderr.contains("nothing to do"), "{}", again.stderr);
    mock.terminate();
    let sent = sent(&lab, &mock);
    let of = |name: &str| sent.get(name).unwrap_or_else(|| panic!("{name} is not in {:?}", sent.keys())).clone();
    assert_eq!(of("plain"), json!({ "model": "base-model", "max_tokens": 3, "temperature": 0 }));
    assert_eq!(of("newer"), json!({ "model": "base-model", "max_completion_tokens": 3 }));
    assert_eq!(of("sampled"), json!({ "model": "base-model", "max_tokens": 3, "temperature": 0.7, "top_p": 0.9 }));
    assert_eq!(of("back"), json!({ "model": "base-model", "max_tokens": 4, "temperature": 0.7 }));
    assert_eq!(of("adapter"), json!({ "model": "sql-lora", "max_tokens": 5, "temperature": 0 }));
    let half = of("plain temperature=\"0.5\"");
    assert_eq!(half, json!({ "model": "base-model", "max_tokens": 3, "temperature": 0.5 }));
    let none = of("plain temperature=\"omit\"");
    assert_eq!(none, json!({ "model": "base-model", "max_tokens": 3 }));
    // The frozen plan gives the same runs.
    lab.ok(&["freeze", "plan.yaml", "-o", "frozen.yaml"]);
    let frozen = lab.run(&["run", "frozen.yaml"]);
    assert!(frozen.stderr.contains("nothing to do"), "{}", frozen.stderr);
}

#[test]
fn a_length_is_asked_for_once_and_a_model_has_an_id() {
    let lab = Lab::new();
    let text = "\
sweepline: 1
name: wrong
models: { m: { id: m } }
endpoints: { e: { engine: mock } }
scenarios:
  twice: { prompt_tokens: 16, output_tokens: 3, max_completion_tokens: 4 }
  beside: { lengths: chat, max_completion_tokens: 4 }
  nobody: { model: '' }
  word: { temperature: none }
sweeps:
  s: { matrix: { scenario: [twice, beside, nobody, word], batch_size: [1] } }
  both: { matrix: { scenario: [nobody], batch_size: [1], output_tokens: [8], max_completion_tokens: [8, 16] } }
";
    lab.write("plan.yaml", text);
    let ended = lab.run(&["check", "plan.yaml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    for part in [
        "`output_tokens` and `max_completion_tokens` of scenario `twice` both set the number of requested tokens",
        "keep one of the two fields: the field that you keep determines the name under which the length is sent",
        "`max_completion_tokens` and `lengths` of scenario `beside` both set the length of a request",
        "`model` of scenario `nobody` is empty",
        "a cell has `max_completion_tokens: 8` and `output_tokens: 8`: both set the number of requested tokens",
        "a number, or omit",
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
}
