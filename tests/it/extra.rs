//! Tests additional fields of a request's body, as received by the server.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use lab::Lab;
use lab::mock::Mock;
use lab::sweeps::honest;

/// One mock under the names of three engines.
const PLAN: &str = "\
sweepline: 1
name: extra
models: { m: { id: m } }
endpoints:
  vllm: { url: URL, engine: vllm, resource: a }
  llama: { url: URL, engine: llamacpp, resource: b, extra: { route: { to: [1, 0.1, fast] }, seed: 1 } }
  other: { url: URL, resource: c, api: completions }
scenarios:
  base:
    prompt_tokens: 16
    output_tokens: 2
    stop: ['###', \"a \\\"quoted\\\" end\"]
    extra: { top_k: 20, seed: 9007199254740993, vllm: { min_p: 0.05 } }
  s:
    base: base
    extra:
      llamacpp: { cache_prompt: false }
      vllm: { response_format: { type: json_schema, json_schema: { zebra: 1, apple: true } } }
  plain: { prompt_tokens: 16, output_tokens: 2 }
phases: { fill: 0s, stabilize: 0s, measure: 200ms, drain: 20s }
sweeps:
  s: { matrix: { endpoint: [vllm, llama, other], scenario: [s, plain], batch_size: [1] } }
";

/// Returns the bodies that a server received as text, one for each endpoint and scenario, by name.
fn bodies(lab: &Lab, mock: &Mock) -> BTreeMap<(String, String), Vec<String>> {
    let mut names = BTreeMap::new();
    for run in lab.runs().into_values() {
        let label = |path: &str| run.json.pointer(path).unwrap().as_str().unwrap().to_owned();
        let id = run.dir.file_name().unwrap().to_str().unwrap().to_owned();
        names.insert(id, (label("/spec/endpoint/name"), label("/spec/labels/scenario")));
    }
    let mut bodies: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for line in mock.log_now() {
        let Some(id) = line["request_id"].as_str() else { continue };
        let Some((_, name)) = names.iter().find(|(run, _)| id.starts_with(run.as_str())) else { continue };
        bodies.entry(name.clone()).or_default().push(line["request"].as_str().unwrap().to_owned());
    }
    bodies
}

/// Returns the fields of a body that not every request has.
fn further(body: &str) -> Value {
    let mut body: Value = serde_json::from_str(body).unwrap();
    let fields = body.as_object_mut().unwrap();
    let all = ["model", "messages", "prompt", "max_tokens", "temperature", "stream", "stream_options", "ignore_eos"];
    all.iter().for_each(|name| drop(fields.remove(*name)));
    body
}

#[test]
fn further_fields_arrive_as_written_and_only_where_they_are_meant() {
    let lab = Lab::new();
    let mut mock = Mock::start(&[]);
    lab.write("plan.yaml", &PLAN.replace("URL", &format!("http://127.0.0.1:{}/v1", mock.port)));
    honest(&lab.run(&["run", "plan.yaml"]));
    mock.terminate();
    let bodies = bodies(&lab, &mock);
    assert_eq!(bodies.len(), 6, "{:?}", bodies.keys());
    let stop = json!(["###", "a \"quoted\" end"]);
    let schema = json!({ "type": "json_schema", "json_schema": { "zebra": 1, "apple": true } });
    let seed = 9_007_199_254_740_993u64;
    let vllm = json!({ "stop": stop, "top_k": 20, "seed": seed, "min_p": 0.05, "response_format": schema });
    let route = json!({ "to": [1, 0.1, "fast"] });
    let llama = json!({ "stop": stop, "top_k": 20, "seed": seed, "cache_prompt": false, "route": route });
    let expected = [
        (("vllm", "s"), vllm),
        (("llama", "s"), llama),
        (("other", "s"), json!({ "stop": stop, "top_k": 20, "seed": seed })),
        (("vllm", "plain"), json!({})),
        (("llama", "plain"), json!({ "seed": 1, "route": route })),
        (("other", "plain"), json!({})),
    ];
    for ((endpoint, scenario), fields) in expected {
        let bodies = &bodies[&(endpoint.to_owned(), scenario.to_owned())];
        assert!(bodies.iter().all(|body| further(body) == fields), "{endpoint} {scenario}: {}", bodies[0]);
    }
    // All digits and the order are kept.
    let raw = &bodies[&("vllm".to_owned(), "s".to_owned())][0];
    for part in ["\"min_p\":0.05", "\"seed\":9007199254740993", "{\"zebra\":1,\"apple\":true}"] {
        assert!(raw.contains(part), "{part}: {raw}");
    }
}

#[test]
fn each_further_field_is_part_of_what_a_run_is() {
    let lab = Lab::new();
    let ids = |text: &str| -> Vec<String> {
        lab.write("plan.yaml", &text.replace("URL", "http://127.0.0.1:9/v1"));
        let preview = lab.ok(&["preview", "plan.yaml", "--format", "json"]).json();
        preview["runs"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
    };
    let before = ids(PLAN);
    // The text in the plan, its replacement, and how many of the six runs change.
    let changes = [
        ("top_k: 20", "top_k: 21", 3),
        ("top_k: 20", "top_k: 20.0", 0),
        ("top_k: 20, seed: 9007199254740993", "seed: 9007199254740993, top_k: 20", 0),
        ("min_p: 0.05", "min_p: 0.06", 1),
        ("cache_prompt: false", "cache_prompt: true", 1),
        ("zebra: 1, apple: true", "apple: true, zebra: 1", 1),
        ("fast]", "slow]", 2),
        ("seed: 1 }", "seed: 2 }", 1),
        ("'###', ", "'##', ", 3),
    ];
    for (old, new, others) in changes {
        assert_eq!(PLAN.matches(old).count(), 1, "{old}");
        let after = ids(&PLAN.replace(old, new));
        assert_eq!(after.iter().filter(|id| !before.contains(id)).count(), others, "{old} → {new}");
    }
}
