//! What is said about an arm follows from all tests of a comparison: the sentence at the top, the gate with
//! its exit code, Markdown, the report and the record of a decision.

use serde_json::{Value, json};

use lab::{Ended, Lab};

/// Returns a plan of two arms with these metrics and repeats, in an open loop, so that their throughputs are
/// equal. Only the time per token of the second arm is higher.
fn arms(compare: &str, repeats: u32) -> String {
    format!(
        "sweepline: 1
name: engines
endpoints:
  old: {{ engine: mock, mock: {{ ttft: 40ms, itl: 10ms, jitter: 5%, seed: 1 }} }}
  new: {{ engine: mock, mock: {{ ttft: 40ms, itl: 15ms, jitter: 5%, seed: 2 }} }}
models: {{ m: {{ id: tiny }} }}
scenarios: {{ short: {{ base: B1, output_tokens: 8 }} }}
phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 1s, min_requests: 80, at_most: 60s }}, drain: 60s }}
compare: {{ by: endpoint, baseline: old{compare} }}
sweeps:
  load: {{ matrix: {{ endpoint: [old, new], model: m, scenario: short, qps: 20 }}, repeats: {repeats} }}
"
    )
}

/// Returns a plan of one arm at several batch sizes, whose results are compared with earlier ones.
fn nights(batch_sizes: &str, repeats: u32, scenario: &str) -> String {
    format!(
        "sweepline: 1
name: nightly
endpoints: {{ a: {{ engine: mock, mock: {{ ttft: 15ms, itl: 2ms, jitter: 5% }} }} }}
models: {{ m: {{ id: tiny }} }}
scenarios: {{ short: {{ base: B1, {scenario} }} }}
phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 200ms, min_requests: 400, at_most: 60s }}, drain: 60s }}
sweeps:
  load: {{ matrix: {{ endpoint: a, model: m, scenario: short, batch_size: {batch_sizes} }}, repeats: {repeats} }}
"
    )
}

/// Writes earlier results: those of the plan, with each value of these metrics multiplied by a factor that
/// depends on the batch size and the repeat.
fn earlier(lab: &Lab, metrics: &[&str], factor: impl Fn(u64, usize) -> f64) {
    lab.ok(&["compare", "plan.yaml", "--write-baseline", "own.json"]);
    let mut baseline: Value = serde_json::from_slice(&std::fs::read(lab.path().join("own.json")).unwrap()).unwrap();
    for run in baseline["runs"].as_array_mut().unwrap() {
        let batch = run["names"]["batch_size"].as_u64().unwrap();
        let repeat = run["names"]["repeat"].as_u64().unwrap() as usize;
        for metric in metrics {
            let known = run["readings"][*metric]["known"].as_f64().unwrap();
            run["readings"][*metric] = json!({ "known": known * factor(batch, repeat) });
        }
    }
    lab.write("earlier.json", &baseline.to_string());
}

fn against(lab: &Lab, more: &[&str]) -> Ended {
    lab.run(&[&["compare", "plan.yaml", "--against", "earlier.json"], more].concat())
}

