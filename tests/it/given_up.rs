//! Tests runs that were given up, in every command that shows results: the load is not sustained, the run
//! is named, and it never has figures.

use std::path::Path;

use serde_json::{Value, json};

use lab::sweeps::honest;
use lab::{Lab, Run};

/// A ladder that a mock sustains easily, and two arms.
const PLAN: &str = "\
sweepline: 1
name: limited
seed: 7
endpoints:
  a: { engine: mock, mock: { ttft: 20ms, itl: 1ms, jitter: 50% }, hardware: { gpus: 1, price_per_hour: 2 } }
  b: { engine: mock, mock: { ttft: 20ms, itl: 1ms, jitter: 50% } }
models: { m: { id: tiny } }
scenarios: { short: { base: B1, output_tokens: 4 } }
phases: { fill: 0s, stabilize: 0s, measure: { for: 5s, min_requests: 40, at_most: 60s }, drain: 60s }
slo: { ttft: { p50: 5s } }
validity: { client_late: { suspect: 100%, invalid: 100% } }
sweeps:
  ladder: { matrix: { endpoint: [a], model: [m], scenario: [short], qps: [40, 60, 80, 100] } }
  arms:
    matrix: { endpoint: [a, b], model: [m], scenario: [short], batch_size: [4] }
    repeats: 3
    phases: { measure: { for: 500ms, min_requests: 60, at_most: 60s } }
    compare: { by: endpoint, baseline: a, metrics: [ttft_p50] }
";

/// A server's error text, which is shown unchanged.
const SAID: &str = "HTTP 429 Too Many Requests: limit of 5 requests/s";

/// Measures the plan. The mock sustains the whole ladder easily. If results suggest otherwise, the machine
/// was too busy, and everything is measured again, at most three times.
fn measured() -> Lab {
    let once = || {
        let lab = Lab::new();
        lab.write("plan.yaml", PLAN);
        honest(&lab.run(&["run", "plan.yaml", "-q", "--jobs", "2"]));
        let holds = ladder(&json(&lab, &asked("curves", &[])), "curves")["slo"]["holds"].clone();
        (lab, holds)
    };
    for _ in 0..3 {
        match once() {
            (lab, holds) if holds == 100.0 => return lab,
            (_, holds) => eprintln!("measured again: only {holds} qps held"),
        }
    }
    once().0
}

/// Returns the committed run of an endpoint with this load and repeat.
fn find(lab: &Lab, endpoint: &str, load: (&str, f64), repeat: u64) -> Run {
    let is = |run: &Run| {
        let spec = &run.json["spec"];
        let own = &run.json["facts"][load.0];
        spec["endpoint"]["name"] == endpoint && own.as_f64() == Some(load.1) && spec["repeat"] == repeat
    };
    lab.runs().into_values().find(is).unwrap_or_else(|| panic!("no {endpoint} at {load:?}"))
}

/// Makes the run look as if its first attempt and all three retries had been spoiled, where the
/// last `attempt.json` contains the cause.
fn give_up(lab: &Lab, run: &Run, cause: &str) -> Value {
    give_up_saying(lab, run, cause, SAID)
}

/// Does the same, with the server's error text.
pub fn give_up_saying(lab: &Lab, run: &Run, cause: &str, said: &str) -> Value {
    let id = run.dir.file_name().unwrap().to_str().unwrap();
    std::fs::remove_dir_all(&run.dir).unwrap();
    std::fs::remove_file(lab.results().join(format!("inventory/{id}.json"))).unwrap();
    (1..=3).for_each(|number| drop(write_attempt(lab, run, (number, cause, said), None)));
    write_attempt(lab, run, (4, cause, said), Some(3))
}

fn write_attempt(lab: &Lab, run: &Run, (number, cause, said): (u32, &str, &str), given_up: Option<u32>) -> Value {
    let id = run.dir.file_name().unwrap().to_str().unwrap();
    let of = |key: &str| run.json[key].clone();
    let mut attempt = json!({
        "format": 1, "id": of("id"), "attempt": number, "started": of("started"), "pid": 1, "ended": of("ended"), "failure": said,
        "spoiled": { "cause": cause, "detail": said }, "spec": of("spec"),
    });
    if let Some(retries) = given_up {
        attempt["given_up"] = retries.into();
    }
    let text = serde_json::to_string_pretty(&attempt).unwrap();
    lab.write(&format!("results/attempts/{id}.{number}/attempt.json"), &text);
    attempt
}

