//! Tests reasons of the verdict that depend on when things happen: a server that changes its speed or falls
//! silent, and a generator that is stopped.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use lab::Lab;
use lab::judged::{Judged, judged, one, run};
use lab::mock::Mock;

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

fn a_server_that_gets_slower_is_unsteady() {
    // After 100 requests, there are 25 that take 4 times as long, so the change occurs in the middle
    // of the window.
    let mock = Mock::start(&["--ttft", "20ms", "--itl", "3ms", "--fault", "slow:4@102-"]);
    let lab = Lab::measured_time();
    let phases = "fill: 0s, stabilize: 0s, measure: { for: 500ms, min_requests: 125, at_most: 90s }, drain: 60s";
    run(&lab, &one(mock.port, "batch_size: [2]", "", phases, "")).has("unsteady", "suspect");
}

fn a_server_that_is_cold_at_first_is_warming_up() {
    // The first 30 of 150 requests in the window take 4 times as long.
    let mock = Mock::start(&["--ttft", "20ms", "--itl", "3ms", "--fault", "slow:4@2-32"]);
    let lab = Lab::measured_time();
    let phases = "fill: 0s, stabilize: 0s, measure: { for: 500ms, min_requests: 150, at_most: 90s }, drain: 60s";
    let judged = run(&lab, &one(mock.port, "batch_size: [2]", "", phases, ""));
    judged.has("warming_up", "suspect");
}

/// There is silence on all streams, in both kinds of loop, once within the window.
fn a_server_that_pauses_is_told() {
    for load in ["batch_size: [4]", "qps: [40]"] {
        let mock = Mock::start(&["--ttft", "20ms", "--itl", "5ms", "--fault", "pause:1500@80"]);
        let lab = Lab::measured_time();
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

fn a_generator_that_is_held_up_is_late() {
    let mock = Mock::start(&["--ttft", "2ms"]);
    let lab = Lab::measured_time();
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

fn a_closed_loop_that_is_held_up_is_late() {
    let mock = Mock::start(&["--ttft", "80ms"]);
    let lab = Lab::measured_time();
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

fn a_generator_that_is_held_up_to_the_end_misses_the_rate() {
    let mock = Mock::start(&["--ttft", "2ms"]);
    let lab = Lab::measured_time();
    let phases = "fill: 0s, stabilize: 0s, measure: 2s, drain: 200ms";
    let plan = one(mock.port, "qps: [20]", ", arrivals: constant", phases, "");
    let judged = hold_up(&lab, &mock, &plan, 1, Duration::from_millis(2600));
    judged.has("rate_missed", "invalid");
    let never = judged.run.records.iter().filter(|record| record.row.sent_ns.is_none()).count();
    assert!(never > 0, "requests that were never sent are rows too");
    assert_eq!(judged.run.json["facts"]["never_sent"].as_u64().map(|missed| missed > 0), Some(true));
}

lab::measured_tests![
    a_server_that_gets_slower_is_unsteady,
    a_server_that_is_cold_at_first_is_warming_up,
    a_server_that_pauses_is_told,
    a_generator_that_is_held_up_is_late,
    a_closed_loop_that_is_held_up_is_late,
    a_generator_that_is_held_up_to_the_end_misses_the_rate,
];
