//! Tests that `calibrate` shows a generator that stood still.

use rustix::process::Signal;

use lab::calibrations::{is_consistent, number};
use lab::{Lab, wait_for};

fn a_stopped_client_shows_as_error() {
    let lab = Lab::measured_time();
    let flags = ["--qps", "100", "--output-tokens", "2", "--ttft", "2ms", "--itl", "1ms", "--no-search", "--for", "4s"];
    let running = lab.start(&[&["calibrate"], &flags[..], &["--format", "json"]].concat());
    let log = lab.results().join("calibrations/.scratch/mock.jsonl");
    wait_for("requests of the window", || {
        let lines = std::fs::read_to_string(&log).map_or(0, |text| text.lines().count());
        (lines > 100).then_some(())
    });
    running.signal(Signal::STOP);
    std::thread::sleep(std::time::Duration::from_millis(400));
    running.signal(Signal::CONT);
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let measured = &ended.json()["calibration"]["loads"][0];
    is_consistent(measured);
    let late = &measured["errors"]["late"];
    assert!(number(&late["max_ms"]) > 300.0, "requests that came due meanwhile were sent late: {measured}");
    assert!(number(&late["p99_ms"]) > 100.0, "and more than one in a hundred: {measured}");
    // The rows also show this: they contain the same lateness as the server's log, except for the
    // network.
    assert!(number(&measured["errors"]["lateness"]["mean_ms"]).abs() < number(&late["mean_ms"]), "{measured}");
}

lab::measured_tests![a_stopped_client_shows_as_error];