fn json(lab: &Lab, args: &[&str]) -> Value {
    let answer = lab.ok(&[args, &["--format", "json"]].concat()).json();
    lab.follows(args[0], &answer);
    answer
}

fn said(lab: &Lab, args: &[&str]) -> String {
    let ended = lab.ok(args);
    // Lines are wrapped to fit the width.
    (ended.stdout + &ended.stderr).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn ladder(answer: &Value, of: &str) -> Value {
    let entries = answer[of].as_array().unwrap();
    entries.iter().find(|entry| entry["sweep"] == "ladder").unwrap_or_else(|| panic!("{answer:#}")).clone()
}

const LADDER: [&str; 2] = ["--only", "sweep == 'ladder'"];

fn asked<'a>(command: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&[command, "plan.yaml"], more, &LADDER[..]].concat()
}

#[test]
fn a_load_that_was_given_up_is_not_met_wherever_it_is_shown() {
    let lab = measured();
    let run = find(&lab, "a", ("qps", 80.0), 0);
    let id = run.json["id"].clone();
    give_up(&lab, &run, "rate_limited");

    let answer = json(&lab, &asked("curves", &[]));
    let curve = ladder(&answer, "curves");
    let rung = &curve["rungs"][2];
    assert_eq!((&rung["load"], &rung["runs"], &rung["slo"]), (&json!(80.0), &json!([]), &json!("misses")), "{rung:#}");
    assert_eq!((&rung["given_up"], &rung["given_up_reason"]), (&json!([id]), &json!("429 (3 of 3)")));
    assert!(rung["figures"].as_object().unwrap().values().all(Value::is_null), "{rung:#}");
    assert_eq!(
        rung["pareto"],
        json!({ "user_over_gpu": false, "throughput_over_p99": false, "cost_over_latency": null })
    );
    let slo = &curve["slo"];
    assert_eq!([&slo["holds"], &slo["misses"], &slo["out_of_order"]], [&json!(60.0), &json!(80.0), &json!([100.0])]);
    let entry = &answer["given_up"][0];
    assert_eq!((&answer["missing"], &entry["run"], &entry["qps"]), (&json!(0), &id, &json!(80.0)), "{answer:#}");
    assert_eq!([&entry["cause"], &entry["detail"]], ["rate_limited", SAID]);
    assert_eq!(entry["missed"], true);
    // The heavier load, which succeeded, is no longer a step of the curve, because the curve ends at the
    // load that is not sustained.
    assert_eq!((&curve["knee"]["load"], &curve["knee"]["between"]), (&json!(60.0), &json!([40.0, 80.0])), "{curve:#}");
    let text = said(&lab, &asked("curves", &[]));
    assert!(text.contains("holds up to qps 60, misses at 80; holds again at 100"), "{text}");
    assert!(text.contains("given up: 429 (3 of 3) at qps 80: does not sustain the load"), "{text}");
    assert!(
        text.contains(
            "1 of the plan's runs was given up: 1 for 429 (3 of 3); `sweepline run plan.yaml --redo given-up`"
        )
    );
    assert!(!text.contains("no result yet"), "{text}");
    let wide = lab.ok(&asked("curves", &[])).stdout;
    assert!(wide.lines().all(|line| line.chars().count() <= 100), "{wide}");

    // The server sustains 60 per second, so 100 per second need two instances. Two would also be
    // needed if it sustained 80.
    let answer = json(&lab, &asked("capacity", &["--target-qps", "100"]));
    let found = ladder(&answer, "configurations");
    let counted = [&found["max_qps"]["holds"], &found["max_qps"]["misses"], &found["fleet"]["instances"]];
    assert_eq!(counted, [&json!(60.0), &json!(80.0), &json!(2)], "{found:#}");
    assert_eq!(answer["given_up"][0]["run"], id);
    let text = said(&lab, &asked("capacity", &[]));
    assert!(text.contains("at qps 80: given up: 429 (3 of 3)"), "{text}");

    let found = json(&lab, &asked("diagnose", &[]));
    assert_eq!((&found["given_up"][0]["run"], &found["missing"]), (&id, &json!(0)));
    assert!(said(&lab, &asked("diagnose", &[])).contains("was given up: 1 for 429 (3 of 3)"));
}

