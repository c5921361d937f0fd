//! Tests `environment: match | pin | ignore` with a server that differs from the one that was measured,
//! and with a server that changes.

use lab::front::{Front, Mood};
use lab::mock::Mock;
use lab::{Ended, Lab, wait_for};

/// Returns a plan with two loads on the endpoint `a`; `more` extends the endpoint, `top` the plan.
fn plan(port: u16, more: &str, top: &str) -> String {
    format!(
        "sweepline: 1\nname: env\n{top}\
         endpoints: {{ a: {{ url: 'http://127.0.0.1:{port}/v1', engine: mock{more} }} }}\n\
         models: {{ m: {{ id: tiny }} }}\n\
         scenarios: {{ short: {{ base: B1, output_tokens: 4 }} }}\n\
         phases: {{ fill: 0s, stabilize: 0s, measure: 200ms, drain: 5s }}\n\
         sweeps: {{ s: {{ matrix: {{ endpoint: a, scenario: short, batch_size: [1, 2] }} }} }}\n"
    )
}

/// Starts a mock that reports this version at /version; if there are several versions, separated by
/// commas, it reports them in turn.
fn mock(version: &str, more: &[&str]) -> Mock {
    Mock::start(&[&["--ttft", "1ms", "--version-says", version][..], more].concat())
}

/// Returns a lab with this plan for a mock.
fn lab(mock: &Mock, more: &str, top: &str) -> Lab {
    let lab = Lab::new();
    lab.write("plan.yaml", &plan(mock.port, more, top));
    lab
}

#[track_caller]
fn measured(ended: &Ended) {
    assert!(matches!(ended.code, Some(0 | 3)), "{:?} {}{}", ended.code, ended.stdout, ended.stderr);
}

#[track_caller]
fn says(ended: &Ended, text: &str) {
    assert!(ended.stderr.contains(text), "`{text}` is missing in\n{}{}", ended.stderr, ended.stdout);
}

/// Returns the recorded version and the attempt of each committed run.
fn versions(lab: &Lab) -> Vec<(String, u64)> {
    let one = |run: &lab::Run| {
        let version = run.json["environment"]["fingerprint"]["version"].as_str().unwrap_or("none").to_owned();
        (version, run.json["attempt"].as_u64().unwrap())
    };
    lab.runs().values().map(one).collect()
}

/// Returns the number of generations requested from the mock, including probes.
fn generations(mock: &Mock) -> usize {
    mock.log_now().iter().filter(|line| line["path"] == "/v1/chat/completions").count()
}

fn both(version: &str, attempt: u64) -> [(String, u64); 2] {
    [(version.to_owned(), attempt), (version.to_owned(), attempt)]
}

#[test]
fn match_measures_again_once_and_says_which_version_was_and_is() {
    let old = mock("0.11.0", &[]);
    let lab = lab(&old, "", "");
    measured(&lab.run(&["run", "plan.yaml"]));
    assert_eq!(versions(&lab), both("0.11.0", 1));
    let sent = generations(&old);
    let again = lab.run(&["run", "plan.yaml"]);
    says(
        &again,
        "nothing to do; the results of all 2 runs are in results; servers were only queried for their version",
    );
    says(&again, "a: its server reports version 0.11.0, the same as when it was measured");
    assert_eq!(generations(&old), sent, "only GETs");

    let new = mock("0.11.1", &[]);
    lab.write("plan.yaml", &plan(new.port, "", ""));
    let changed = lab.run(&["run", "plan.yaml"]);
    measured(&changed);
    says(
        &changed,
        "a: the server reports version 0.11.1 instead of 0.11.0; 2 runs are measured again (environment: match)",
    );
    assert_eq!(versions(&lab), both("0.11.1", 2));
    let why = lab.ok(&["why", "batch_size == 1", "--plan", "plan.yaml"]);
    assert!(why.stdout.contains("its result replaced attempt 1: the server reports version 0.11.1 instead of 0.11.0"));
    assert!(why.stdout.contains("measured on mock 0.11.1"), "{}", why.stdout);
    says(&lab.run(&["run", "plan.yaml"]), "nothing to do");
    assert_eq!(versions(&lab), both("0.11.1", 2));
}