fn claim(ended: &Ended) -> Value {
    let answer = ended.json();
    let claims = answer["families"][0]["claims"].as_array().unwrap();
    assert_eq!(claims.len(), 1, "{answer}");
    claims[0].clone()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_metric_that_is_worse_leads_every_page_although_others_show_nothing() {
    let lab = Lab::new();
    lab.write("plan.yaml", &arms(", metrics: [ttft_from_schedule_p50, output_throughput, tpot_p50]", 5));
    lab.ok(&["run", "plan.yaml", "-q"]);
    let answer = lab.ok(&["compare", "plan.yaml", "--format", "json"]);
    lab.follows("compare", &answer.json());
    let claim = claim(&answer);
    assert_eq!((&claim["conclusion"], &claim["tests"]), (&json!("worse"), &json!(3)), "{claim}");
    assert_eq!(claim["worse"][0]["metric"], "tpot_p50", "{claim}");
    let sentence = answer.json()["answers"][0].as_str().unwrap().to_owned();
    assert!(sentence.contains("TPOT p50 slower by 50 %"), "{sentence}");
    assert!(!sentence.contains("no difference shown in any"), "{sentence}");

    let gate = lab.run(&["compare", "plan.yaml", "--gate"]);
    assert_eq!(gate.code, Some(4), "{}", gate.stderr);
    assert!(one_line(&gate.stdout).starts_with(&sentence), "{}", gate.stdout);
    assert_eq!(lab.run(&["run", "plan.yaml", "--gate"]).code, Some(4));
    let markdown = lab.ok(&["compare", "plan.yaml", "--format", "markdown"]).stdout;
    assert_eq!(markdown.lines().next().map(str::trim_end), Some(sentence.as_str()), "{markdown}");
    lab.ok(&["report", "plan.yaml", "-o", "report.html"]);
    let page = std::fs::read_to_string(lab.path().join("report.html")).unwrap();
    assert!(page.contains("TPOT p50 slower by 50 %"), "the report's answer");
    lab.ok(&["decide", "plan.yaml", "--accept", "endpoint == 'old'", "--because", "faster"]);
    let record = std::fs::read_to_string(lab.path().join("plan.decision.md")).unwrap();
    assert!(record.contains("TPOT p50 slower by 50 %"), "{record}");
    // A margin that the arm exceeds in one metric is not kept.
    let margin = lab.run(&["compare", "plan.yaml", "--gate", "--margin", "5%"]);
    assert_eq!(margin.code, Some(4), "{}", margin.stdout);
    assert!(!one_line(&margin.stdout).starts_with("`new` against `old`: within"), "{}", margin.stdout);
}

#[test]
fn tests_that_could_not_be_made_leave_a_comparison_undecided() {
    let lab = Lab::new();
    // p99 needs more requests than these runs have, so that half of the usual metrics have no value.
    lab.write("plan.yaml", &nights("4", 3, "output_tokens: 4").replace("min_requests: 400", "min_requests: 60"));
    lab.ok(&["run", "plan.yaml", "-q"]);
    earlier(&lab, &["ttft_p50"], |_, repeat| [1.05, 0.96, 1.0][repeat]);
    let answer = against(&lab, &["--format", "json"]);
    let claim = claim(&answer);
    assert_eq!(
        (&claim["conclusion"], &claim["tests"], &claim["undecided"]),
        (&json!("undecided"), &json!(7), &json!(3))
    );
    assert!(!answer.json()["answers"][0].as_str().unwrap().contains("no difference shown"));
    let gate = against(&lab, &["--gate"]);
    assert_eq!(gate.code, Some(2), "{}", gate.stderr);
    assert!(gate.stderr.contains("3 of 7 tests could not be made (0 refused, 3 n/a)"), "{}", gate.stderr);
    // Every test of the chosen metrics was made.
    let named = against(&lab, &["--gate", "--metrics", "ttft_p50,e2e_p50"]);
    assert_eq!(named.code, Some(0), "{}{}", named.stdout, named.stderr);
    let margin = ["--gate", "--margin", "50%", "--metrics"];
    assert_eq!(against(&lab, &[&margin[..], &["ttft_p50,e2e_p50"]].concat()).code, Some(0));
    let with_missing = against(&lab, &[&margin[..], &["ttft_p50,ttft_p99"]].concat());
    assert_eq!(with_missing.code, Some(2), "{}", with_missing.stderr);

    // With two repeats, nothing is tested, and what was observed is told as such.
    let few = against(&lab, &["--format", "json", "--only", "repeat > 0", "--metrics", "ttft_p50,ttft_p99"]);
    let claim = self::claim(&few);
    assert_eq!((&claim["conclusion"], &claim["undecided"]), (&json!("undecided"), &json!(2)), "{claim}");
    let few = against(&lab, &["--format", "json", "--only", "repeat != 1", "--metrics", "e2e_p50"]);
    assert_eq!(self::claim(&few)["unproven"], json!([]), "equal values are no difference");
    earlier(&lab, &["ttft_p50"], |_, _| 1.1);
    let few = against(&lab, &["--format", "json", "--only", "repeat > 0", "--metrics", "ttft_p50"]);
    let told = json!([{ "metric": "ttft_p50", "words": "faster in 2 of 2 repeats" }]);
    assert_eq!(self::claim(&few)["unproven"], told);
    assert!(few.json()["answers"][0].as_str().unwrap().contains("not proven"));
}

#[test]
fn a_metric_that_cannot_exist_is_not_among_the_tests() {
    let lab = Lab::new();
    // A single token has no time per token, and no accelerators are declared.
    lab.write("plan.yaml", &nights("4", 3, "output_tokens: 1"));
    lab.ok(&["run", "plan.yaml", "-q"]);
    let noisy = ["ttft_p50", "e2e_p50"];
    earlier(&lab, &noisy, |_, repeat| [1.05, 0.96, 1.0][repeat]);
    let answer = against(&lab, &["--format", "json"]).json();
    let tests = answer["families"][0]["cells"][0]["tests"].as_array().unwrap();
    let outside: Vec<&str> =
        tests.iter().filter(|test| test["in_family"] == false).map(|test| test["metric"].as_str().unwrap()).collect();
    assert_eq!(outside, ["output_throughput_per_gpu", "tpot_p50", "tpot_p99"]);
    assert_eq!(answer["families"][0]["claims"][0]["conclusion"], "no_difference_shown");
    assert_eq!(against(&lab, &["--gate"]).code, Some(0));
    // Whoever names it wants to know it.
    let named = against(&lab, &["--gate", "--metrics", "ttft_p50,tpot_p50"]);
    assert_eq!(named.code, Some(2), "{}", named.stderr);
}

#[test]
fn an_effect_that_only_all_cells_together_show_fails_the_gate() {
    let lab = Lab::new();
    lab.write("plan.yaml", &nights("[1, 2, 3, 4, 6, 8]", 4, "output_tokens: 4"));
    lab.ok(&["run", "plan.yaml", "-q"]);
    // 5 % slower in each cell, in which repeats differ by far more.
    let slower = |batch: u64, repeat: usize| {
        let noise: f64 = [0.3, -0.3, 0.1, -0.1][repeat];
        (-(0.05 + 0.001 * batch as f64) + noise).exp()
    };
    earlier(&lab, &["ttft_p50"], slower);
    let answer = against(&lab, &["--format", "json", "--metrics", "ttft_p50"]);
    lab.follows("compare", &answer.json());
    let family = answer.json()["families"][0].clone();
    let outcomes: Vec<&Value> =
        family["cells"].as_array().unwrap().iter().map(|cell| &cell["tests"][0]["outcome"]).collect();
    assert_eq!(outcomes, vec![&json!("not_shown"); 6]);
    assert_eq!((&family["tests"], &family["pooled"][0]["outcome"]), (&json!(7), &json!("worse")), "{family}");
    let [p, adjusted] = ["p", "p_adjusted"].map(|p| family["pooled"][0][p].as_f64().unwrap());
    assert!((adjusted - 7.0 * p).abs() < 1e-12, "one of seven tests: {p} {adjusted}");
    let worse = &family["claims"][0]["worse"];
    assert_eq!((worse.as_array().unwrap().len(), &worse[0]["cell"]), (1, &Value::Null), "{worse}");
    let sentence = answer.json()["answers"][0].as_str().unwrap().to_owned();
    assert!(sentence.contains("on average over 6 cells"), "{sentence}");
    let gate = against(&lab, &["--gate", "--metrics", "ttft_p50"]);
    assert_eq!(gate.code, Some(4), "{}{}", gate.stdout, gate.stderr);
    assert!(one_line(&gate.stdout).starts_with(&sentence), "{}", gate.stdout);
    assert_eq!(answer.json()["gate"]["missed"][0]["cell"], "all cells");
}

#[test]
fn runs_that_were_not_measured_are_not_excluded() {
    let lab = Lab::new();
    let more = "  other: { engine: mock, mock: { ttft: 40ms, itl: 12ms, jitter: 5%, seed: 3 } }\nmodels:";
    let plan = arms("", 5).replace("models:", more).replace("[old, new]", "[old, new, other]");
    lab.write("plan.yaml", &plan.replace("qps: 20", "qps: [10, 20]"));
    lab.ok(&["run", "plan.yaml", "-q", "--only", "repeat < 2"]);
    let text = one_line(&lab.ok(&["compare", "plan.yaml"]).stdout);
    // Three repeats of three arms at two loads; the baseline belongs to both other arms.
    assert!(text.contains(" 18 runs without a result"), "{text}");
    assert!(!text.contains(" excluded"), "nothing was measured and left out: {text}");
}

#[test]
fn the_command_that_answers_the_plan_is_suggested_first() {
    let first = |plan: &str, args: &[&str]| {
        let lab = Lab::new();
        lab.write("plan.yaml", plan);
        let ended = lab.ok(&[&["run", "plan.yaml"], args].concat());
        let (_, next) = ended.stderr.split_once("next:\n").unwrap_or_else(|| panic!("{}", ended.stderr));
        let command = next.lines().next().unwrap().split_once("sweepline ").unwrap().1.to_owned();
        command.split(' ').next().unwrap().to_owned()
    };
    assert_eq!(first(&arms("", 1), &[]), "compare");
    let plain = nights("[1, 2]", 1, "output_tokens: 4");
    assert_eq!(first(&plain, &[]), "report");
    assert_eq!(first(&plain.replace("sweeps:", "slo: { ttft: { p50: 1s } }\nsweeps:"), &[]), "capacity");
    assert_eq!(first(&plain, &["--only", "batch_size == 1"]), "show", "a single run");
}

#[test]
fn a_diagnosis_begins_with_saturation() {
    let lab = Lab::new();
    let plan = "sweepline: 1
name: slow
endpoints: { a: { engine: mock, mock: { ttft: 20ms, itl: 0ms, slots: 1 } } }
models: { m: { id: tiny } }
scenarios: { short: { base: B1, output_tokens: 2 } }
phases: { fill: 0s, stabilize: 500ms, measure: 2s, drain: 60s }
sweeps: { s: { matrix: { endpoint: a, model: m, scenario: short, qps: [10, 110] } } }
";
    lab.write("plan.yaml", plan);
    lab.ok(&["run", "plan.yaml", "-q"]);
    let text = lab.ok(&["diagnose", "plan.yaml"]).stdout;
    assert!(text.starts_with("saturated: "), "{text}");
    assert!(text.lines().next().unwrap().contains("at qps 110"), "{text}");
    let answer = lab.ok(&["diagnose", "plan.yaml", "--format", "json"]).json();
    lab.follows("diagnose", &answer);
    let saturated = answer["saturated"].as_array().unwrap();
    assert_eq!((saturated.len(), saturated[0]["runs"].as_array().unwrap().len()), (1, 1), "{answer}");
    let found = answer["symptoms"].as_array().unwrap().iter().filter(|one| one["found"] == "seen").count();
    let line = text.lines().find(|line| line.starts_with("found: ")).unwrap();
    let expected = if found == 0 { "found: none of".to_owned() } else { format!("found: {found} of") };
    assert!(line.starts_with(&expected), "{line}");
}
