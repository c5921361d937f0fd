//! Tests the methodology lint as shown by the program: text, JSON, exit codes, and the single line of
//! `run` and `preview`.

use serde_json::{Value, json};

use lab::Lab;

/// A hasty plan.
const HASTY: &str = r#"sweepline: 1
name: hasty
hypothesis: vLLM serves more total tokens per second.
nonce: off
endpoints:
  vllm:
    url: http://127.0.0.1:8000/v1
    engine: vllm
    hardware: { gpu: H100-SXM-80GB, gpus: 8 }
    server: { version: 0.9.2, tensor_parallel: 8, flags: { max_num_seqs: 512 } }
  sglang: { url: "http://node-b:30000/v1", engine: sglang, hardware: { gpu: H100-SXM-80GB, gpus: 4 } }
models:
  llama-70b: { id: meta-llama/Llama-3.1-70B-Instruct }
phases: { fill: 2s, stabilize: 3s, measure: 30s, drain: 10s }
slo: { ttft: { p99: 500ms } }
allow: [{ code: M018, because: the client is small }, { code: M004, because: the service sends one length }]
compare: { by: endpoint, baseline: vllm, metrics: [output_throughput, ttft_p99] }
sweeps:
  small: { matrix: { endpoint: [vllm, sglang], scenario: [B1], batch_size: [1, 8] } }
  large: { matrix: { endpoint: [vllm, sglang], scenario: [B1], batch_size: [64, 128] } }
"#;

/// The same plan, written with care.
const CAREFUL: &str = r#"sweepline: 1
name: careful
hypothesis: vLLM serves more output tokens per second at 5 qps and below.
endpoints:
  vllm:
    url: http://node-a:8000/v1
    engine: vllm
    hardware: &h100
      { gpu: H100-SXM-80GB, gpus: 8, memory: 80GB HBM3, interconnect: nvlink, network: 25GbE, storage: local NVMe }
    server:
      version: 0.33.0
      tensor_parallel: 8
      pipeline_parallel: 1
      attention_backend: flashinfer
      scheduler: chunked_prefill
      flags: { max_num_seqs: 256 }
  sglang:
    url: http://node-b:30000/v1
    engine: sglang
    hardware: *h100
    server:
      version: 0.5.1
      tensor_parallel: 8
      pipeline_parallel: 1
      attention_backend: flashinfer
      scheduler: lpm
      flags: { max_running_requests: 256 }
models:
  llama-70b: { id: meta-llama/Llama-3.1-70B-Instruct, precision: bf16, tokenizer: server }
phases: { measure: { for: 310s, min_requests: 368, at_most: 10m } }
slo: { ttft: { p99: 500ms } }
compare: { by: endpoint, baseline: vllm, metrics: [output_throughput, ttft_p99] }
sweeps:
  rates: { matrix: { endpoint: [vllm, sglang], scenario: [B1, B2], qps: [1, 2, 5] }, repeats: 3 }
"#;

/// A plan with embedded mocks that is deliberately short.
const MOCK: &str = r#"sweepline: 1
name: first look
endpoints: { demo: { engine: mock, mock: { ttft: 2ms, itl: 1ms } } }
models: { demo: { id: demo } }
scenarios: { tiny: { base: B1, output_tokens: 4 } }
phases: { fill: 50ms, stabilize: 50ms, measure: 200ms, drain: 5s }
sweeps: { one: { matrix: { scenario: [tiny], batch_size: [1, 2] } } }
"#;

#[test]
fn a_hasty_plan_is_told_what_it_lacks() {
    let lab = Lab::new();
    lab.write("hasty.yaml", HASTY);
    let ended = lab.ok(&["check", "hasty.yaml"]);
    assert_eq!(ended.stderr, "");
    insta::assert_snapshot!(ended.stdout);
}

#[test]
fn a_careful_plan_is_told_nothing() {
    let lab = Lab::new();
    lab.write("careful.yaml", CAREFUL);
    let ended = lab.ok(&["check", "--strict", "careful.yaml"]);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("careful.yaml: ok\n", ""));
    let json = lab.ok(&["check", "careful.yaml", "--format", "json"]).json();
    assert_eq!(json["diagnostics"], json!([]));
}

