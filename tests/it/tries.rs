//! Tests attempts that were never committed: they are counted over invocations, given up, and
//! requested again, with their messages. Also tests the lines of a sweep: the time of day, and numbers
//! that continue after a resume.

use rustix::process::Signal;
use serde_json::{Value, json};

use lab::sweeps::{end, names, wait_for_attempt};
use lab::{Ended, Lab, Server, without_time};

const PLAN: &str = "sweepline: 1
name: tries
endpoints: { demo: { engine: mock, retries: { runs: 3 }, mock: { ttft: 1ms, itl: 1ms } } }
models: { m: { id: tiny } }
scenarios: { s: { base: B1, output_tokens: 4 } }
phases: { fill: 20ms, stabilize: 20ms, measure: 60s, drain: 2s }
sweeps:
  s: { matrix: { endpoint: [demo], model: [m], scenario: [s], batch_size: [1, 2] } }
";

/// Returns a lab with a plan, one run of which was started and killed, and the short id of that
/// run.
fn killed() -> (Lab, String) {
    let lab = Lab::new();
    lab.write("plan.yaml", PLAN);
    let running = lab.start(&["run", "plan.yaml"]);
    let attempt = wait_for_attempt(&lab);
    running.signal(Signal::KILL);
    end(running);
    (lab, attempt[..16].to_owned())
}

/// Adds attempt `number` to the run, as a copy of its first attempt, which was killed, with these
/// fields changed.
fn plant(lab: &Lab, id: &str, number: u32, fields: &Value) {
    let at = |number: u32| lab.results().join("attempts").join(format!("{id}.{number}"));
    let mut record: Value = serde_json::from_slice(&std::fs::read(at(1).join("attempt.json")).unwrap()).unwrap();
    record["attempt"] = number.into();
    record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    std::fs::create_dir(at(number)).unwrap();
    std::fs::write(at(number).join("attempt.json"), record.to_string()).unwrap();
}

/// Returns the fields of an attempt that a rate-limited gateway spoiled; with `given_up`, the run may
/// be given up.
fn limited(given_up: Option<u32>) -> Value {
    let detail = "HTTP 429 of the gateway: slow down";
    let spoiled = json!({ "cause": "rate_limited", "detail": detail });
    let mut fields = json!({ "ended": "2026-01-02T03:04:05.000000000Z", "failure": detail, "spoiled": spoiled });
    fields.as_object_mut().unwrap().extend(given_up.map(|times| ("given_up".to_owned(), times.into())));
    fields
}

/// Returns the entry of the run in the preview with these flags.
fn entry(lab: &Lab, id: &str, flags: &[&str]) -> Value {
    let shown = lab.ok(&[&["preview", "plan.yaml", "--format", "json"], flags].concat()).json();
    lab.follows("preview", &shown);
    let runs = shown["runs"].as_array().unwrap();
    runs.iter().find(|run| run["id"].as_str().unwrap().starts_with(id)).unwrap().clone()
}

/// Returns the state and the reason of the run.
fn decided(lab: &Lab, id: &str, flags: &[&str]) -> (String, String) {
    let entry = entry(lab, id, flags);
    (entry["state"].as_str().unwrap().to_owned(), entry["reason"].as_str().unwrap().to_owned())
}

/// Whether the words are `before` and a time of day, possibly after a date.
fn is_at(words: &str, before: &str) -> bool {
    let time = words.strip_prefix(before).unwrap_or_default();
    let time = time.rsplit(' ').next().unwrap_or_default().as_bytes();
    time.len() == 5 && time[2] == b':' && time.iter().filter(|byte| byte.is_ascii_digit()).count() == 4
}

