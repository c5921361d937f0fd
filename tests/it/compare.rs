//! Tests `compare` and `run --gate` through the program: two arms of the mock, earlier and current
//! results, gates.

use serde_json::{Value, json};

use lab::{Ended, Lab};

/// Two arms, one of which is 3 % slower, in eight repeats. Times are long compared with the delays of a
/// busy machine, and a stalled generator does not make runs invalid.
const ARMS: &str = "sweepline: 1
name: engines
endpoints:
  base: { engine: mock, mock: { ttft: 400ms, itl: 40ms, jitter: 2% } }
  slow: { engine: mock, mock: { ttft: 412ms, itl: 41200us, jitter: 2% } }
models: { m: { id: tiny } }
scenarios: { short: { base: B1, output_tokens: 3 } }
validity: { client_late: { suspect: 100%, invalid: 100% } }
phases: { fill: 100ms, stabilize: 100ms, measure: { for: 700ms, min_requests: 40, at_most: 60s }, drain: 60s }
compare: { by: endpoint, baseline: base, metrics: [ttft_p50, e2e_p50, output_throughput] }
sweeps:
  load: { matrix: { endpoint: [base, slow], model: m, scenario: short, batch_size: 24 }, repeats: 8 }
";

/// Returns a plan with one cell of one fast endpoint and this many repeats.
fn quick(repeats: u32, more: &str) -> String {
    format!(
        "sweepline: 1
name: nightly
endpoints: {{ a: {{ engine: mock, mock: {{ ttft: 15ms, itl: 2ms, jitter: 5% }} }} }}
models: {{ m: {{ id: tiny }} }}
scenarios: {{ short: {{ base: B1, output_tokens: 4 }} }}
validity: {{ client_late: {{ suspect: 100%, invalid: 100% }} }}
phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 200ms, min_requests: 60, at_most: 60s }}, drain: 60s }}
{more}sweeps:
  load: {{ matrix: {{ endpoint: a, model: m, scenario: short, batch_size: 4 }}, repeats: {repeats} }}
"
    )
}

/// Returns the plan's comparison as JSON, validated against its schema.
fn compared(lab: &Lab, args: &[&str]) -> Value {
    let answer = lab.ok(&[&["compare", "plan.yaml", "--format", "json"], args].concat()).json();
    let schema = lab.ok(&["schema", "compare"]).json();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(&answer).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    answer
}

/// Returns the test of a metric in the only cell.
fn test<'a>(answer: &'a Value, metric: &str) -> &'a Value {
    let cells = answer["families"][0]["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 1, "{answer}");
    let tests = cells[0]["tests"].as_array().unwrap();
    tests.iter().find(|test| test["metric"] == metric).unwrap_or_else(|| panic!("{metric}: {answer}"))
}

#[test]
fn a_slower_arm_is_found_by_enough_repeats_and_too_few_say_so() {
    let lab = Lab::new();
    lab.write("plan.yaml", ARMS);
    lab.ok(&["run", "plan.yaml", "--only", "repeat < 2", "-q"]);
    let few = compared(&lab, &[]);
    for metric in ["ttft_p50", "e2e_p50", "output_throughput"] {
        let test = test(&few, metric);
        assert_eq!((&test["outcome"], &test["rounds"], &test["p"]), (&json!("refused"), &json!(2), &Value::Null));
        let needed = test["repeats_needed"].as_u64().unwrap();
        assert!(needed >= 5);
        let words = test["words"].as_str().unwrap();
        assert!(words.ends_with(&format!("2 repeats, not proven; {needed} repeats would suffice")), "{words}");
    }
    let left_out = few["families"][0]["cells"][0]["left_out"].as_array().unwrap();
    assert_eq!((left_out.len(), &left_out[0]["reason"]), (12, &json!("not measured")));
    let gate = lab.run(&["compare", "plan.yaml", "--gate"]);
    assert_eq!(gate.code, Some(2), "a rejected comparison is not a regression, and passes no gate");
    assert!(
        gate.stderr
            .contains("--gate: nothing could be tested (3 refused, 0 n/a), such as ttft_p50: slower in 2 of 2 repeats")
    );

    lab.ok(&["run", "plan.yaml", "-q"]);
    let answer = compared(&lab, &[]);
    let ttft = test(&answer, "ttft_p50");
    assert_eq!((&ttft["outcome"], &ttft["rounds"]), (&json!("worse"), &json!(8)), "{ttft}");
    let change = |end: &str| ttft["change"][end].as_f64().unwrap();
    assert!(change("low") > 1.01 && change("high") < 1.05, "{ttft}");
    assert!(ttft["words"].as_str().unwrap().starts_with("slower by "), "{ttft}");
    assert!(ttft["p_adjusted"].as_f64() >= ttft["p"].as_f64() && ttft["p_wilcoxon"].as_f64() < Some(0.05), "{ttft}");
    assert_eq!(test(&answer, "output_throughput")["outcome"], "worse");

    let gate = lab.run(&["compare", "plan.yaml", "--gate"]);
    assert_eq!(gate.code, Some(4), "{}{}", gate.stdout, gate.stderr);
    assert!(gate.stdout.contains("slower by"), "{}", gate.stdout);
    assert!(gate.stdout.lines().all(|line| line.chars().count() <= 100), "{}", gate.stdout);
    let gate = lab.run(&["run", "plan.yaml", "--gate"]);
    assert_eq!(gate.code, Some(4), "{}", gate.stderr);
    assert!(gate.stderr.contains("slow against base: ttft_p50 slower by"), "{}", gate.stderr);
    // With the sides swapped, the arm is the faster one.
    let turned = ["--by", "endpoint", "--baseline", "slow", "--metrics", "ttft_p50", "--gate"];
    assert_eq!(test(&compared(&lab, &turned), "ttft_p50")["outcome"], "better");
    rounds_turn(&lab);
}