#[test]
fn pin_ends_before_anything_is_sent() {
    let old = mock("0.11.0", &[]);
    let lab = lab(&old, "", "environment: pin\n");
    measured(&lab.run(&["run", "plan.yaml"]));
    let new = mock("0.11.1", &[]);
    // One more load is added, so that there is also work to do.
    let more = plan(new.port, "", "environment: pin\n").replace("[1, 2]", "[1, 2, 3]");
    for text in [plan(new.port, "", "environment: pin\n"), more] {
        lab.write("plan.yaml", &text);
        let ended = lab.run(&["run", "plan.yaml"]);
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        says(&ended, "endpoint `a` reports version 0.11.1, but its results were measured on 0.11.0");
        says(&ended, "the plan sets `environment: pin`: start 0.11.0 again");
        assert_eq!(generations(&new), 0);
    }
    let preview = lab.run(&["preview", "plan.yaml", "--probe"]);
    says(&preview, "`run` would refuse this: endpoint `a` reports version 0.11.1");
    assert_eq!(versions(&lab), both("0.11.0", 1));
}

#[test]
fn ignore_compares_nothing_and_asks_nobody() {
    let old = mock("0.11.0", &[]);
    let lab = lab(&old, "", "environment: ignore\n");
    measured(&lab.run(&["run", "plan.yaml"]));
    let new = mock("0.11.1", &[]);
    lab.write("plan.yaml", &plan(new.port, "", "environment: ignore\n"));
    says(
        &lab.run(&["run", "plan.yaml"]),
        "nothing to do; the results of all 2 runs are in results; no request was sent",
    );
    assert_eq!(new.log_now().len(), 0);
    assert_eq!(versions(&lab), both("0.11.0", 1));
}

#[test]
fn preview_asks_only_when_it_is_told_to_and_shows_what_run_does() {
    let old = mock("0.11.0", &[]);
    let lab = lab(&old, "", "");
    measured(&lab.run(&["run", "plan.yaml"]));
    let new = mock("0.11.1", &[]);
    lab.write("plan.yaml", &plan(new.port, "", ""));
    let blind = lab.ok(&["preview", "plan.yaml"]);
    assert!(blind.stdout.contains("in all: 2 cached"), "{}", blind.stdout);
    let seeing = lab.ok(&["preview", "plan.yaml", "--probe"]);
    for text in [
        "in all: 2 to redo",
        "the server reports version 0.11.1 instead of 0.11.0",
        "a: version differs: 2 runs with 0.11.0, now 0.11.1",
        "is mock 0.11.1",
    ] {
        assert!(seeing.stdout.contains(text), "{text}: {}", seeing.stdout);
    }
    let json = lab.ok(&["preview", "plan.yaml", "--probe", "--format", "json"]).json();
    lab.follows("preview", &json);
    assert_eq!(json["endpoints"][0]["fingerprint"]["version"], "0.11.1");
    assert_eq!(json["runs"][0]["state"], "redo");
}

#[test]
fn builds_of_one_release_are_one_server() {
    let old = mock("0.11.0", &[]);
    let lab = lab(&old, ", server: { version: v0.11.0 }", "");
    measured(&lab.run(&["run", "plan.yaml"]));
    let new = mock("0.11.0+cu128", &[]);
    lab.write("plan.yaml", &plan(new.port, ", server: { version: v0.11.0 }", ""));
    says(&lab.run(&["run", "plan.yaml"]), "nothing to do");
    assert_eq!(versions(&lab), both("0.11.0", 1));
    let development = mock("0.11.1.dev12+gabc1234", &[]);
    lab.write("plan.yaml", &plan(development.port, ", server: { version: v0.11.0 }", "environment: pin\n"));
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    says(&ended, "reports version 0.11.1.dev12+gabc1234, but its results were measured on 0.11.0");
}

