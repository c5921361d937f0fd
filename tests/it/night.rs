//! A sweep that is left alone: servers that are away, loading, wrong, or die under way, with the words that a user reads.

use std::time::Duration;

use super::front::{Front, Mood};
use super::lab::{Ended, Lab, wait_for};
use super::mock::Mock;

/// Two loads on each endpoint (name, address, more of it).
fn plan(endpoints: &[(&str, u16, &str)]) -> String {
    let endpoint = |(name, port, more): &(&str, u16, &str)| {
        format!("  {name}: {{ url: 'http://127.0.0.1:{port}/v1', engine: mock{more} }}\n")
    };
    let names: Vec<&str> = endpoints.iter().map(|(name, ..)| *name).collect();
    format!(
        "sweepline: 1\nname: night\nendpoints:\n{}models: {{ m: {{ id: tiny }} }}\n\
         scenarios: {{ short: {{ base: B1, output_tokens: 4 }} }}\n\
         phases: {{ fill: 0s, stabilize: 0s, measure: 200ms, drain: 5s }}\n\
         sweeps: {{ s: {{ matrix: {{ endpoint: [{}], scenario: [short], batch_size: [1, 2] }} }} }}\n",
        endpoints.iter().map(endpoint).collect::<String>(),
        names.join(", ")
    )
}

fn lab(endpoints: &[(&str, u16, &str)]) -> Lab {
    let lab = Lab::new();
    lab.write("plan.yaml", &plan(endpoints));
    lab
}

/// The endpoints of the committed runs.
fn committed(lab: &Lab) -> Vec<String> {
    let name = |run: super::lab::Run| run.json["spec"]["endpoint"]["name"].as_str().unwrap().to_owned();
    let mut names: Vec<String> = lab.runs().into_values().map(name).collect();
    names.sort();
    names
}

#[track_caller]
fn says(ended: &Ended, text: &str) {
    assert!(ended.stderr.contains(text), "`{text}` is missing in\n{}{}", ended.stderr, ended.stdout);
}

#[test]
fn a_server_that_never_comes_is_waited_for_and_named() {
    let mock = Mock::start(&["--ttft", "1ms"]);
    let front = Front::absent(mock.port);
    let lab = lab(&[("gone", front.port, ", ready: { within: 1500ms }"), ("here", mock.port, "")]);
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(6), "{}", ended.stderr);
    says(&ended, "gone: waiting for up to 2s: http://127.0.0.1:");
    says(&ended, "gone: not ready within 1500ms: http://127.0.0.1:");
    says(&ended, "Connection refused");
    says(&ended, "2 skipped; the same command goes on with what is missing");
    assert_eq!(ended.stderr.matches("waiting for").count(), 1, "once for each reason: {}", ended.stderr);
    assert_eq!(committed(&lab), ["here", "here"], "other endpoints go on meanwhile");
    let order = |text: &str| ended.stderr.find(text).unwrap_or_else(|| panic!("{text}: {}", ended.stderr));
    assert!(order("gone: waiting") < order("gone: not ready"));
}

#[test]
fn a_server_that_comes_late_is_measured() {
    let mock = Mock::start(&["--ttft", "1ms"]);
    for (early, of) in [(Mood::Absent, "Connection refused"), (Mood::loading(), "HTTP 503")] {
        let front = match early {
            Mood::Absent => Front::absent(mock.port),
            mood => Front::start(mock.port, mood),
        };
        let lab = lab(&[("late", front.port, "")]);
        let mut command = lab.command(&["run", "plan.yaml"]);
        let told = lab.path().join("stderr");
        command.stderr(std::fs::File::create(&told).unwrap());
        let mut running = command.spawn().unwrap();
        let read = || std::fs::read_to_string(&told).unwrap();
        wait_for("the wait", || read().contains("late: waiting for up to").then_some(()));
        front.turn(Mood::Passes);
        let status = running.wait().unwrap();
        assert!(matches!(status.code(), Some(0 | 3)), "{}", read());
        assert!(read().contains(of) && read().contains("late: ready\n"), "{}", read());
        assert_eq!(committed(&lab), ["late", "late"]);
    }
}