/// Asserts that of every two consecutive repeats, the second one runs the arms in the reverse order of
/// the first.
fn rounds_turn(lab: &Lab) {
    let mut runs: Vec<(String, u64, String)> = Vec::new();
    for run in lab.runs().values() {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let endpoint = text(&run.json["spec"]["endpoint"]["name"]);
        runs.push((text(&run.json["started"]), run.json["spec"]["repeat"].as_u64().unwrap(), endpoint));
    }
    runs.sort();
    let order = |repeat| -> Vec<&str> {
        runs.iter().filter(|(_, of, _)| *of == repeat).map(|(_, _, endpoint)| endpoint.as_str()).collect()
    };
    for repeat in [0, 2, 4, 6] {
        let turned: Vec<&str> = order(repeat + 1).into_iter().rev().collect();
        assert_eq!(order(repeat), turned, "{runs:?}");
    }
}

#[test]
fn results_are_held_against_a_file_of_earlier_ones() {
    let lab = Lab::new();
    lab.write("plan.yaml", &quick(5, ""));
    lab.ok(&["run", "plan.yaml", "-q"]);
    let written = lab.ok(&["compare", "plan.yaml", "--write-baseline", "baseline.json"]);
    assert!(written.stderr.contains("5 of 5 runs"), "{}", written.stderr);
    let part = lab.ok(&["compare", "plan.yaml", "--write-baseline", "part.json", "--only", "repeat < 2"]);
    assert!(part.stderr.contains("part.json: 2 of 2 runs"), "{}", part.stderr);
    let same = compared(&lab, &["--against", "baseline.json", "--gate", "--metrics", "ttft_p50"]);
    // The usual metrics include p99, for which these runs are too short.
    assert_eq!(lab.run(&["compare", "plan.yaml", "--against", "baseline.json", "--gate"]).code, Some(2));
    assert_eq!(same["families"][0]["by"], "time");
    assert_eq!(test(&same, "ttft_p50")["words"], "equal in every repeat");

    // As if the earlier server had been faster in some repeats and slower in others. No difference is
    // shown, and detecting a smaller one needs more repeats.
    let path = lab.path().join("baseline.json");
    let mut baseline: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let known = |run: &Value| run["readings"]["ttft_p50"]["known"].as_f64().unwrap();
    let mut noisy = baseline.clone();
    for (run, times) in noisy["runs"].as_array_mut().unwrap().iter_mut().zip([1.05, 0.96, 1.04, 0.97, 0.99]) {
        run["readings"]["ttft_p50"] = json!({ "known": known(run) * times });
    }
    lab.write("noisy.json", &noisy.to_string());
    let needed = |see: &str| {
        let answer = compared(&lab, &["--against", "noisy.json", "--metrics", "ttft_p50", "--see", see]);
        let test = test(&answer, "ttft_p50").clone();
        assert_eq!(test["outcome"], "not_shown", "{test}");
        let repeats = test["repeats_needed"].as_u64().unwrap();
        let words = format!("; {repeats} repeats would detect {see} %)");
        assert!(test["words"].as_str().unwrap().ends_with(&words), "{test}");
        repeats
    };
    assert!(5 < needed("4") && needed("4") < needed("1"));

    // As if the earlier server had been faster, by about the same in each repeat.
    for (at, run) in baseline["runs"].as_array_mut().unwrap().iter_mut().enumerate() {
        run["readings"]["ttft_p50"] = json!({ "known": known(run) * (0.9 + 0.002 * at as f64) });
        run["circumstances"]["client cores"] = json!("96");
    }
    lab.write("baseline.json", &baseline.to_string());
    let against = ["--against", "baseline.json", "--metrics", "ttft_p50"];
    let slower = compared(&lab, &against);
    assert_eq!((&test(&slower, "ttft_p50")["outcome"], &slower["regressions"]), (&json!("worse"), &json!(1)));
    let notes = slower["families"][0]["notes"].to_string();
    assert!(
        notes.contains("measured at different times") && notes.contains("client cores: `baseline.json` 96"),
        "{notes}"
    );
    let gate = |more: &[&str]| lab.run(&[&["compare", "plan.yaml", "--gate"], &against[..], more].concat());
    assert_eq!(gate(&[]).code, Some(4));
    let page = gate(&["--format", "markdown"]).stdout;
    assert!(page.contains("**slower by ") && page.contains("| metric | then | now |"), "{page}");

    // Invalid runs are excluded by default.
    for run in &mut baseline["runs"].as_array_mut().unwrap()[..3] {
        run["invalid"] = json!("invalid: errors");
    }
    lab.write("baseline.json", &baseline.to_string());
    let few = compared(&lab, &against);
    assert_eq!(test(&few, "ttft_p50")["rounds"], 2);
    assert!(few["families"][0]["cells"][0]["left_out"].to_string().contains("invalid: errors"));
    assert_eq!(gate(&[]).code, Some(2));
    assert_eq!(gate(&["--include-invalid"]).code, Some(4));
}