#[test]
fn strict_fails_on_warnings_and_only_there() {
    let lab = Lab::new();
    lab.write("hasty.yaml", HASTY);
    let strict = lab.run(&["check", "--strict", "hasty.yaml"]);
    assert_eq!(strict.code, Some(2));
    assert_eq!(strict.stdout, lab.ok(&["check", "hasty.yaml"]).stdout, "the messages are the same");
    lab.write("note.yaml", &CAREFUL.replace("scenario: [B1, B2]", "scenario: [B1]"));
    let note = lab.ok(&["check", "--strict", "note.yaml"]);
    assert!(
        note.stdout.contains("note[M004]") && note.stdout.contains("\n1 lint (1 note); details: "),
        "{}",
        note.stdout
    );
    lab.write(
        "allowed.yaml",
        &MOCK.replace(
            "sweeps:",
            "allow: [{ code: M001, because: x }, { code: M005, because: x }, \
        { code: M006, because: x }, { code: M004, because: x }]\nsweeps:",
        ),
    );
    assert_eq!(lab.ok(&["check", "--strict", "allowed.yaml"]).stdout, "allowed.yaml: ok\n");
}

#[test]
fn mistakes_come_first_and_lints_of_whole_plans_after() {
    let lab = Lab::new();
    lab.write("hasty.yaml", HASTY);
    lab.write("broken.yaml", &HASTY.replace("M004", "M0004"));
    let ended = lab.run(&["check", "hasty.yaml", "broken.yaml", "--format", "json"]);
    assert_eq!(ended.code, Some(2));
    let json = ended.json();
    let found = json["diagnostics"].as_array().unwrap();
    assert_eq!((&found[0]["code"], &found[0]["severity"]), (&"E008".into(), &"error".into()));
    assert!(found[0]["remedy"].as_str().unwrap().contains("`M004`"), "{}", found[0]);
    let hardware = found.iter().find(|one| one["code"] == "M011").unwrap();
    assert_eq!(hardware["severity"], "warning");
    assert_eq!(
        (&hardware["file"], &hardware["line"], &hardware["column"]),
        (&"hasty.yaml".into(), &9.into(), &5.into())
    );
    assert_eq!(hardware["about"], json!(["endpoint vllm", "endpoint sglang"]));
    assert!(found[1..].iter().all(|one| one["severity"] != "error" && one["file"] == "hasty.yaml"), "{json}");
}

#[test]
fn run_and_preview_say_it_in_one_line() {
    let lab = Lab::new();
    lab.write("mock plan.yaml", MOCK);
    let check = lab.ok(&["check", "mock plan.yaml"]).stdout;
    let lints = check.matches("  warning[").count() + check.matches("  note[").count();
    let line = format!("{lints} lints: sweepline check 'mock plan.yaml'\n");
    let preview = lab.ok(&["preview", "mock plan.yaml"]);
    assert!(preview.stderr.ends_with(&line), "{}", preview.stderr);
    assert!(lab.ok(&["preview", "mock plan.yaml", "--format", "json"]).json()["runs"].is_array());
    let run = lab.run(&["run", "mock plan.yaml"]);
    assert_eq!(run.stderr.matches(&line).count(), 1, "{}", run.stderr);
    assert_eq!(run.stderr.matches("lints").count(), 1, "{}", run.stderr);
    let again = lab.run(&["run", "mock plan.yaml"]);
    assert!(!again.stderr.contains("lints"), "nothing is measured: {}", again.stderr);
    assert_eq!(lab.run(&["run", "mock plan.yaml", "--force", "--quiet"]).stderr, "");
}

#[test]
fn what_calibrate_showed_of_this_host_counts() {
    let lab = Lab::new();
    let plan = CAREFUL.replace("qps: [1, 2, 5] }, repeats: 3 }", "qps: [1, 2, 5] }, repeats: 3 }\n  load: { matrix: { endpoint: [vllm, sglang], scenario: [B1, B2], batch_size: [64, 5000] }, repeats: 3 }");
    lab.write("plan.yaml", &plan);
    let beyond = |lab: &Lab, folder: &str| {
        let json = lab.ok(&["check", "plan.yaml", "--results", folder, "--format", "json"]).json();
        let found = json["diagnostics"].as_array().unwrap();
        found.iter().filter(|one| one["code"] == "M018").cloned().collect::<Vec<Value>>()
    };
    assert!(beyond(&lab, "results").is_empty(), "no calibration of this host");
    lab.ok(&["calibrate", "--batch-size", "2", "--output-tokens", "3", "--no-search", "--for", "100ms", "--quiet"]);
    let found = beyond(&lab, "results");
    let batch = found.iter().find(|one| one["about"] == json!(["sweep load"])).unwrap_or_else(|| panic!("{found:?}"));
    assert!(batch["message"].as_str().unwrap().starts_with("`batch_size: 5000` exceeds"), "{batch}");
    assert!(beyond(&lab, "elsewhere").is_empty());
}