#[test]
fn a_gate_names_a_load_that_was_given_up() {
    let lab = measured();
    let gate = |lab: &Lab| lab.run(&["run", "plan.yaml", "--gate", "--only", "sweep == 'ladder'"]);
    let fine = gate(&lab);
    assert!(["gate: passed", "gate: nothing failed"].iter().any(|line| fine.stderr.contains(line)), "{}", fine.stderr);
    give_up(&lab, &find(&lab, "a", ("qps", 80.0), 0), "rate_limited");
    let ended = gate(&lab);
    let missed = "gate: 1 failed\n  a · short · 80 qps: given up: 429 (3 of 3): the server does not sustain the load";
    assert!(ended.stderr.contains(missed), "{}", ended.stderr);
    let listed = "80 qps: given up: 429 (3 of 3): HTTP 429 Too Many Requests";
    assert!(ended.stdout.contains("retried only with --redo given-up:") && ended.stdout.contains(listed), "{ended:?}");
    assert!(!ended.stdout.lines().any(|line| line.contains("80") && line.contains("n/a")), "it has no row of numbers");
    assert_eq!(lab.runs().len(), 9, "nothing was measured");
    // For an unknown model, no figures are known.
    give_up(&lab, &find(&lab, "a", ("qps", 100.0), 0), "unknown_model");
    let ended = gate(&lab);
    assert!(ended.stderr.contains("gate: 1 failed") && ended.stdout.contains("given up: 404 (3 of 3)"), "{ended:?}");
}

#[test]
fn exports_name_what_was_given_up_and_give_it_no_number() {
    let lab = measured();
    let run = find(&lab, "a", ("qps", 100.0), 0);
    let id = run.json["id"].as_str().unwrap().to_owned();
    let attempt = give_up(&lab, &run, "unavailable");

    for plan in [&["plan.yaml"][..], &[]] {
        let rows = lab.ok(&[&["export"], plan, &["--format", "json"]].concat()).json();
        let schema = lab.ok(&["schema", "export"]).json();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<String> = validator.iter_errors(&rows).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        let rows = rows.as_array().unwrap();
        assert_eq!(rows.len(), 4 + 6, "each run of the plan is a row");
        let row = rows.last().unwrap().as_object().unwrap();
        assert_eq!((&row["run_id"], &row["verdict"], &row["attempt"]), (&json!(id), &json!("given_up"), &json!(4)));
        assert_eq!((&row["given_up"], &row["first_error"]), (&json!("503 (3 of 3)"), &json!(SAID)));
        assert_eq!((&row["started"], &row["qps"]), (&attempt["started"], &json!(100.0)));
        // The values that the plan declares are known; measured values are missing.
        assert_eq!((&row["engine"], &row["objective"]), (&json!("mock"), &Value::Null));
        let behind = row.keys().position(|name| name == "requests").unwrap();
        assert!(row.values().skip(behind).all(Value::is_null), "no number: {row:?}");
        assert!(rows[..9].iter().all(|row| row["verdict"] != "given_up" && row["given_up"].is_null()));
    }
    let csv = lab.ok(&["export", "plan.yaml", "--columns", "qps,verdict,given_up,requests,ttft_p50_ms"]);
    assert_eq!(csv.stdout.lines().last(), Some("100,given_up,503 (3 of 3),,"), "{}", csv.stdout);
    assert!(
        csv.stderr.contains("note: 1 run was given up (503 (3 of 3)): verdict given_up, no numbers"),
        "{}",
        csv.stderr
    );
    assert!(!csv.stderr.contains("no result yet"), "{}", csv.stderr);
    let markdown = lab.ok(&["export", "plan.yaml", "--format", "markdown"]).stdout;
    let line = markdown.lines().find(|line| line.contains("| 503 (3 of 3)")).unwrap();
    assert!(line.matches("n/a").count() >= 7, "{line}");

    let curves = lab.ok(&["export", "plan.yaml", "--rows", "curves", "--format", "json"]).json();
    let rung = curves.as_array().unwrap().iter().find(|row| row["load"] == 100.0).unwrap();
    assert_eq!((&rung["runs"], &rung["given_up"], &rung["objective"]), (&json!(0), &json!(1), &json!("misses")));
    assert_eq!((&rung["given_up_reason"], &rung["e2e_p99_ms"]), (&json!("503 (3 of 3)"), &Value::Null));

    // Exports that contain only measured rows are unchanged.
    let requests = lab.ok(&["export", "plan.yaml", "--rows", "requests", "--columns", "run_id"]).stdout;
    assert!(requests.lines().count() > 9 * 40 && !requests.contains(&id));
    lab.ok(&["export", "--format", "parquet"]);
    let runs = std::fs::File::open(lab.results().join("runs.parquet")).unwrap();
    let reader = parquet::file::reader::SerializedFileReader::new(runs).unwrap();
    let rows = parquet::file::reader::FileReader::metadata(&reader).file_metadata().num_rows();
    assert_eq!(rows, 9, "one row for each result");
    lab.ok(&["export", "plan.yaml", "-o", "book.xlsx"]);
    assert!(Path::new(&lab.path().join("book.xlsx")).exists());
}

