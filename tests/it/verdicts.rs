//! Tests each reason of the verdict: a misbehaving server or a stalled generator triggers it through the
//! program, and it is named wherever results are shown.

use std::time::Duration;

use rustix::process::Signal;
use sweepline::rows::Phase;

use lab::judged::{one, run};
use lab::mock::Mock;
use lab::{Lab, Run};

/// Whether the facts of a run, apart from its verdict, show that its generator was stalled.
fn was_stalled(run: &Run) -> bool {
    let observed = &run.json["facts"]["observed"];
    let stalled = |name: &str| observed[name]["p99_ns"].as_u64().is_some_and(|p99| p99 > 9_500_000);
    ["read_delay", "turns", "wakes"].into_iter().any(stalled)
}

const SHORT: &str = "fill: 0s, stabilize: 0s, measure: { for: 100ms, min_requests: 60, at_most: 90s }, drain: 60s";

#[test]
fn a_clean_run_has_no_reason() {
    let mock = Mock::start(&["--ttft", "80ms", "--itl", "8ms"]);
    let lab = Lab::new();
    let phases = "fill: 300ms, stabilize: 300ms, measure: { for: 4s, min_requests: 80, at_most: 90s }, drain: 60s";
    let judged = run(&lab, &one(mock.port, "batch_size: [4]", "", phases, "slo: { ttft: { p90: 10s } }\n"));
    // Tests share the machine, so the generator may really be late or stalled and report that. In this
    // case, its own observations must confirm it.
    let honest = |name: &String| match name.as_str() {
        "client_late" => true,
        "client_saturated" => was_stalled(&judged.run),
        "client_paused" => judged.run.json["facts"]["pauses"]["starved"]["count"] != 0,
        _ => false,
    };
    assert!(judged.reasons.iter().all(honest), "{}", judged.text);
    assert!(judged.run.records.iter().filter(|record| record.row.outcome.is_ok()).count() >= 80);
}

#[test]
fn errors_are_suspect_and_then_invalid() {
    for (fault, weight) in [("http:503@every:20", "suspect"), ("reset@every:3", "invalid")] {
        let mock = Mock::start(&["--ttft", "2ms", "--fault", fault]);
        let lab = Lab::new();
        let judged = run(&lab, &one(mock.port, "batch_size: [2]", "", SHORT, ""));
        judged.has("errors", weight);
        let outcome = if weight == "suspect" { "http_503" } else { "reset" };
        assert!(judged.text.contains(outcome), "the reason names the outcome: {}", judged.text);
    }
}

#[test]
fn another_length_than_asked_for_is_suspect() {
    for fault in ["short@all", "long@all"] {
        let mock = Mock::start(&["--ttft", "2ms", "--fault", fault]);
        let lab = Lab::new();
        let judged = run(&lab, &one(mock.port, "batch_size: [2]", "", SHORT, ""));
        judged.has("output_length", "suspect");
    }
    // Without `ignore_eos`, any length is correct, and the reason states that lengths were not
    // checked.
    let mock = Mock::start(&["--ttft", "2ms", "--fault", "short@all"]);
    let lab = Lab::new();
    let judged = run(&lab, &one(mock.port, "batch_size: [2]", "", SHORT, "").replace("engine: mock", "engine: openai"));
    assert!(!judged.reasons.iter().any(|name| name == "output_length"), "{}", judged.text);
    assert!(judged.text.contains("\"output_length\":\"ignore_eos was not sent"), "{}", judged.text);
}

#[test]
fn errors_in_a_burst_are_told_from_errors_all_through() {
    let bunched = |fault: &str| {
        let mock = Mock::start(&["--ttft", "2ms", "--fault", fault]);
        let lab = Lab::new();
        let phases = "fill: 0s, stabilize: 0s, measure: { for: 100ms, min_requests: 200, at_most: 90s }, drain: 60s";
        let judged = run(&lab, &one(mock.port, "batch_size: [2]", "", phases, ""));
        judged.has("errors", "suspect");
        judged.reasons.iter().any(|name| name == "errors_bunched")
    };
    assert!(bunched("http:500@100-113"));
    assert!(!bunched("http:500@every:14"));
}

#[test]
fn too_few_requests_for_the_slo_are_suspect() {
    let mock = Mock::start(&["--ttft", "2ms"]);
    let lab = Lab::new();
    let phases = "fill: 0s, stabilize: 0s, measure: { for: 10ms, min_requests: 20, at_most: 90s }, drain: 60s";
    let judged = run(&lab, &one(mock.port, "batch_size: [1]", "", phases, "slo: { ttft: { p99: 1s } }\n"));
    judged.has("few_samples", "suspect");
    assert!(judged.text.contains("299"), "{}", judged.text);
}

