//! Tests requests that wait for each other, through the program: the answer to an objective, and whether a
//! server kept up.

use serde_json::Value;

use lab::Lab;
use lab::plans::plan;

/// Runs one open loop in virtual time against a mock that serves one request after the other; returns the
/// output, and `show` as JSON and as text.
fn open_loop(service: &str, sweep: &str, slo: &str) -> (String, Value, String) {
    let lab = Lab::new();
    let matrix = "endpoint: [a], model: [m], scenario: [short]";
    let phases = "fill: 0s, stabilize: 500ms, measure: 2s, drain: 60s";
    let rest = format!("{slo}phases: {{ {phases} }}\nsweeps: {{ s: {{ matrix: {{ {matrix}, {sweep} }} }} }}\n");
    let mock = format!("mock: {{ ttft: {service}, itl: 0ms, slots: 1 }}");
    let text = plan(&[("a", 0)], &rest)
        .replace("url: 'http://127.0.0.1:0/v1', engine: mock", &format!("engine: mock, {mock}"));
    lab.write("plan.yaml", &text);
    let ended = lab.ok(&["run", "plan.yaml"]);
    let id = lab.only_run().json["id"].as_str().unwrap()[..16].to_owned();
    let shown = lab.ok(&["show", &id, "--plan", "plan.yaml", "--format", "json"]).json();
    let page = lab.ok(&["show", &id, "--plan", "plan.yaml"]).stdout;
    (ended.stdout + &ended.stderr, shown, page)
}

#[test]
fn a_short_window_of_a_queue_is_undecided_and_says_which_would_do() {
    let slo = "slo: { e2e: { p99: 30s } }\n";
    let (printed, shown, page) = open_loop("4ms", "qps: [215]", slo);
    let test = &shown["slo"][0];
    let number = |name: &str| test[name].as_f64().unwrap_or_else(|| panic!("{name}: {test}"));
    assert_eq!((test["answer"].as_str(), number("above")), (Some("undecided"), 0.0), "{test}");
    // 299 independent requests would be enough; this run has more, but they are not independent.
    assert!(number("n") > 299.0 && number("worth") < 299.0 && number("need") > number("n"), "{test}");
    assert!(number("would_do_s") > 2.0, "{test}");
    assert!(page.contains("s would suffice"), "{page}");
    assert!(
        printed.contains("objective observed to hold, not proven (e2e_from_schedule p99 ≤ 30s: 0 of "),
        "{printed}"
    );
}

#[test]
fn a_light_load_is_kept_up_with_and_a_heavy_one_is_not() {
    let (_, light, page) = open_loop("4ms", "qps: [60]", "");
    let saturation = &light["saturation"];
    // If the machine stalls, a queue builds up. The window then does not show that the server keeps up,
    // which a label states.
    let labels = light["verdict"]["labels"].as_array().unwrap();
    match saturation["state"].as_str() {
        Some("kept_up") => assert!(saturation["kept_up"] == true && labels.is_empty(), "{saturation} {labels:?}"),
        Some("not_shown") => {
            assert!(saturation["kept_up"].is_null() && labels[0]["name"] == "not_shown", "{saturation} {labels:?}");
            assert!(saturation["would_do_s"].as_f64().unwrap() >= 2.0, "{saturation}");
        }
        _ => panic!("{saturation}"),
    }
    let came = light["metrics"]["arrived_rate_requests_per_s"].as_f64().unwrap();
    assert_eq!(Some(came), saturation["arrived_rate"].as_f64());
    assert!((30.0..90.0).contains(&came), "{came}");
    assert!(page.contains("60 qps (actual "), "{page}");

    let (printed, heavy, page) = open_loop("20ms", "qps: [100]", "");
    assert!(page.contains("100 qps ("), "{page}");
    let saturation = &heavy["saturation"];
    assert_eq!((&saturation["state"], &saturation["kept_up"]), (&"saturated".into(), &false.into()), "{saturation}");
    let number = |name: &str| saturation[name].as_f64().unwrap();
    assert!(number("completion_rate_high") < number("arrived_rate"), "{saturation}");
    assert!(printed.contains("saturated") && page.contains("saturated"), "{page}");
}

#[test]
fn a_closed_loop_has_no_such_state() {
    let (_, shown, page) = open_loop("4ms", "batch_size: [2]", "");
    assert_eq!(shown["saturation"], Value::Null);
    assert!(page.contains("arrived rate") && page.contains("n/a (closed loop)"), "{page}");
}