#[test]
fn a_declared_version_that_the_server_contradicts_is_an_error() {
    let mock = mock("0.11.1+cu128", &[]);
    let lab = lab(&mock, ", server: { version: 0.11.0 }", "");
    let run = lab.run(&["run", "plan.yaml"]);
    let probe = lab.run(&["probe", "plan.yaml"]);
    let preview = lab.run(&["preview", "plan.yaml", "--probe"]);
    let text = "the server reports version 0.11.1+cu128, but `endpoints.a.server.version` declares 0.11.0";
    for ended in [run, probe, preview] {
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(
            (ended.stderr.clone() + &ended.stdout).replace('\n', " ").contains(text),
            "{}{}",
            ended.stderr,
            ended.stdout
        );
    }
    assert_eq!((versions(&lab), generations(&mock)), (Vec::new(), 0), "no generation was requested");
    // The plan's declarations are used for a server that does not report anything.
    lab.write("plan.yaml", &plan(mock.port, ", server: { version: 0.11.1 }", ""));
    measured(&lab.run(&["run", "plan.yaml"]));
}

#[test]
fn two_versions_behind_a_balancer_end_the_endpoint() {
    let balanced = mock("0.11.0,0.11.1", &[]);
    let lab = lab(&balanced, "", "");
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    says(&ended, "endpoint `a` reports two versions: 0.11.0 and 0.11.1");
    says(&ended, "2 runs not measured: the plan or its server must be changed first, as reported above");
    assert_eq!(versions(&lab), [], "no run was committed");
    let attempts = std::fs::read_dir(lab.results().join("attempts")).unwrap().count();
    assert_eq!(attempts, 1, "the second run was not started");
    let why = lab.ok(&["why", "repeat == 0", "--plan", "plan.yaml"]);
    assert!(why.stdout.contains("reports two versions"), "{}", why.stdout);
}

#[test]
fn other_endpoints_go_on_beside_a_balancer() {
    let (balanced, fine) = (mock("0.11.0,0.11.1", &[]), mock("0.11.0", &[]));
    let lab = Lab::new();
    let text = plan(balanced.port, "", "")
        .replace(
            " } }\nmodels",
            &format!(" }}, b: {{ url: 'http://127.0.0.1:{}/v1', engine: mock }} }}\nmodels", fine.port),
        )
        .replace("endpoint: a", "endpoint: [a, b]");
    lab.write("plan.yaml", &text);
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert_eq!(versions(&lab), both("0.11.0", 1));
}

#[test]
fn a_server_that_does_not_answer_changes_nothing() {
    let lab = Lab::new();
    {
        let mock = mock("0.11.0", &[]);
        lab.write("plan.yaml", &plan(mock.port, "", ""));
        measured(&lab.run(&["run", "plan.yaml"]));
    }
    let ended = lab.run(&["run", "plan.yaml"]);
    measured(&ended);
    says(&ended, "nothing to do");
    says(&ended, "a: its server did not respond, so its version was not compared");
    assert_eq!(versions(&lab), both("0.11.0", 1));
}

#[test]
fn results_of_an_earlier_sweepline_are_left_alone() {
    let mock = mock("0.11.0", &[]);
    let lab = lab(&mock, "", "environment: pin\n");
    measured(&lab.run(&["run", "plan.yaml"]));
    for run in lab.runs().into_values() {
        let mut json = run.json.clone();
        json["environment"].as_object_mut().unwrap().shift_remove("fingerprint");
        run.put_old_record(json);
    }
    let before = mock.log_now().len();
    says(
        &lab.run(&["run", "plan.yaml"]),
        "nothing to do; the results of all 2 runs are in results; no request was sent",
    );
    assert_eq!(mock.log_now().len(), before);
}