#[test]
fn an_unknown_model_says_nothing_of_the_load() {
    let lab = measured();
    let run = find(&lab, "a", ("qps", 80.0), 0);
    give_up(&lab, &run, "unknown_model");
    let answer = json(&lab, &asked("curves", &[]));
    let curve = ladder(&answer, "curves");
    assert_eq!((&curve["rungs"][2]["slo"], &answer["given_up"][0]["missed"]), (&Value::Null, &json!(false)));
    let slo = &curve["slo"];
    assert_eq!([&slo["holds"], &slo["misses"], &slo["unknown"]], [&json!(100.0), &Value::Null, &json!([80.0])]);
    let text = said(&lab, &asked("curves", &[]));
    assert!(text.contains("given up: 404 (3 of 3) at qps 80: load not measured"), "{text}");
    let answer = json(&lab, &asked("capacity", &[]));
    assert_eq!(ladder(&answer, "configurations")["max_qps"]["misses"], Value::Null);

    // If only given-up runs are left, they are the result, and the call is not an error.
    for load in [40.0, 60.0, 100.0] {
        give_up(&lab, &find(&lab, "a", ("qps", load), 0), "unknown_model");
    }
    let text = said(&lab, &asked("capacity", &[]));
    assert!(text.contains("no run counts: all were given up: 404 (3 of 3)"), "{text}");
}

