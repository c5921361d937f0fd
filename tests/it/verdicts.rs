//! Tests each reason of the verdict: a misbehaving server or a stalled generator triggers it through the
//! program, and it is named wherever results are shown.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use super::lab::{Ended, Lab, Run};
use super::mock::Mock;
use super::outcomes::plan;

/// Returns a plan with one sweep `s` over endpoint `a`, from its load, the sweep's keys next to the
/// matrix, the phases, and the remaining lines.
fn one(port: u16, load: &str, sweep: &str, phases: &str, more: &str) -> String {
    let matrix = format!("endpoint: [a], model: [m], scenario: [short], {load}");
    let rest = format!("{more}phases: {{ {phases} }}\nsweeps: {{ s: {{ matrix: {{ {matrix} }}{sweep} }} }}\n");
    plan(&[("a", port)], &rest)
}

/// The verdict of a run, from each command that shows it.
struct Judged {
    ended: Ended,
    run: Run,
    state: String,
    reasons: Vec<String>,
    text: String,
}

/// Returns the verdict of the lab's only run, and checks that the table, `show` and `export` agree.
fn judged(lab: &Lab, ended: Ended) -> Judged {
    let run = lab.only_run();
    let id = run.json["id"].as_str().unwrap()[..16].to_owned();
    let shown = lab.ok(&["show", &id, "--plan", "plan.yaml", "--format", "json"]).json();
    let verdict = &shown["verdict"];
    let state = verdict["state"].as_str().unwrap().to_owned();
    let names = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|reason| reason["name"].as_str().unwrap().to_owned()).collect()
    };
    let reasons = [names(&verdict["reasons"]), names(&verdict["labels"])].concat();
    let exported = lab.ok(&["export", "plan.yaml", "--format", "json"]).json()[0].clone();
    assert_eq!(exported["verdict"], state.as_str(), "{exported}");
    let page = lab.ok(&["show", &id, "--plan", "plan.yaml"]).stdout;
    for name in &reasons {
        assert!(ended.stdout.contains(name.as_str()), "the table names {name}: {}", ended.stdout);
        assert!(page.contains(name.as_str()), "`show` names {name}: {page}");
        assert!(exported.to_string().contains(name.as_str()), "`export` names {name}: {exported}");
    }
    assert!(ended.stdout.contains(&state), "{}", ended.stdout);
    assert_eq!(ended.code, Some(if state == "invalid" { 3 } else { 0 }), "{}{}", ended.stdout, ended.stderr);
    Judged { ended, run, state, reasons, text: verdict.to_string() }
}

impl Judged {
    /// Asserts that the run has the reason, with at least this weight.
    fn has(&self, reason: &str, weight: &str) {
        assert!(self.reasons.iter().any(|name| name == reason), "no {reason}: {}\n{}", self.text, self.ended.stderr);
        assert!(self.state == weight || self.state == "invalid", "{reason} makes it {weight}: {}", self.text);
    }
}

fn run(lab: &Lab, plan: &str) -> Judged {
    lab.write("plan.yaml", plan);
    let ended = lab.run(&["run", "plan.yaml"]);
    judged(lab, ended)
}

/// Whether the facts of a run, apart from its verdict, show that its generator was stalled.
fn was_stalled(run: &Run) -> bool {
    let observed = &run.json["facts"]["observed"];
    let stalled = |name: &str| observed[name]["p99_ns"].as_u64().is_some_and(|p99| p99 > 9_500_000);
    ["read_delay", "turns", "wakes"].into_iter().any(stalled)
}

const SHORT: &str = "fill: 0s, stabilize: 0s, measure: { for: 100ms, min_requests: 60, at_most: 90s }, drain: 60s";

#[timed_test]
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

#[timed_test]
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

#[timed_test]
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

#[timed_test]
fn a_server_that_gets_slower_is_unsteady() {
    // After 100 requests, there are 25 that take 4 times as long, so the change occurs in the middle
    // of the window.
    let mock = Mock::start(&["--ttft", "20ms", "--itl", "3ms", "--fault", "slow:4@102-"]);
    let lab = Lab::new();
    let phases = "fill: 0s, stabilize: 0s, measure: { for: 500ms, min_requests: 125, at_most: 90s }, drain: 60s";
    run(&lab, &one(mock.port, "batch_size: [2]", "", phases, "")).has("unsteady", "suspect");
}

#[timed_test]
fn a_server_that_is_cold_at_first_is_warming_up() {
    // The first 30 of 150 requests in the window take 4 times as long.
    let mock = Mock::start(&["--ttft", "20ms", "--itl", "3ms", "--fault", "slow:4@2-32"]);
    let lab = Lab::new();
    let phases = "fill: 0s, stabilize: 0s, measure: { for: 500ms, min_requests: 150, at_most: 90s }, drain: 60s";
    let judged = run(&lab, &one(mock.port, "batch_size: [2]", "", phases, ""));
    judged.has("warming_up", "suspect");
}