#[test]
fn what_was_interrupted_says_when() {
    let (lab, id) = killed();
    let tried = entry(&lab, &id, &[]);
    assert_eq!(tried["state"], "new");
    assert!(is_at(tried["reason"].as_str().unwrap(), "interrupted "), "{tried}");
    let tries = &tried["tries"];
    assert_eq!((&tries["how"], &tries["spoiled"], &tries["attempt"]), (&json!("interrupted"), &json!(0), &json!(1)));
    assert!(tries["ended"].as_str().unwrap().ends_with('Z') && tries["given_up"].is_null(), "{tries}");
    let text = lab.ok(&["preview", "plan.yaml"]).stdout;
    assert_eq!(text.matches("never committed").count(), 1, "the other run was never tried: {text}");
    for args in [&["why", &id] as &[&str], &["why", &id, "--plan", "plan.yaml"]] {
        let why = lab.ok(args).stdout;
        assert!(why.contains("new: interrupted ") && !why.contains("never committed"), "{why}");
        let line = why.lines().find(|line| line.starts_with("attempt 1")).unwrap();
        assert!(is_at(line.strip_suffix(": its process was killed").unwrap(), "attempt 1 was interrupted "), "{why}");
    }
    let list = lab.ok(&["list"]).stdout;
    assert!(list.starts_with(&format!("tried {id} demo · s · batch ")) && list.contains(": interrupted "), "{list}");
    // On another day, the time follows the date, in local time.
    let written = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    for file in std::fs::read_dir(lab.results().join("attempts").join(format!("{id}.1"))).unwrap() {
        let file = std::fs::File::options().write(true).open(file.unwrap().path()).unwrap();
        file.set_modified(written).unwrap();
    }
    for (zone, time) in [("UTC", "2023-11-14 22:13"), ("UTC-2", "2023-11-15 00:13")] {
        let why = lab.command(&["why", &id]).env("TZ", zone).output().unwrap();
        let why = Ended::from(why).stdout;
        assert!(why.contains(&format!("new: interrupted {time}\n")), "{zone}: {why}");
    }
}

#[test]
fn spoiled_attempts_count_over_invocations_until_the_run_is_given_up() {
    let (lab, id) = killed();
    let state = |flags: &[&str]| decided(&lab, &id, flags);
    let new = |reason: &str| ("new".to_owned(), reason.to_owned());
    plant(&lab, &id, 2, &limited(None));
    assert_eq!(state(&[]), new("failed: 429"), "killed attempts do not count");
    plant(&lab, &id, 3, &limited(None));
    assert_eq!(state(&[]), new("failed: 429 (1 of 3)"));
    plant(&lab, &id, 4, &json!({ "ended": "2026-01-02T03:04:05Z", "failure": "interrupted" }));
    let (_, reason) = state(&[]);
    assert!(is_at(&reason, "interrupted ") && entry(&lab, &id, &[])["tries"]["spoiled"] == 2, "{reason}");
    plant(&lab, &id, 5, &json!({ "ended": "2026-01-02T03:04:05Z", "failure": "no room on the disk" }));
    assert_eq!(state(&[]), new("failed: no room on the disk"));
    plant(&lab, &id, 6, &limited(None));
    assert_eq!(state(&[]), new("failed: 429 (2 of 3)"));
    plant(&lab, &id, 7, &limited(Some(3)));

    // The run is given up, so there is nothing to do, and no request is sent.
    let given_up = "given up: 429 (3 of 3)";
    assert_eq!(state(&[]), ("given_up".to_owned(), given_up.to_owned()));
    let tries = entry(&lab, &id, &[])["tries"].clone();
    assert_eq!((&tries["spoiled"], &tries["given_up"], &tries["how"]), (&json!(4), &json!(3), &json!("spoiled")));
    assert_eq!((&tries["cause"], &tries["ended"]), (&json!("rate_limited"), &json!("2026-01-02T03:04:05.000000000Z")));
    let only = format!("id[:16] == '{id}'");
    lab.ok(&["preview", "plan.yaml", "--only", &only, "--exit-code"]);
    let text = lab.ok(&["preview", "plan.yaml", "--only", &only]).stdout;
    assert!(text.contains("in all: 1 given up\n  nothing to do") && text.contains(given_up), "{text}");
    assert!(lab.ok(&["preview", "plan.yaml", "--all"]).stdout.contains(given_up));
    let run = lab.run(&["run", "plan.yaml", "--only", &only]);
    let words = "the results of 0 of 1 runs are in results, 1 given up; --redo given-up retries; no request";
    assert!(run.stderr.contains(words), "{}", run.stderr);
    assert_eq!(names(&lab, "attempts").len(), 7, "no attempt was made");

    // Every command reports the run that was given up.
    for args in [&["why", &id] as &[&str], &["why", &id, "--plan", "plan.yaml"]] {
        let why = lab.ok(args).stdout;
        assert!(why.contains(&format!("\n{given_up}\n")), "{why}");
        assert!(why.contains("gateway: slow down; given up after 3 of 3 retries"), "{why}");
        let told = lab.ok(&[args, &["--format", "json"]].concat()).json();
        lab.follows("why", &told);
        assert_eq!((&told["state"], &told["tries"]["given_up"]), (&json!("given_up"), &json!(3)), "{told}");
    }
    let list = lab.ok(&["list"]).stdout;
    assert!(list.starts_with(&format!("tried {id} demo · s · batch ")) && list.contains(given_up), "{list}");
    let list = lab.ok(&["list", "--format", "json"]).json();
    lab.follows("list", &list);
    let tried = &list["tried"][0];
    assert_eq!((&tried["state"], &tried["committed"]), (&json!(given_up), &json!(false)), "{list}");
    assert!(tried["id"].as_str().unwrap().starts_with(&id) && tried["tries"]["given_up"] == 3, "{list}");

    // The run is requested again, or more retries are allowed.
    for flags in [&["--redo", "given-up"] as &[&str], &["--redo", "invalid,given-up"], &["--force"]] {
        assert_eq!(state(flags), new(&format!("{given_up}, and requested again")), "{flags:?}");
    }
    let exit =
        lab.run(&["preview", "plan.yaml", "--only", &only, "--exit-code", "--redo", "invalid", "--redo", "given-up"]);
    assert_eq!(exit.code, Some(10), "{exit:?}");
    assert_eq!(state(&["--redo", "invalid"]).0, "given_up");
    assert_eq!(state(&["--set", "endpoints.demo.retries.runs=5"]), new("failed: 429 (3 of 5)"));
    assert_eq!(state(&["--set", "endpoints.demo.retries.runs=0"]), new("failed: 429"), "no run is ever given up");
    assert_eq!(state(&["--set", "endpoints.demo.retries.runs=2"]).0, "given_up");
    // A restarted count starts with the first attempt.
    plant(&lab, &id, 8, &json!({ "ended": "2026-01-02T03:04:05Z", "failure": "interrupted", "afresh": true }));
    assert_eq!(entry(&lab, &id, &[])["tries"]["spoiled"], 0);
    plant(&lab, &id, 9, &limited(None));
    assert_eq!(state(&[]), new("failed: 429"));
}

