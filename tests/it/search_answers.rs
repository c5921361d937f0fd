//! Tests that a search has one answer: the load that is shown and the load that was observed are the same in every
//! output, gates answer only what is shown, and earlier results are read as before.

use serde_json::Value;

use lab::Lab;
use lab::sweeps::{honest, names};

/// A server with four slots whose responses take about 65 ms, so that it serves at most about 60 requests per second.
/// The windows are too short to show much.
const HEAD: &str = "
sweepline: 1
name: limit
seed: SEED
endpoints: { a: { engine: mock, mock: { ttft: 10ms, itl: 5ms, slots: 4, jitter: 30% } } }
models: { m: { id: demo } }
scenarios: { short: { prompt_tokens: 20, output_tokens: 12 } }
slo: { ttft: { p90: 60ms } }
phases: { fill: 0s, stabilize: 200ms, measure: { for: 3s, min_requests: 60, at_most: 10s }, drain: 5s }
validity: { client_late: { suspect: 100%, invalid: 100% } }
sweeps:
  limit: { matrix: { scenario: short }, search: { qps: { from: 10, to: 80, within: 10% }, confirm: CONFIRM } }
";

fn plan(seed: &str, confirm: &str) -> String {
    HEAD.replace("SEED", seed).replace("CONFIRM", confirm)
}

/// Returns the words of a text, without its line breaks.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the answer of the plan's search to its objective.
fn answer(lab: &Lab, plan: &str) -> Value {
    let preview = lab.ok(&["preview", plan, "--format", "json"]).json();
    lab.follows("preview", &preview);
    assert!(preview["choices"][0]["next"].is_null(), "{preview:#}");
    preview["choices"][0]["answers"][0].clone()
}

/// Asserts that every output has the figures `shown` and `observed`.
fn every_output_has(lab: &Lab, [shown, observed]: [&Value; 2]) {
    let both = |one: &Value| assert_eq!([&one["shown"], &one["observed"]], [shown, observed], "{one:#}");
    let curves = lab.ok(&["curves", "plan.yaml", "--format", "json"]).json();
    lab.follows("curves", &curves);
    both(&curves["curves"][0]);
    both(&curves["choices"][0]);
    // The loads themselves were seen to be what the figures state.
    for rung in curves["curves"][0]["rungs"].as_array().unwrap() {
        assert!(rung["load"] != *shown || rung["slo"] == "holds", "{rung:#}");
        assert!(rung["load"] != *observed || rung["observed"] == "holds", "{rung:#}");
        let is_above = rung["load"].as_f64() > observed.as_f64();
        assert!(rung["slo"] != "holds" || !is_above || curves["curves"][0]["slo"]["misses"].is_f64(), "{rung:#}");
    }
    // A heavier load whose own runs met the objective would contradict `observed` without a word.
    let curve = &curves["curves"][0];
    let alone = |rung: &&Value| rung["load"].as_f64() > observed.as_f64() && rung["observed"] == "holds";
    let alone: Vec<String> =
        curve["rungs"].as_array().unwrap().iter().filter(alone).map(|rung| rung["load"].to_string()).collect();
    let told = words(&lab.ok(&["curves", "plan.yaml"]).stdout);
    let said = format!("{} met it alone", alone.join(", "));
    assert_eq!(told.contains("met it alone"), !alone.is_empty(), "{alone:?}: {told}");
    assert!(alone.is_empty() || told.contains(&said), "{said}: {told}");
    let capacity = lab.ok(&["capacity", "plan.yaml", "--format", "json"]).json();
    lab.follows("capacity", &capacity);
    both(&capacity["configurations"][0]);
    assert_eq!(capacity["configurations"][0]["max_qps"]["holds"], *shown, "{capacity:#}");
    let decide =
        ["decide", "plan.yaml", "--accept", "sweep == 'limit'", "--because", "It is alone.", "--format", "json"];
    let decided = lab.ok(&decide).json();
    lab.follows("decide", &decided);
    both(&decided["configurations"][0]);
    let why = lab.ok(&["why", "limit", "--plan", "plan.yaml", "--format", "json"]).json();
    both(&why["choices"][0]);

    let record = std::fs::read_to_string(lab.path().join("plan.decision.md")).unwrap();
    lab.ok(&["report", "plan.yaml", "-o", "report.html"]);
    let page = std::fs::read_to_string(lab.path().join("report.html")).unwrap();
    let told = |args: &[&str]| lab.ok(args).stdout;
    let figure = |load: &Value, before: &str| match load.as_f64() {
        Some(load) => format!("{before} {load} qps"),
        None => format!("{before} none"),
    };
    let run = lab.run(&["run", "plan.yaml"]).stderr;
    for (what, text) in [
        ("run", run),
        ("curves", told(&["curves", "plan.yaml"])),
        ("capacity", told(&["capacity", "plan.yaml"])),
        ("why", told(&["why", "limit", "--plan", "plan.yaml"])),
        ("preview", told(&["preview", "plan.yaml"])),
        ("decide", record),
        ("report", page),
    ] {
        let text = words(&text);
        for (load, name) in [(shown, "shown"), (observed, "observed")] {
            assert!(text.contains(&figure(load, name)), "{what}: {}: {text}", figure(load, name));
        }
        // What a list of loads may claim is not claimed of a search.
        for claim in ["holds up to qps", "may lie anywhere", "observed up to"] {
            assert!(!text.contains(claim), "{what}: {claim}: {text}");
        }
    }
}

/// Runs the plan with a gate on the search, and returns the exit code and what `run` printed.
fn gate(lab: &Lab, plan: &str, bound: f64) -> (Option<i32>, String) {
    let gate = format!("{{ sweep: limit, metric: max_qps_under_slo, at_least: {bound} }}");
    lab.write("gate.yaml", &format!("{plan}  later: {{ matrix: {{ scenario: short, qps: 5 }}, gate: {gate} }}\n"));
    let ended = lab.run(&["run", "gate.yaml"]);
    (ended.code, words(&ended.stderr))
}

