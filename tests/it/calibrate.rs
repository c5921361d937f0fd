//! Tests the measurements, files and output of `calibrate`. They check only that errors are reported
//! correctly, not how large they are on this machine.

use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::{Value, json};

use lab::calibrations::{is_consistent, number};
use lab::{Ended, Lab, wait_for};

const PLAN: &str = "sweepline: 1
name: calibrated
endpoints:
  a: { engine: mock, mock: { ttft: 3ms, itl: 1ms } }
  b: { engine: mock, mock: { ttft: 3ms, itl: 1ms, slots: 4, load: 1, prefill: 1ms/token } }
  real: { url: \"http://127.0.0.1:1/v1\", engine: vllm }
models: { m: { id: tiny } }
scenarios: { s: { base: B1, output_tokens: 4 }, same: { base: B1, output_tokens: 4 }, long: { base: C, output_tokens: 9 } }
phases: { fill: 20ms, stabilize: 20ms, measure: 150ms, drain: 2s }
validity: { client_late: { suspect: 99%, invalid: 100% }, unsteady: { suspect: 99% } }
sweeps:
  closed: { matrix: { endpoint: [a, b], model: [m], scenario: [s, same], batch_size: [1, 2] }, repeats: 2 }
  open: { matrix: { endpoint: [real], model: [m], scenario: [long], qps: [20, 40.5] } }
";

/// A plan with one run of an embedded server.
const ONE: &str = "sweepline: 1
name: one
endpoints: { demo: { engine: mock, mock: { ttft: 1ms, itl: 1ms } } }
models: { m: { id: tiny } }
scenarios: { s: { base: B1, output_tokens: 4 } }
phases: { fill: 20ms, stabilize: 20ms, measure: 150ms, drain: 2s }
validity: { client_late: { suspect: 99%, invalid: 100% }, unsteady: { suspect: 99% } }
sweeps:
  s: { matrix: { endpoint: [demo], model: [m], scenario: [s], batch_size: [2] } }
";

/// Options for windows that are short enough for a test.
const SHORT: [&str; 4] = ["--for", "150ms", "--within", "60s"];

fn calibrated(lab: &Lab, args: &[&str]) -> Value {
    let answer = lab.ok(&[&["calibrate"], args, &SHORT, &["--format", "json"]].concat()).json();
    lab.follows("calibrate", &answer);
    answer
}

fn kept(lab: &Lab) -> Vec<PathBuf> {
    let Ok(folder) = std::fs::read_dir(lab.results().join("calibrations")) else { return Vec::new() };
    folder.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn the_loads_of_a_plan_are_measured_and_kept() {
    let lab = Lab::real_time();
    lab.write("plan.yaml", PLAN);
    let said = calibrated(&lab, &["plan.yaml", "--no-search"]);
    let calibration = &said["calibration"];
    let loads = calibration["loads"].as_array().unwrap();
    // There are four loads, whatever the names and the number of endpoints and repeats. The real server's
    // timing is unknown, and the rates have 9 tokens each.
    let level = |load: &Value| match &load["load"]["load"] {
        Value::Object(kind) if kind.contains_key("closed") => number(&kind["closed"]["batch_size"]),
        kind => number(&json!(kind["open"]["qps"].as_str().map_or(kind["open"]["qps"].as_f64(), |t| t.parse().ok()))),
    };
    let levels: Vec<f64> = loads.iter().map(level).collect();
    assert_eq!(levels, [2.0, 1.0, 40.5, 20.0], "the heaviest first: {calibration}");
    loads.iter().for_each(is_consistent);
    assert_eq!((&loads[0]["load"]["ttft"], &loads[0]["load"]["itl"]), (&"3ms".into(), &"1ms".into()));
    assert_eq!((&loads[2]["load"]["ttft"], &loads[2]["load"]["itl"]), (&"20ms".into(), &"4ms".into()));
    assert_eq!(
        (&loads[2]["load"]["content"]["system_tokens"], loads[2]["load"]["content"]["output_tokens"].as_u64()),
        (&2000.into(), Some(9))
    );
    assert_eq!((&calibration["plan"], calibration["searches"].as_array().unwrap().len()), (&"calibrated".into(), 0));
    assert!(number(&calibration["environment"]["client_cores"]) >= 1.0);

    let files = kept(&lab);
    assert_eq!(files.len(), 1, "only the calibration remains: {files:?}");
    assert_eq!(lab.path().join(said["file"].as_str().unwrap()), files[0]);
    let file: Value = serde_json::from_slice(&std::fs::read(&files[0]).unwrap()).unwrap();
    assert_eq!(&file, calibration);
    assert!(lab.ok(&["list", "--attempts"]).stdout.starts_with("no runs"), "a calibration is not a run");
    lab.ok(&["verify"]);
    let text =
        lab.ok(&[&["calibrate", "plan.yaml", "--no-search", "--ttft", "2ms", "--itl", "1ms"], &SHORT[..]].concat());
    assert!(
        text.stdout.contains("batch 2 · 50 → 4 tokens · TTFT 2ms, ITL 1ms\n")
            || text.stdout.contains("batch 2 · 50 → 4 tokens · TTFT 2ms, ITL 1ms "),
        "{}",
        text.stdout
    );
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 110), "{}", text.stdout);
    assert!(text.stderr.contains("saved as results/calibrations/"), "{}", text.stderr);
    assert_eq!(kept(&lab).len(), 2, "earlier calibrations remain");
}