#[test]
fn a_new_count_begins_only_when_it_is_asked_for() {
    let lab = Lab::new();
    // The probe gets its response on the second try; a run hits the limit immediately.
    let server = Server::start(&lab, &["--fault", "http:429@every:2"]);
    let endpoint = format!("url: '{}', retries: {{ runs: 1 }}", server.url());
    let plan = PLAN.replace("engine: mock, retries: { runs: 3 }, mock: { ttft: 1ms, itl: 1ms }", &endpoint);
    lab.write("plan.yaml", &plan.replace("batch_size: [1, 2]", "batch_size: [1]"));
    let id = first_of_plan(&lab);
    let record = |number: u32| -> Value {
        let dir = lab.results().join("attempts").join(format!("{id}.{number}"));
        serde_json::from_slice(&std::fs::read(dir.join("attempt.json")).unwrap()).unwrap()
    };
    let first = lab.run(&["run", "plan.yaml"]);
    assert_eq!(decided(&lab, &id, &[]), ("given_up".to_owned(), "given up: 429 (1 of 1)".to_owned()), "{}", first.log);
    assert_eq!((names(&lab, "attempts").len(), &record(2)["given_up"]), (2, &json!(1)), "{}", first.log);
    lab.run(&["run", "plan.yaml"]);
    assert_eq!(names(&lab, "attempts").len(), 2, "it was not requested");
    let again = lab.run(&["run", "plan.yaml", "--redo", "given-up"]);
    assert_eq!(names(&lab, "attempts").len(), 4, "{}", again.log);
    assert_eq!((&record(3)["afresh"], &record(4)["afresh"]), (&json!(true), &Value::Null));
    assert_eq!((&record(3)["given_up"], &record(4)["given_up"]), (&Value::Null, &json!(1)));
    // With more retries, the count continues.
    assert_eq!(decided(&lab, &id, &["--set", "endpoints.demo.retries.runs=2"]).1, "failed: 429 (1 of 2)");
    let more = lab.run(&["run", "plan.yaml", "--set", "endpoints.demo.retries.runs=2"]);
    assert_eq!((names(&lab, "attempts").len(), &record(5)["given_up"]), (5, &json!(2)), "{}", more.log);
    assert!(names(&lab, "runs").is_empty());
}