#[test]
fn an_earlier_folder_is_matched_by_names_where_ids_have_changed() {
    let lab = Lab::new();
    lab.write("plan.yaml", &quick(3, "seed: 1\n"));
    lab.ok(&["run", "plan.yaml", "-q", "--results", "results-old"]);
    lab.write("plan.yaml", &quick(3, "seed: 2\n"));
    lab.ok(&["run", "plan.yaml", "-q"]);
    let answer = compared(&lab, &["--against", "results-old"]);
    let ttft = test(&answer, "ttft_p50");
    assert_eq!(ttft["rounds"], 3, "{answer}");
    assert!(["not_shown", "worse", "better"].contains(&ttft["outcome"].as_str().unwrap()), "{ttft}");
    assert_eq!(test(&answer, "ttft_p99")["outcome"], "unknown");
    assert!(test(&answer, "ttft_p99")["words"].as_str().unwrap().contains("< 368 requests"));
    let notes = answer["families"][0].to_string();
    let turned = compared(&lab, &["--results", "results-old", "--set", "seed=1", "--against", "results"]);
    assert_eq!(
        (&turned["families"][0]["baseline"], &test(&turned, "ttft_p50")["baseline"]["value"]),
        (&json!("results"), &ttft["arm"]["value"])
    );
    assert!(notes.contains("sent different requests in repeat 0, 1, 2"), "another seed sends other texts: {notes}");
}

#[test]
fn chosen_runs_are_compared() {
    let lab = Lab::new();
    let arm = "{ engine: mock, mock: { ttft: 15ms, itl: 2ms, jitter: 5% } }";
    let plan = quick(3, "compare: { by: endpoint, baseline: a }\n")
        .replace("{ a: ", &format!("{{ b: {arm}, c: {arm}, a: "))
        .replace("endpoint: a,", "endpoint: [a, b, c],")
        .replace("batch_size: 4", "batch_size: [4, 16]");
    lab.write("plan.yaml", &plan);
    // All runs but one are unmeasured, so the list of missing runs shows which runs are read.
    let none = lab.run(&["compare", "plan.yaml"]);
    assert!(none.code == Some(2) && none.stderr.contains("no results of this plan in results"), "{}", none.stderr);
    lab.ok(&["run", "plan.yaml", "-q", "--only", "endpoint == 'a' and batch_size == 16 and repeat == 2"]);
    let same = lab.run(&["compare", "plan.yaml", "--against", "results"]);
    assert!(
        same.code == Some(2) && same.stderr.contains("these results would be compared with themselves"),
        "{}",
        same.stderr
    );
    let looked = |flags: &[&str]| -> Vec<String> {
        let answer = compared(&lab, flags);
        let cell = |cell: &Value| {
            let missing: Vec<String> =
                cell["left_out"].as_array().unwrap().iter().map(|one| one["repeat"].to_string()).collect();
            format!("{} at {}: {}", cell["arm"].as_str().unwrap(), cell["cell"]["batch_size"], missing.join(" "))
        };
        answer["families"][0]["cells"].as_array().unwrap().iter().map(cell).collect()
    };
    assert_eq!(looked(&[]).len(), 4);
    assert_eq!(looked(&["--only", "batch_size == 4 and repeat > 0", "--skip", "endpoint == 'c'"]), ["b at 4: 1 2 1 2"]);
    assert_eq!(looked(&["--skip", "endpoint == 'c' and batch_size == 16", "--only", "repeat == 0"]).len(), 3);
    // The pairs of cells follow from the whole plan, not from the selected part.
    let crossed = "(endpoint == 'a' and batch_size == 4) or (endpoint == 'b' and batch_size == 16)";
    for left in [&["--skip", "endpoint == 'a'"], &["--only", crossed]] {
        let none = lab.run(&[&["compare", "plan.yaml"], &left[..]].concat());
        assert_eq!(none.code, Some(2), "{}", none.stdout);
        assert!(none.stderr.contains("nothing to compare: --only, --skip and --class must keep"), "{}", none.stderr);
    }
    let wrong = lab.run(&["compare", "plan.yaml", "--only", "endpoint == b"]);
    assert!(wrong.code == Some(2) && wrong.stderr.contains("put quotes around it"), "{}", wrong.stderr);
}

