//! Tests searches and choices of settings in which the generator was stopped during some runs (SIGSTOP):
//! such a run provides no evidence on the server, and another one takes its place.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use lab::choices::{choice, decides_the_same_wherever_it_is_cut, plan};
use lab::plans::LADDER;
use lab::sweeps::honest;
use lab::{Ended, Lab, wait_for};

/// How long the generator is stopped, which is far more than the twentieth of a window that makes a run
/// invalid.
const STOPPED: Duration = Duration::from_millis(500);

/// Runs the plan and stops the generator inside the windows of these runs, counted from 0, which makes them
/// useless for judging the server.
fn spoil(lab: &Lab, which: &[usize]) -> Ended {
    let running = lab.start(&["run", "plan.yaml", "--progress", "plain", "--events", "events.jsonl"]);
    let windows = || {
        let events = std::fs::read_to_string(lab.path().join("events.jsonl")).unwrap_or_default();
        events.lines().filter(|line| line.contains(r#""phase":"measure""#)).count()
    };
    for at in which {
        wait_for("a window", || (windows() > *at).then_some(()));
        running.signal(Signal::STOP);
        let stopped = Instant::now();
        // This test is about the pause.
        std::thread::sleep(STOPPED);
        assert!(stopped.elapsed() >= STOPPED);
        running.signal(Signal::CONT);
    }
    running.end()
}

/// Returns a plan with settings of one slot and eight slots; the second setting is several times as
/// fast.
fn two(optimize: &str) -> String {
    plan(optimize).replace("[1, 8, 16]", "[1, 8]").replace("measure: 500ms", "measure: 2s")
}

fn became(lab: &Lab) -> Vec<(String, String)> {
    let why = lab.ok(&["why", "flags", "--plan", "plan.yaml", "--format", "json"]).json();
    lab.follows("why", &why);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let trials = why["choices"][0]["trials"].as_array().unwrap();
    trials.iter().map(|trial| (text(&trial["settings"]), text(&trial["became"]))).collect()
}

fn settings_whose_run_the_client_spoiled_have_another_and_the_best_is_found_all_the_same() {
    let lab = Lab::measured_time();
    lab.write("plan.yaml", &two("optimize: { for: output_throughput, budget: 1m }"));
    let ended = spoil(&lab, &[1]);
    let after = choice(&lab);
    let standing = after["standing"].as_str().unwrap();
    assert!(standing.starts_with("best: slots=8 with "), "{standing}");
    assert!(standing.contains("; one run was invalid and is inconclusive; 3 runs"), "{standing}");
    let pair = |settings: &str, became: &str| (settings.to_owned(), became.to_owned());
    let expected = [pair("slots=1", "left_out"), pair("slots=8", "says_nothing"), pair("slots=8", "best")];
    assert_eq!(became(&lab), expected);
    // The result was decided without that run, which is named.
    let named = "flags: m · tiny · short · 8: run ";
    let line = ended.stderr.lines().find(|line| line.starts_with(named)).unwrap_or_else(|| panic!("{}", ended.stderr));
    assert!(line.ends_with(" is invalid: client_paused; another run replaced it"), "{line}");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let told = lab.ok(&["why", "flags", "--plan", "plan.yaml"]).stdout;
    assert!(told.contains("inconclusive (invalid: client_paused)"), "{told}");
    let again = lab.ok(&["run", "plan.yaml"]);
    assert!(again.stderr.contains("nothing to do") && again.stderr.contains(named), "{}", again.stderr);
    decides_the_same_wherever_it_is_cut(&lab);
}

fn settings_of_which_no_run_says_anything_are_undecided_beside_the_answer() {
    let lab = Lab::measured_time();
    lab.write("plan.yaml", &two("optimize: { for: output_throughput, budget: 1m }"));
    let ended = spoil(&lab, &[1, 2]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let after = choice(&lab);
    let standing = after["standing"].as_str().unwrap();
    assert!(standing.starts_with("undecided; best of those measured: slots=1 with "), "{standing}");
    let caveat = "; slots=8 is undecided: its runs are inconclusive (invalid: client_paused); 3 runs";
    assert!(standing.ends_with(caveat) && ended.stderr.contains(caveat), "{standing}");
    assert_eq!((&after["settings"][1]["value"], &after["settings"][1]["runs"]), (&Value::Null, &2.into()), "{after:#}");
    let graph = lab.ok(&["graph", "plan.yaml", "--format", "text"]).stdout;
    assert!(graph.contains("slots=8 is undecided"), "{graph}");
    lab.ok(&["report", "plan.yaml", "-o", "report.html"]);
    let page = std::fs::read_to_string(lab.path().join("report.html")).unwrap();
    assert!(page.contains("slots=8 is undecided"), "the report states it");
    // When it is measured again, it is the best setting.
    honest(&lab.run(&["run", "plan.yaml", "--redo", "invalid"]));
    assert!(choice(&lab)["standing"].as_str().unwrap().starts_with("best: slots=8 with "), "{:#}", choice(&lab));
}

fn an_invalid_probe_that_its_search_made_again_is_named_and_changes_no_exit_code() {
    let lab = Lab::measured_time();
    let head = LADDER.split("  ladder:").next().unwrap().replace("measure: 3500ms", "measure: 2s");
    let plan = |least: u32| {
        format!(
            "{head}  limit: {{ matrix: {{ scenario: short }}, search: {{ batch_size: {{ from: 2, to: 16, within: 50% }}, confirm: 0s }} }}\n  \
             checked: {{ matrix: {{ scenario: short, batch_size: 1 }}, gate: {{ sweep: limit, metric: max_batch_size_under_slo, \
             at_least: {least} }} }}\n"
        )
    };
    lab.write("plan.yaml", &plan(2));
    let ended = spoil(&lab, &[1]);
    let named = "limit: a · m · short: run ";
    let line = ended.stderr.lines().find(|line| line.starts_with(named)).unwrap_or_else(|| panic!("{}", ended.stderr));
    assert!(line.ends_with(" is invalid: client_paused; another run replaced it"), "{line}");
    assert!(!ended.stderr.contains("--redo invalid"), "{}", ended.stderr);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    lab.write("no.yaml", &plan(16));
    let refused = lab.run(&["run", "no.yaml"]);
    assert!(refused.code == Some(4) && refused.stderr.contains(named), "{:?}: {}", refused.code, refused.stderr);
    // A run on which the search does not base a decision stays invalid. If another sweep requests the
    // run, it is missing there.
    let id = &line[named.len()..][..8];
    let record = lab.runs().into_iter().find(|(short, _)| short.starts_with(id)).expect("the run").1.json;
    let spec = &record["spec"];
    let (load, repeat) = (spec["load"]["closed"]["batch_size"].as_u64().unwrap(), spec["repeat"].as_u64().unwrap());
    let other = format!("  other: {{ matrix: {{ scenario: short, batch_size: {load} }}, repeats: {} }}\n", repeat + 1);
    lab.write("other.yaml", &(plan(2) + &other));
    let runs = lab.ok(&["preview", "other.yaml", "--format", "json"]).json()["runs"].as_array().unwrap().clone();
    let shared = runs.iter().find(|run| run["sweep"] == "other" && run["id"].as_str().unwrap().starts_with(id));
    assert!(shared.is_some_and(|run| run["state"] == "cached"), "{runs:#?}");
    let short = &shared.unwrap()["id"].as_str().unwrap()[..16];
    let ended = lab.run(&["run", "other.yaml", "--only", &format!("id[:16] == '{short}'")]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
}

lab::measured_tests![
    settings_whose_run_the_client_spoiled_have_another_and_the_best_is_found_all_the_same,
    settings_of_which_no_run_says_anything_are_undecided_beside_the_answer,
    an_invalid_probe_that_its_search_made_again_is_named_and_changes_no_exit_code,
];