#[test]
fn a_repeat_that_was_given_up_is_named_and_takes_its_pair_along() {
    let lab = measured();
    let then = lab.path().join("then");
    let copied = std::process::Command::new("cp").arg("-r").arg(lab.results()).arg(&then).status().unwrap();
    assert!(copied.success());
    let run = find(&lab, "b", ("batch_size", 4.0), 1);
    give_up(&lab, &run, "refused");

    let text = said(&lab, &["curves", "plan.yaml", "--only", "sweep == 'arms' and endpoint == 'b'"]);
    assert!(
        text.contains(
            "given up: connection refused (3 of 3) at batch_size 4 (repeat 1 of 3): does not sustain the \
                       load"
        ),
        "{text}"
    );
    assert!(text.contains("no load is shown to hold; batch_size 4 misses"), "{text}");
    let answer = json(&lab, &["curves", "plan.yaml", "--only", "sweep == 'arms' and endpoint == 'b'"]);
    let rung = &answer["curves"][0]["rungs"][0];
    assert_eq!((rung["runs"].as_array().unwrap().len(), &rung["slo"]), (2, &json!("misses")));
    assert!(rung["figures"]["ttft_p50_ms"]["value"].is_number(), "from the two remaining runs: {rung:#}");

    let reason = json!({ "arm": "b", "repeat": 1, "reason": "given up: connection refused (3 of 3)" });
    let cell = json(&lab, &["compare", "plan.yaml"])["families"][0]["cells"][0].clone();
    assert_eq!((&cell["left_out"], &cell["tests"][0]["rounds"]), (&json!([reason]), &json!(2)), "{cell:#}");
    let text = said(&lab, &["compare", "plan.yaml"]);
    assert!(text.contains("excluded: repeat 1 of b: given up: connection refused (3 of 3)"), "{text}");
    assert!(text.contains("`b` does not sustain this load in 1 of 3 repeats, where it was given up"), "{text}");

    // Current results are compared with earlier ones, and vice versa, by folder and by file.
    let arms = ["--only", "sweep == 'arms' and endpoint == 'b'"];
    let text = said(&lab, &[&["compare", "plan.yaml", "--against", "then"], &arms[..]].concat());
    assert!(text.contains("excluded: repeat 1 of now: given up: connection refused (3 of 3)"), "{text}");
    let text = said(&lab, &["compare", "plan.yaml", "--write-baseline", "base.json"]);
    assert!(text.contains("9 of 10 runs, 1 given up;"), "{text}");
    for earlier in ["results", "base.json"] {
        let swapped = ["compare", "plan.yaml", "--results", "then", "--against", earlier];
        let text = said(&lab, &[&swapped[..], &arms[..]].concat());
        assert!(
            text.contains(&format!("excluded: repeat 1 of {earlier}: given up: connection refused (3 of 3)")),
            "{text}"
        );
    }
}

#[test]
fn only_what_the_plan_asks_for_and_has_no_result_counts() {
    let lab = measured();
    // A failed repetition does not affect a result, nor do failures before a success.
    let repeated = find(&lab, "a", ("qps", 40.0), 0);
    write_attempt(&lab, &repeated, (7, "refused", SAID), Some(3));
    let run = find(&lab, "a", ("qps", 60.0), 0);
    give_up(&lab, &run, "refused");
    lab.write("other.yaml", &PLAN.replace("qps: [40, 60, 80, 100]", "qps: [40, 80, 100]"));
    let answer = json(&lab, &["curves", "other.yaml", LADDER[0], LADDER[1]]);
    assert_eq!((&answer["given_up"], &answer["missing"]), (&json!([]), &json!(0)));
    assert!(!said(&lab, &["curves", "other.yaml"]).contains("given up"));
    let rows = lab.ok(&["export", "plan.yaml", "--format", "json"]).json();
    let is = |verdict: &str| rows.as_array().unwrap().iter().filter(|row| row["verdict"] == verdict).count();
    assert_eq!((is("given_up"), rows.as_array().unwrap().len()), (1, 10));

    // A plan that allows more retries continues; a plan that never gives up has nothing to report.
    for retries in [5, 0] {
        let more = format!("a: {{ engine: mock, retries: {{ runs: {retries} }}");
        lab.write("more.yaml", &PLAN.replace("a: { engine: mock", &more));
        let answer = json(&lab, &["curves", "more.yaml", LADDER[0], LADDER[1]]);
        assert_eq!((&answer["given_up"], &answer["missing"]), (&json!([]), &json!(1)), "{retries}");
    }

    // The user requested the run again and interrupted it, so it is missing like any other run.
    let mut afresh = write_attempt(&lab, &run, (5, "refused", SAID), None);
    let object = afresh.as_object_mut().unwrap();
    object.shift_remove("spoiled");
    object.insert("failure".to_owned(), "interrupted".into());
    object.insert("afresh".to_owned(), true.into());
    let id = run.dir.file_name().unwrap().to_str().unwrap();
    lab.write(&format!("results/attempts/{id}.5/attempt.json"), &afresh.to_string());
    let answer = json(&lab, &asked("curves", &[]));
    assert_eq!((&answer["given_up"], &answer["missing"]), (&json!([]), &json!(1)));
}