#[test]
fn flags_say_a_load_too() {
    let lab = Lab::real_time();
    let flags =
        ["--batch-size", "3", "--batch-size", "1", "--qps", "55.5", "--prompt-tokens", "20", "--output-tokens", "5"];
    let timing = ["--ttft", "7ms", "--itl", "2ms", "--no-search", "--results", "elsewhere", "--quiet"];
    let ended = lab.ok(&[&["calibrate"], &flags[..], &timing, &SHORT, &["--format", "json"]].concat());
    assert_eq!(ended.stderr, "");
    let loads = ended.json()["calibration"]["loads"].as_array().unwrap().clone();
    assert_eq!(loads.len(), 3);
    for measured in &loads {
        is_consistent(measured);
        let load = &measured["load"];
        assert_eq!((&load["content"]["prompt_tokens"], &load["content"]["output_tokens"]), (&20.into(), &5.into()));
        assert_eq!((&load["ttft"], &load["itl"]), (&"7ms".into(), &"2ms".into()));
    }
    assert!(lab.path().join("elsewhere/calibrations").is_dir() && !lab.results().exists());
    let in_flight = number(&loads[0]["pressure"]["in_flight"]);
    assert!((0.5..=3.1).contains(&in_flight), "three slots: {in_flight}");

    let refused = |args: &[&str], words: &str| {
        let Ended { code, stdout, stderr, .. } = lab.run(&[&["calibrate"], args].concat());
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{args:?}: {stderr}");
        assert!(stderr.contains(words), "{args:?}: {stderr}");
    };
    lab.write("plan.yaml", PLAN);
    refused(&["plan.yaml", "--batch-size", "3"], "cannot be used with");
    refused(&["--batch-size", "0"], "0");
    refused(&["--qps", "0"], "a rate must be above 0");
    refused(&["--qps", "1000001"], "a rate must be at most 1000000");
    refused(&["--batch-size", "100001"], "100001");
    refused(&["--for", "2h"], "shorten --for, or raise --within");
    refused(&["--for", "0s"], "a window must be longer than 0s");
    refused(&["nowhere.yaml"], "nowhere.yaml");
    assert!(!lab.results().exists(), "nothing was started");
}