#[test]
fn a_gate_holds_runs_against_the_objective() {
    let lab = Lab::new();
    // Requests that a busy machine slows down together carry little information, which is enough for a
    // median but not for p99.
    let plan = |slo: &str| {
        quick(1, &format!("slo: {{ ttft: {{ {slo} }} }}\n")).replace("min_requests: 60", "min_requests: 240")
    };
    let gated = |lab: &Lab, slo: &str| -> Ended {
        lab.write("plan.yaml", &plan(&format!("p50: {slo}")));
        lab.run(&["run", "plan.yaml", "--gate"])
    };
    let missed = gated(&lab, "2ms");
    assert_eq!(missed.code, Some(4), "{}{}", missed.stdout, missed.stderr);
    assert!(
        missed.stderr.contains("gate: 1 failed") && missed.stderr.contains("ttft p50 ≤ 2ms is missed"),
        "{}",
        missed.stderr
    );
    let held = gated(&lab, "10s");
    assert_eq!(held.code, Some(0), "{}", held.stderr);
    assert!(held.stderr.contains("gate: passed"), "{}", held.stderr);
    lab.write("plan.yaml", &plan("p99: 10s"));
    let undecided = lab.run(&["run", "plan.yaml", "--gate"]);
    assert_eq!(undecided.code, Some(2), "{}", undecided.stderr);
    assert!(undecided.stderr.contains("1 question is undecided"), "{}", undecided.stderr);
    assert!(undecided.stderr.contains("ttft p99 ≤ 10s: ") && undecided.stderr.contains("299 needed; a window of"));
}

#[test]
fn mistakes_name_what_is_there() {
    let lab = Lab::new();
    lab.write("plan.yaml", &quick(1, ""));
    for (args, told) in [
        (&["compare", "plan.yaml"][..], "plan.yaml declares no comparison: add `compare:"),
        (
            &["compare", "plan.yaml", "--by", "endpiont", "--baseline", "a"],
            "unknown axis; the plan has `endpoint`, `model`",
        ),
        (
            &["compare", "plan.yaml", "--by", "endpoint", "--baseline", "b"],
            "not a value of axis `endpoint`, which has `a`",
        ),
        (&["compare", "plan.yaml", "--by", "endpoint", "--baseline", "a"], "nothing to compare with `a`"),
        (&["compare", "plan.yaml", "--by", "endpoint"], "--baseline"),
        (&["compare", "plan.yaml", "--metrics", "ttft_p98"], "unknown metric `ttft_p98`"),
        (&["compare", "plan.yaml", "--against", "none"], "cannot read none"),
        (&["compare", "plan.yaml", "--against", "plan.yaml"], "plan.yaml is not a baseline"),
        (&["compare", "plan.yaml", "--write-baseline", "b.json"], "no run of the plan has a result yet"),
        (&["compare", "plan.yaml", "--see", "0"], "write a number like 5, in percent"),
        (&["run", "plan.yaml", "--gate"], "the plan has no objective and no comparison; add slo:"),
    ] {
        let ended = lab.run(args);
        assert_eq!(ended.code, Some(2), "{args:?} {}", ended.stderr);
        assert!(ended.stderr.contains(told), "{args:?}: {}", ended.stderr);
    }
    assert!(!lab.results().exists(), "no request was sent");
}