/// Returns whether the search of the plan observed a higher load than it showed.
fn has_one_answer(seed: &str, confirm: &str) -> bool {
    let lab = Lab::new();
    let text = plan(seed, confirm);
    lab.write("plan.yaml", &text);
    honest(&lab.run(&["run", "plan.yaml"]));
    let answer = answer(&lab, "plan.yaml");
    let (shown, observed) = (&answer["shown"], &answer["observed"]);
    assert!(shown.as_f64() <= observed.as_f64() && observed.is_f64(), "{answer:#}");
    every_output_has(&lab, [shown, observed]);
    let highest = observed.as_f64().unwrap();
    if let Some(shown) = shown.as_f64() {
        let (code, said) = gate(&lab, &text, shown);
        assert!(code == Some(0) || said.contains("in doubt"), "{code:?}: {said}");
    }
    let (code, said) = gate(&lab, &text, 79.0);
    assert!(code == Some(4) || said.contains("cannot be decided") || said.contains("in doubt"), "{code:?}: {said}");
    if shown != observed {
        // The value that was only observed passes no gate.
        let (code, said) = gate(&lab, &text, highest);
        assert!(code == Some(2) && !said.contains(": yes"), "{code:?}: {said}");
        let says_how_long = said.contains(" decide this") || said.contains("in doubt");
        assert!(says_how_long, "{said}");
    }
    shown != observed
}

#[test]
fn a_search_has_one_answer_in_every_output_and_gates_answer_only_what_is_shown() {
    let cases = [("1", "0s"), ("5", "20s"), ("2", "5s"), ("1", "5s"), ("8", "20s")];
    let cases = &cases[..if lab::is_whole() { 5 } else { 2 }];
    let unshown = std::thread::scope(|scope| {
        let start = |(seed, confirm): &(&'static str, &'static str)| {
            let (seed, confirm) = (*seed, *confirm);
            scope.spawn(move || has_one_answer(seed, confirm))
        };
        let started: Vec<_> = cases.iter().map(start).collect();
        started.into_iter().map(|case| case.join().expect("one answer")).filter(|is_unshown| *is_unshown).count()
    });
    assert!(unshown > 0, "short windows show less than they observe");
}

#[test]
fn a_later_sweep_takes_what_is_shown_if_it_asks_for_it() {
    let lab = Lab::new();
    let text = plan("2", "5s");
    let later = |value: &str| {
        format!(
            "{text}  later: {{ matrix: {{ scenario: short, qps: {{ from: limit, take: max_qps_under_slo{value} }} }} }}\n"
        )
    };
    lab.write("plan.yaml", &text);
    honest(&lab.run(&["run", "plan.yaml"]));
    let answer = answer(&lab, "plan.yaml");
    for (file, value, figure) in [("found.yaml", "", "found"), ("shown.yaml", ", value: shown", "shown")] {
        lab.write(file, &later(value));
        lab.ok(&["check", file]);
        let preview = lab.ok(&["preview", file, "--format", "json"]).json();
        let runs = preview["runs"].as_array().unwrap().iter();
        let loads: Vec<&Value> = runs.filter(|run| run["sweep"] == "later").map(|run| &run["cell"]["qps"]).collect();
        match answer[figure].as_f64() {
            Some(load) => assert_eq!(loads, [&Value::from(load)], "{figure}"),
            None => assert_eq!(preview["pending"][0]["state"], "blocked", "{preview:#}"),
        }
    }
    lab.write("wrong.yaml", &later(", value: observed"));
    let wrong = lab.run(&["check", "wrong.yaml"]);
    assert_eq!(wrong.code, Some(2), "{}{}", wrong.stdout, wrong.stderr);
}

/// An earlier version ended with the ordinary run that follows a long run which met the objective without showing
/// it. Its results are those of today without the long runs in between.
#[test]
fn a_search_that_an_earlier_version_ended_requests_no_more_runs() {
    let mut without = 0;
    let seeds = ["2", "1", "4"];
    for seed in &seeds[..if lab::is_whole() { 3 } else { 1 }] {
        let lab = Lab::new();
        lab.write("plan.yaml", &plan(seed, "5s"));
        honest(&lab.run(&["run", "plan.yaml"]));
        let now = answer(&lab, "plan.yaml");
        let again = lab.run(&["run", "plan.yaml"]);
        assert!(again.stderr.contains("nothing to do"), "{}", again.stderr);
        let why = lab.ok(&["why", "limit", "--plan", "plan.yaml", "--format", "json"]).json();
        let steps = why["choices"][0]["steps"].as_array().unwrap();
        let long = steps.iter().filter(|step| step["purpose"] == "confirm");
        let mut later = long.skip_while(|step| step["load"] != now["found"] || step["answer"] == "misses");
        later.next();
        let later: Vec<&str> = later.map(|step| &step["runs"][0].as_str().unwrap()[..16]).collect();
        for run in &later {
            std::fs::rename(lab.results().join("runs").join(run), lab.path().join(run)).unwrap();
        }
        without += later.len();
        let before = names(&lab, "runs");
        let then = answer(&lab, "plan.yaml");
        assert_eq!((&then["found"], &then["end"]), (&now["found"], &now["end"]), "{then:#}");
        let again = lab.run(&["run", "plan.yaml"]);
        assert!(again.stderr.contains("nothing to do"), "{}", again.stderr);
        assert_eq!(names(&lab, "runs"), before);
    }
    assert!(without > 0, "no search made a long run to show its load");
}