#[test]
fn answers_are_no_longer_than_a_window_and_time_is_bounded() {
    let lab = Lab::real_time();
    let flags = ["--batch-size", "2", "--qps", "30", "--output-tokens", "5000", "--ttft", "10ms", "--itl", "2ms"];
    let ended =
        lab.ok(&[&["calibrate"], &flags[..], &["--for", "100ms", "--within", "0s", "--format", "json"]].concat());
    let calibration = &ended.json()["calibration"];
    let (loads, left) = (calibration["loads"].as_array().unwrap(), calibration["unmeasured"].as_array().unwrap());
    assert_eq!((loads.len(), left.len()), (1, 1), "one load is measured however short the time: {calibration}");
    // In the 290 ms after the first token, there is one token every 2 ms.
    assert_eq!(loads[0]["load"]["content"]["output_tokens"], 146);
    assert_eq!((&left[0]["failed"], &left[0]["reason"]), (&false.into(), &"no time left; raise --within".into()));
    let search = &calibration["searches"][0];
    assert!(search["steps"].as_array().unwrap().is_empty() && search["ended_early"].is_string(), "{search}");
    // With one request in ten seconds, most windows are empty, which is not an error.
    let rare = ["calibrate", "--qps", "0.1", "--qps", "20", "--output-tokens", "2", "--no-search", "--verbose"];
    let ended = lab.ok(&[&rare[..], &SHORT].concat());
    let words =
        "0.1 qps · 50 → 2 tokens · TTFT 20ms, ITL 4ms was not measured: no request fell into its window; raise --for";
    assert!(ended.stdout.contains(words), "{}", ended.stdout);
    assert!(
        ended.stdout.contains("20 qps · 50 → 2 tokens") && ended.stderr.contains(" events/s: TTFT error "),
        "{ended:?}"
    );
}

#[test]
fn nothing_is_kept_of_what_measured_nothing() {
    let lab = Lab::real_time();
    // With one request in a hundred thousand seconds, none falls into the window.
    let ended = lab.run(&[&["calibrate", "--qps", "0.00001", "--output-tokens", "2"], &SHORT[..]].concat());
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.stdout.contains("no request fell into its window"), "{ended:?}");
    assert!(ended.stderr.contains("nothing was measured, so nothing was saved"), "{ended:?}");
    assert_eq!(kept(&lab), Vec::<PathBuf>::new());
}

#[test]
fn the_search_ends_between_what_held_and_what_did_not() {
    let lab = Lab::real_time();
    let flags = ["calibrate", "--batch-size", "2", "--output-tokens", "3", "--ttft", "30ms", "--itl", "5ms"];
    let ended = lab.ok(&[&flags[..], &["--for", "100ms", "--within", "8s", "--format", "json"]].concat());
    let calibration = &ended.json()["calibration"];
    let search = &calibration["searches"][0];
    let level = |load: &Value| load["load"]["closed"]["batch_size"].as_u64();
    let steps: Vec<u64> = search["steps"].as_array().unwrap().iter().filter_map(|step| level(&step["load"])).collect();
    println!("tried {steps:?}, holds to {:?}", level(&search["holds_to"]));
    assert!(!steps.is_empty(), "{calibration}");
    let (held, failed) = (level(&search["holds_to"]), level(&search["fails_at"]));
    assert!(held.zip(failed).is_none_or(|(held, failed)| held < failed), "{search}");
    assert!(held.is_none_or(|held| held == 2 || steps.contains(&held)), "{search}");
    if let Some(failed) = failed {
        let tried = steps.iter().filter(|step| **step == failed).count();
        assert_eq!(
            tried,
            if failed == 2 { 0 } else { 2 },
            "a step that fails is tried twice; the load itself was measured before: {search}"
        );
    } else {
        assert!(search["ended_early"].is_string() || held == Some(16_384), "{search}");
    }
}

#[test]
fn an_interrupted_calibration_keeps_nothing() {
    let lab = Lab::real_time();
    let running = lab.start(&["calibrate", "--batch-size", "2", "--for", "60s", "--within", "600s"]);
    let log = lab.results().join("calibrations/.scratch/mock.jsonl");
    wait_for("the mock", || log.exists().then_some(()));
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(130), ""), "{}", ended.stderr);
    assert_eq!(kept(&lab), Vec::<PathBuf>::new());
}