#[test]
fn more_arrivals_than_the_server_serves_are_saturated() {
    // One slot serves 10 requests per second, but 60 arrive.
    let mock = Mock::start(&["--ttft", "100ms", "--slots", "1"]);
    for load in ["qps: [60]", "qps: [60], batch_size: [2]"] {
        let lab = Lab::new();
        let phases = "fill: 0s, stabilize: 0s, measure: 3s, drain: 100ms";
        let judged = run(&lab, &one(mock.port, load, ", arrivals: constant", phases, ""));
        assert!(judged.reasons.iter().any(|name| name == "saturated"), "{}", judged.text);
        // Saturation is a result, and requests that are cut off follow from it.
        assert!(
            judged.reasons.iter().all(|name| ["saturated", "client_late"].contains(&name.as_str())),
            "{}",
            judged.text
        );
        assert!(judged.state == "valid" || judged.reasons.iter().any(|name| name == "client_late"), "{}", judged.text);
        assert!(judged.text.contains("\"unsteady\":\"the run is saturated\""), "{}", judged.text);
    }
}

#[test]
fn a_window_without_a_request_is_invalid_cached_and_redone() {
    // The only request starts in fill and outlasts the window; the probe's request gets its response.
    let mock = Mock::start(&["--fault", "stall-headers@2,4"]);
    let lab = Lab::new();
    let phases = "fill: 100ms, stabilize: 100ms, measure: 200ms, drain: 1s";
    let judged = run(&lab, &one(mock.port, "batch_size: [1]", "", phases, "environment: ignore\n"));
    judged.has("empty_window", "invalid");
    assert_eq!(judged.state, "invalid");

    // These are the probe's two requests, two to identify the server, five for the round trip, one for the
    // gauge, the run's own, and two for the version after the run.
    let before = mock.log(13).len();
    let again = lab.run(&["run", "plan.yaml"]);
    assert_eq!(again.code, Some(3), "an invalid run stays invalid: {}", again.stderr);
    assert!(again.stderr.contains("nothing to do"), "{}", again.stderr);
    assert_eq!(again.stdout, judged.ended.stdout);

    let name = judged.run.dir.file_name().unwrap().to_str().unwrap().to_owned();
    let old = std::fs::read(judged.run.dir.join("requests.parquet")).unwrap();
    let redone = lab.run(&["run", "plan.yaml", "--redo", "invalid"]);
    assert_eq!(redone.code, Some(3), "{}", redone.stderr);
    assert!(redone.stderr.contains("its verdict is invalid"), "{}", redone.stderr);
    let superseded = lab.results().join("superseded").join(format!("{name}.1"));
    assert_eq!(std::fs::read(superseded.join("requests.parquet")).unwrap(), old, "the old run is intact");
    let run = lab.only_run();
    assert_eq!(run.json["attempt"], 2);
    // If there were more requests, the second run, which had nothing to do, must have sent one.
    assert_eq!(mock.log(2 * before).len(), 2 * before);
}

#[test]
fn redo_invalid_leaves_the_others_alone() {
    let mock = Mock::start(&["--ttft", "2ms"]);
    let lab = Lab::new();
    let more = "validity: { client_late: { suspect: 99%, invalid: 100% }, unsteady: { suspect: 100% } }\n";
    lab.write("plan.yaml", &one(mock.port, "batch_size: [1]", "", SHORT, more));
    lab.ok(&["run", "plan.yaml"]);
    let before = std::fs::read(lab.only_run().dir.join("run.json")).unwrap();
    let again = lab.ok(&["run", "plan.yaml", "--redo", "invalid"]);
    assert!(again.stderr.contains("nothing to do"), "{}", again.stderr);
    assert_eq!(std::fs::read(lab.only_run().dir.join("run.json")).unwrap(), before);
    assert!(!lab.results().join("superseded").read_dir().is_ok_and(|mut dir| dir.next().is_some()));
}

/// A generator that is stopped until after the end of its window sends too little, and notices that it stood
/// still. A busy machine only adds to both.
#[test]
fn a_generator_that_is_stopped_counts_what_it_never_sent_and_its_pause() {
    const STOPPED: Duration = Duration::from_secs(2);
    let mock = Mock::start(&["--ttft", "2ms"]);
    let lab = Lab::real_time();
    let phases = "fill: 0s, stabilize: 0s, measure: 500ms, drain: 100ms";
    lab.write("plan.yaml", &one(mock.port, "qps: [20]", ", arrivals: constant", phases, ""));
    let running = lab.start(&["run", "plan.yaml"]);
    mock.log_of_runs(1);
    running.signal(Signal::STOP);
    // This test is about the pause.
    std::thread::sleep(STOPPED);
    running.signal(Signal::CONT);
    running.end();
    let run = lab.only_run();
    let measured = run.records.iter().filter(|record| record.row.phase == Phase::Measure);
    let never = measured.filter(|record| record.row.error.as_deref() == Some("never sent")).count() as u64;
    let counted = run.json["facts"]["never_sent"].as_u64().unwrap();
    // A request that was due in the last moment of the window is a row, but does not count.
    assert!(counted > 0 && counted <= never && never - counted <= 1, "{counted} of {never}");
    let pauses = &run.json["facts"]["pauses"];
    let longest = |kind: &str| pauses[kind]["longest_ns"].as_u64().unwrap();
    assert!(longest("stopped").max(longest("starved")) >= 1_500_000_000, "{pauses}");
}
