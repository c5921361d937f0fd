//! Tests a result whose responses an earlier version read: `why` states what cannot be judged anew.

use std::fs;

use serde_json::Value;

use lab::mock::Mock;
use lab::{Lab, Run};

/// Makes a result look like one of a version that did not record its reader.
fn make_old(run: &Run) {
    let file = run.dir.join("run.json");
    let mut json: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(json["facts"].as_object_mut().unwrap().remove("reader"), Some(Value::from(2)));
    // Records of earlier versions have no digest.
    json.as_object_mut().unwrap().remove("sha256");
    fs::write(&file, json.to_string()).unwrap();
}

#[test]
fn what_an_earlier_version_read_is_stated() {
    let mock = Mock::start(&["--ttft", "3ms", "--usage", "never"]);
    let lab = Lab::new();
    let plan = format!(
        "sweepline: 1\nname: readers\nseed: 5\nendpoints: {{ e: {{ url: 'http://127.0.0.1:{}/v1', engine: mock }} }}\n\
         models: {{ m: {{ id: tiny }} }}\nscenarios: {{ s: {{ base: B1, output_tokens: 8 }} }}\n\
         phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 50ms, min_requests: 10, at_most: 60s }}, drain: 10s }}\n\
         sweeps: {{ s: {{ matrix: {{ endpoint: e, scenario: s, batch_size: [1, 2] }} }} }}\n",
        mock.port
    );
    lab.write("plan.yaml", &plan);
    lab.run(&["run", "plan.yaml"]);
    let runs: Vec<Run> = lab.runs().into_values().collect();
    let ids: Vec<String> = runs.iter().map(|run| run.json["id"].as_str().unwrap()[..16].to_owned()).collect();
    assert_eq!(ids.len(), 2);
    let why = |id: &str| lab.ok(&["why", id]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!why(&ids[0]).contains("earlier version"), "{}", why(&ids[0]));
    make_old(&runs[0]);
    let told = why(&ids[0]);
    assert!(told.contains("read by an earlier version of sweepline; "), "{told}");
    assert!(told.contains("cannot be judged by today's rules"), "{told}");
    assert!(lab.ok(&["why", &ids[1], "--format", "json"]).json()["reader"].is_null());
    assert!(lab.ok(&["why", &ids[0], "--format", "json"]).json()["reader"].is_string());
}