#[test]
fn a_path_says_when_the_server_is_ready() {
    let mock = Mock::start(&["--ttft", "1ms"]);
    let lab = lab(&[("a", mock.port, ", ready: { path: /nowhere, within: 300ms }")]);
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(6), "{}", ended.stderr);
    says(&ended, "answers HTTP 404 to /nowhere: it is not ready");
    lab.write("plan.yaml", &plan(&[("a", mock.port, ", ready: { path: /health, within: 10s }")]));
    lab.ok(&["run", "plan.yaml"]);
}

#[test]
fn what_an_edit_must_mend_is_told_at_once_and_together() {
    let mock = Mock::start(&["--ttft", "1ms"]);
    let key = Front::start(mock.port, Mood::says("401 Unauthorized", "", r#"{"error":{"message":"no key"}}"#));
    let model =
        Front::start(mock.port, Mood::says("404 Not Found", "", r#"{"error":{"message":"no such model"},"data":[]}"#));
    let lab = lab(&[("fine", mock.port, ""), ("locked", key.port, ""), ("other", model.port, "")]);
    let text = std::fs::read_to_string(lab.path().join("plan.yaml")).unwrap();
    let unknown = "  unknown: { url: 'http://no-such-host.invalid:1/v1' }\n";
    lab.write(
        "plan.yaml",
        &text
            .replace("models:", &format!("{unknown}models:"))
            .replace("[fine, locked, other]", "[fine, locked, unknown]"),
    );
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    says(&ended, "error: endpoint `locked`: http://127.0.0.1:");
    says(&ended, "refuses the API key (HTTP 401)");
    says(&ended, "endpoint `unknown`: http://no-such-host.invalid:1/v1 does not answer");
    assert!(committed(&lab).is_empty(), "nothing is measured before the plan is mended");
    assert!(!ended.stderr.contains("waiting for"), "{}", ended.stderr);
}

#[test]
fn a_server_that_dies_and_comes_back_is_waited_for_before_the_next_run() {
    let mock = Mock::start(&["--ttft", "20ms", "--itl", "5ms"]);
    let front = Front::start(mock.port, Mood::Passes);
    let lab = lab(&[("a", front.port, "")]);
    let longer = std::fs::read_to_string(lab.path().join("plan.yaml")).unwrap().replace("200ms", "2s");
    lab.write("plan.yaml", &longer);
    let told = lab.path().join("stderr");
    let mut command = lab.command(&["run", "plan.yaml"]);
    command.stderr(std::fs::File::create(&told).unwrap());
    let mut running = command.spawn().unwrap();
    let read = || std::fs::read_to_string(&told).unwrap();
    wait_for("the first run", || (mock.log_now().len() > 10).then_some(()));
    front.turn(Mood::Absent);
    wait_for("the wait", || read().contains("a: waiting for up to").then_some(()));
    front.turn(Mood::Passes);
    let status = running.wait().unwrap();
    assert_eq!(status.code(), Some(6), "the first run is missing: {}", read());
    assert!(read().contains("a: ready\n") && read().contains("1 failed"), "{}", read());
    assert_eq!(committed(&lab), ["a"]);
    let again = lab.run(&["run", "plan.yaml"]);
    assert_eq!(committed(&lab).len(), 2, "{}", again.stderr);
}

#[test]
fn a_wait_ends_with_the_sweep() {
    let front = Front::absent(1);
    let lab = lab(&[("gone", front.port, ", ready: { within: 10m }")]);
    let told = lab.path().join("stderr");
    let mut command = lab.command(&["run", "plan.yaml"]);
    command.stderr(std::fs::File::create(&told).unwrap());
    let mut running = command.spawn().unwrap();
    wait_for("the wait", || std::fs::read_to_string(&told).unwrap().contains("waiting for up to 10m").then_some(()));
    let began = std::time::Instant::now();
    rustix::process::kill_process(rustix::process::Pid::from_child(&running), rustix::process::Signal::INT).unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(130));
    assert!(began.elapsed() < Duration::from_secs(10));
}