#[test]
fn a_result_stays_what_it_is_whatever_was_tried_since() {
    let (lab, id) = killed();
    lab.write("plan.yaml", &PLAN.replace("60s", "200ms"));
    let short = first_of_plan(&lab);
    lab.run(&["run", "plan.yaml"]);
    assert_eq!(names(&lab, "runs").len(), 2);
    for number in [2, 3] {
        let from = lab.results().join("attempts").join(format!("{id}.1"));
        let to = lab.results().join("attempts").join(format!("{short}.{number}"));
        std::fs::create_dir(&to).unwrap();
        let mut record: Value = serde_json::from_slice(&std::fs::read(from.join("attempt.json")).unwrap()).unwrap();
        record["id"] = format!("{short}{}", "0".repeat(48)).into();
        record.as_object_mut().unwrap().extend(limited((number == 3).then_some(1)).as_object().unwrap().clone());
        std::fs::write(to.join("attempt.json"), record.to_string()).unwrap();
    }
    let (state, reason) = decided(&lab, &short, &["--redo", "given-up"]);
    assert!(state == "cached" && reason.starts_with("committed "), "{state}: {reason}");
    assert_eq!(decided(&lab, &short, &["--force"]).0, "redo");
    let list = lab.ok(&["list"]).stdout;
    assert!(list.contains(&format!("tried {short}")) && list.contains("(1 of 1); its result stays"), "{list}");
    assert!(lab.ok(&["why", &short]).stdout.contains("committed: 2"));
    lab.ok(&["verify"]);
}

/// Returns the short id of the plan's first run.
fn first_of_plan(lab: &Lab) -> String {
    let shown = lab.ok(&["preview", "plan.yaml", "--format", "json"]).json();
    shown["runs"][0]["id"].as_str().unwrap()[..16].to_owned()
}

#[test]
fn retries_have_bounds() {
    let lab = Lab::new();
    for (runs, wrong) in [("0", false), ("100", false), ("101", true), ("-1", true), ("often", true)] {
        lab.write("plan.yaml", &PLAN.replace("runs: 3", &format!("runs: {runs}")));
        let check = lab.run(&["check", "plan.yaml"]);
        assert_eq!(check.code == Some(2), wrong, "{runs}: {}{}", check.stdout, check.stderr);
    }
    lab.write("plan.yaml", &PLAN.replace("runs: 3", "runs: 101"));
    let check = lab.run(&["check", "plan.yaml"]);
    assert!(check.stderr.contains("`runs` must be 0 to 100, not 101"), "{}", check.stderr);
}

#[test]
fn lines_have_times_and_numbers_go_on_after_a_resume() {
    let lab = lab::sweeps::lab();
    let first = lab.run(&["run", "plan.yaml", "--only", "batch_size in [1, 2]"]);
    assert!(first.stderr.contains("\n[1/2] ") && first.stderr.contains("\n[2/2] "), "{}", first.stderr);
    let rest = lab.run(&["run", "plan.yaml"]);
    let numbers: Vec<&str> = rest.stderr.lines().filter_map(|line| line.strip_prefix('[')?.split(']').next()).collect();
    assert_eq!(numbers, ["3/5", "3/5", "4/5", "4/5", "5/5", "5/5"], "{}", rest.stderr);
    for line in rest.log.lines().filter(|line| line.contains("/5] ") || line.contains("to do")) {
        assert_ne!(without_time(line), line, "{}", rest.log);
    }
    let hints = &rest.log[rest.log.find("\nrows: ").unwrap() + 1..];
    assert!(hints.lines().all(|line| without_time(line) == line), "copied lines have no times: {hints}");
}
