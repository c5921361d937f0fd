//! Tests a pause before the load begins, and the first request after it as a separate result.

use serde_json::Value;

use lab::Lab;
use lab::mock::Mock;

/// Returns the value of a column in the export's only row.
fn exported(lab: &Lab, plan: &str, column: &str) -> Value {
    let table = lab.ok(&["export", plan, "--format", "json"]).json();
    let rows = table.as_array().unwrap_or_else(|| panic!("no rows in {table}"));
    assert_eq!(rows.len(), 1);
    rows[0][column].clone()
}

#[test]
fn the_first_request_after_a_pause_is_a_result() {
    let lab = Lab::new();
    let mut mock = Mock::start(&["--ttft", "30ms", "--itl", "2ms"]);
    let plan = |idle: &str| {
        format!(
            "sweepline: 1\nname: idle\nseed: 5\nmodels: {{ m: {{ id: tiny }} }}\nendpoints: {{ a: {{ url: 'http://127.0.0.1:{}/v1', \
             engine: mock }} }}\nscenarios: {{ s: {{ base: B1, output_tokens: 4 }} }}\nphases: {{ {idle}fill: 0s, stabilize: 0s, \
             measure: 300ms, drain: 30s }}\nsweeps: {{ s: {{ matrix: {{ scenario: [s], batch_size: [1] }} }} }}\n",
            mock.port
        )
    };
    lab.write("idle.yaml", &plan("idle: 1200ms, "));
    lab.run(&["run", "idle.yaml"]);
    let run = lab.only_run();
    assert_eq!(run.json["facts"]["idle_ns"], 1_200_000_000u64);
    assert_eq!(run.json["spec"]["phases"]["idle"], "1200ms");
    let ttft = exported(&lab, "idle.yaml", "idle_start_ttft_ms").as_f64().unwrap();
    let e2e = exported(&lab, "idle.yaml", "idle_start_e2e_ms").as_f64().unwrap();
    assert!(ttft >= 30.0 && e2e >= ttft, "TTFT {ttft} ms, E2E {e2e} ms");

    // The same plan without a pause makes a different run, and its first request is an ordinary
    // one.
    lab.write("busy.yaml", &plan(""));
    lab.run(&["run", "busy.yaml"]);
    assert_eq!(lab.runs().len(), 2);
    assert_eq!(exported(&lab, "busy.yaml", "idle_start_ttft_ms"), Value::Null);

    // Nothing reached the server for the requested time: the probe came before the pause, and the first
    // request after it.
    mock.terminate();
    let log = mock.log_now();
    let arrived = |line: &Value| line["arrival_ns"].as_u64().unwrap_or_else(|| panic!("no arrival time: {line}"));
    let generations: Vec<&Value> = log.iter().filter(|line| !line["n"].is_null()).collect();
    let first_of_run = generations.iter().position(|line| line["request_id"] != "sweepline-probe").unwrap();
    assert!(first_of_run > 0, "the probe comes first");
    let pause = arrived(generations[first_of_run]) - arrived(generations[first_of_run - 1]);
    assert!(pause >= 1_200_000_000, "{pause} ns");
}