/// There is silence on all streams, in both kinds of loop, once within the window.
#[timed_test]
fn a_server_that_pauses_is_told() {
    for load in ["batch_size: [4]", "qps: [40]"] {
        let mock = Mock::start(&["--ttft", "20ms", "--itl", "5ms", "--fault", "pause:1500@80"]);
        let lab = Lab::new();
        let phases = "fill: 0s, stabilize: 0s, measure: 5s, drain: 60s";
        let judged = run(&lab, &one(mock.port, load, "", phases, ""));
        judged.has("paused", "suspect");
        assert!(judged.text.contains("no stream received anything for 1."), "{}", judged.text);
        let plan = one(mock.port, load, "", phases, "validity: { paused: { suspect: 50%, invalid: 60% } }\n");
        lab.write("plan.yaml", &plan);
        let id = judged.run.json["id"].as_str().unwrap()[..16].to_owned();
        let shown = lab.ok(&["show", &id, "--plan", "plan.yaml", "--format", "json"]).json();
        assert!(!shown["verdict"]["reasons"].to_string().contains("\"paused\""), "{shown}");
    }
}

#[timed_test]
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

#[timed_test]
fn too_few_requests_for_the_slo_are_suspect() {
    let mock = Mock::start(&["--ttft", "2ms"]);
    let lab = Lab::new();
    let phases = "fill: 0s, stabilize: 0s, measure: { for: 10ms, min_requests: 20, at_most: 90s }, drain: 60s";
    let judged = run(&lab, &one(mock.port, "batch_size: [1]", "", phases, "slo: { ttft: { p99: 1s } }\n"));
    judged.has("few_samples", "suspect");
    assert!(judged.text.contains("299"), "{}", judged.text);
}

#[timed_test]
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

#[timed_test]
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

#[timed_test]
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

/// Starts the plan, stops the process (SIGSTOP) once the server has received the first `seen` requests,
/// and resumes it after `pause`.
fn hold_up(lab: &Lab, mock: &Mock, plan: &str, seen: usize, pause: Duration) -> Judged {
    lab.write("plan.yaml", plan);
    let running = lab.start(&["run", "plan.yaml"]);
    mock.log_of_runs(seen);
    running.signal(Signal::STOP);
    let stopped = Instant::now();
    // This test is about the pause.
    std::thread::sleep(pause);
    assert!(stopped.elapsed() >= pause);
    running.signal(Signal::CONT);
    let ended = running.end();
    judged(lab, ended)
}

#[timed_test]
fn a_generator_that_is_held_up_is_late() {
    let mock = Mock::start(&["--ttft", "2ms"]);
    let lab = Lab::new();
    // 1.5 of 5 seconds are lost somewhere in the window.
    let phases = "fill: 0s, stabilize: 0s, measure: 5s, drain: 60s";
    let plan = one(mock.port, "qps: [40]", ", arrivals: constant", phases, "");
    let judged = hold_up(&lab, &mock, &plan, 3, Duration::from_millis(1500));
    judged.has("client_late", "invalid");
    assert_eq!(judged.state, "invalid", "{}", judged.text);
    let late = judged
        .run
        .records
        .iter()
        .filter(|record| record.row.sent_ns.unwrap_or(0) > record.row.scheduled_ns + 200_000_000);
    assert!(late.count() >= 40, "late requests are sent late, not skipped");
}

#[timed_test]
fn a_closed_loop_that_is_held_up_is_late() {
    let mock = Mock::start(&["--ttft", "80ms"]);
    let lab = Lab::new();
    // There are four slots with about forty requests each. The requests that follow those that ended
    // during the pause are two seconds late.
    let plan = one(mock.port, "batch_size: [4]", "", "fill: 0s, stabilize: 0s, measure: 5s, drain: 60s", "");
    let judged = hold_up(&lab, &mock, &plan, 8, Duration::from_secs(2));
    // The pause is more than one second of five, so it is reported regardless of its effect on
    // requests.
    judged.has("client_paused", "invalid");
    let late =
        |record: &&sweepline::rows::Record| record.row.sent_ns.unwrap_or(0) > record.row.scheduled_ns + 500_000_000;
    assert!(judged.run.records.iter().filter(late).count() >= 4, "each slot was late once");
}

#[timed_test]
fn a_generator_that_is_held_up_to_the_end_misses_the_rate() {
    let mock = Mock::start(&["--ttft", "2ms"]);
    let lab = Lab::new();
    let phases = "fill: 0s, stabilize: 0s, measure: 2s, drain: 200ms";
    let plan = one(mock.port, "qps: [20]", ", arrivals: constant", phases, "");
    let judged = hold_up(&lab, &mock, &plan, 1, Duration::from_millis(2600));
    judged.has("rate_missed", "invalid");
    let never = judged.run.records.iter().filter(|record| record.row.sent_ns.is_none()).count();
    assert!(never > 0, "requests that were never sent are rows too");
    assert_eq!(judged.run.json["facts"]["never_sent"].as_u64().map(|missed| missed > 0), Some(true));
}