#[test]
fn results_of_two_versions_are_never_read_as_one_in_silence() {
    let old = mock("0.11.0", &[]);
    let lab = lab(&old, "", "environment: ignore\n");
    measured(&lab.run(&["run", "plan.yaml", "--only", "batch_size == 1"]));
    let new = mock("0.11.1", &[]);
    lab.write("plan.yaml", &plan(new.port, "", "environment: ignore\n"));
    let run = lab.run(&["run", "plan.yaml"]);
    measured(&run);
    let note = "the results of a come from 2 different servers: mock 0.11.0 (1 run), mock 0.11.1 (1 run)";
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one_line(&run.stdout).contains(note), "{}", run.stdout);
    assert!(one_line(&lab.run(&["curves", "plan.yaml"]).stdout).contains(note));
    let arms = ["--by", "batch_size", "--baseline", "1", "--include-invalid"];
    let compared = lab.run(&[&["compare", "plan.yaml"][..], &arms].concat());
    assert!(compared.stdout.contains("server release: `1` 0.11.0, `2` 0.11.1"), "{}", compared.stdout);
    let curves = lab.run(&["curves", "plan.yaml", "--format", "json"]).json();
    lab.follows("curves", &curves);
    assert!(curves["mixed_servers"][0].as_str().unwrap().starts_with(note));
    let export = lab.run(&["export", "plan.yaml", "--format", "csv"]);
    assert!(one_line(&export.stderr).contains(note), "{}", export.stderr);
    let mut rows = csv::Reader::from_reader(export.stdout.as_bytes());
    let header = rows.headers().unwrap().clone();
    let at = header.iter().position(|column| column == "server_version").unwrap();
    let versions: Vec<String> = rows.records().map(|row| row.unwrap()[at].to_owned()).collect();
    assert_eq!(versions.len(), 2);
    assert!(["0.11.0", "0.11.1"].iter().all(|version| versions.iter().any(|other| other == version)), "{versions:?}");
}

#[test]
fn a_server_that_comes_up_late_is_compared_when_it_is_there() {
    let old = mock("0.11.0", &[]);
    for (policy, code) in [("match", None), ("pin", Some(2))] {
        let top = format!("environment: {policy}\n");
        let lab = lab(&old, "", &top);
        measured(&lab.run(&["run", "plan.yaml"]));
        let new = mock("0.11.1", &[]);
        let front = Front::absent(new.port);
        lab.write("plan.yaml", &plan(front.port, "", &top).replace("[1, 2]", "[1, 2, 3]"));
        let told = lab.path().join("stderr");
        let mut command = lab.command(&["run", "plan.yaml"]);
        let mut running = command.stderr(std::fs::File::create(&told).unwrap()).spawn().unwrap();
        let read = || std::fs::read_to_string(&told).unwrap();
        wait_for("the wait", || read().contains("a: waiting for up to").then_some(()));
        front.turn(Mood::Passes);
        let ended = running.wait().unwrap().code();
        let mut found = versions(&lab);
        found.sort();
        if code.is_some() {
            assert_eq!(ended, code, "{}", read());
            assert!(
                read().contains("endpoint `a` reports version 0.11.1, but its results were measured on 0.11.0"),
                "{}",
                read()
            );
            assert_eq!(found, both("0.11.0", 1));
        } else {
            assert!(matches!(ended, Some(0 | 3)), "{}", read());
            let text = "a: the server reports version 0.11.1 instead of 0.11.0; 2 runs are measured again";
            assert!(read().contains(text), "{}", read());
            let attempts: Vec<u64> = found.iter().map(|(_, attempt)| *attempt).collect();
            assert_eq!(attempts, [1, 2, 2], "{found:?}");
            assert!(found.iter().all(|(version, _)| version == "0.11.1"), "{found:?}");
        }
    }
}