#[test]
fn nothing_is_calibrated_beside_a_run() {
    let lab = Lab::real_time();
    let writer = sweepline::store::Store::lock(lab.results()).unwrap();
    let refused = lab.run(&["calibrate", "--batch-size", "1"]);
    assert_eq!(refused.code, Some(5), "{}", refused.stderr);
    assert!(refused.stderr.contains("in use by another sweepline"), "{}", refused.stderr);
    drop(writer);
}

#[test]
fn a_run_shows_what_its_generator_was_calibrated_for() {
    let lab = Lab::real_time();
    lab.write("plan.yaml", ONE);
    let talk = || lab.ok(&["run", "plan.yaml"]).stderr;
    let hint = |talk: &str| talk.contains("the generator's error   ") && talk.contains(" calibrate plan.yaml\n");
    let first = talk();
    assert!(hint(&first) && !first.contains("generator:"), "{first}");

    calibrated(&lab, &["plan.yaml", "--no-search"]);
    let file = kept(&lab).pop().unwrap();
    let measured: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut changed = measured.clone();
        // The values that this machine yields are not tested.
        let load = &mut changed["loads"][0];
        load["pressure"] = json!({ "in_flight": 64.0, "requests_per_second": 1e6, "events_per_second": 1e6 });
        load["errors"]["ttft"] = json!({ "n": 400, "mean_ms": 0.02, "p50_ms": 0.02, "p99_ms": 0.04, "max_ms": 2.5 });
        load["errors"]["late"] = json!({ "n": 400, "mean_ms": 0.1, "p50_ms": 0.1, "p99_ms": 0.25, "max_ms": 9.0 });
        changed["started"] = "2026-11-21T10:00:00.000000000Z".into();
        change(&mut changed);
        std::fs::write(&file, serde_json::to_vec(&changed).unwrap()).unwrap();
        talk()
    };
    let said = with(&|_| ());
    let line = "\ngenerator: TTFT error p99 0.040 ms (few samples), late 0.250 ms at batch 2 (calibrated 2026-11-21 on this host)\n";
    assert!(said.contains(line) && !hint(&said), "{said}");

    let searched = with(&|changed| {
        let mut up = changed["loads"][0]["load"].clone();
        up["load"]["closed"]["batch_size"] = 512.into();
        changed["searches"] = json!([{ "steps": [], "holds_to": up, "fails_at": null, "ended_early": null }]);
    });
    assert!(searched.contains("on this host); holds to batch 512\n"), "{searched}");

    let large = with(&|changed| changed["loads"][0]["errors"]["ttft"]["p99_ms"] = 1.5.into());
    assert!(large.contains("\nwarning: generator: TTFT error p99 1.50 ms"), "{large}");
    assert!(large.contains("on this host); lower the load, use more engine threads, or"), "{large}");

    let beyond = with(&|changed| changed["loads"][0]["pressure"]["events_per_second"] = 1.0.into());
    let words =
        "warning: 1 run is beyond the calibrated range of the generator; the most demanding: demo · s · batch 2 (";
    let flags = "; covered by: sweepline calibrate --batch-size ";
    assert!(beyond.contains(flags), "{beyond}");
    assert!(beyond.contains(words) && hint(&beyond) && !beyond.contains("generator: TTFT"), "{beyond}");

    for (field, other, words) in [
        ("client_host", json!("elsewhere"), "of host elsewhere, not "),
        ("sweepline", json!("0.0.1"), "of sweepline 0.0.1, not "),
        ("client_cores", json!(999), "of a client with cores: 999, not "),
        ("client_os", json!("Other 1.0 riscv64"), "of system Other 1.0 riscv64, not "),
    ] {
        let said = with(&|changed| changed["environment"][field] = other.clone());
        assert!(said.contains(&format!("generator: the last calibration is {words}")), "{field}: {said}");
        assert!(said.contains(" and is ignored\n") && hint(&said), "{said}");
    }
    std::fs::write(&file, "{").unwrap();
    assert!(hint(&talk()), "a damaged calibration does not hide results");
}
