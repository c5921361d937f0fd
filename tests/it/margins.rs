//! Tests failed requests and margins in comparisons and gates, through the program.

use serde_json::{Value, json};

use lab::sweeps::honest;
use lab::{Lab, Server};

/// Returns a plan with two endpoints of the same speed, this many repeats, and 300 requests or more in
/// each run. A busy machine does not make runs invalid.
fn plan([good, bad]: [&Server; 2], repeats: u32, compare: &str) -> String {
    format!(
        "sweepline: 1
name: errors
endpoints:
  good: {{ url: \"{}\", engine: mock }}
  bad: {{ url: \"{}\", engine: mock }}
models: {{ m: {{ id: tiny }} }}
scenarios: {{ short: {{ base: B1, output_tokens: 3 }} }}
validity: {{ client_late: {{ suspect: 100%, invalid: 100% }} }}
phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 200ms, min_requests: 300, at_most: 60s }}, drain: 60s }}
compare: {{ by: endpoint, baseline: good, metrics: [ttft_p50]{compare} }}
sweeps:
  load: {{ matrix: {{ endpoint: [good, bad], model: m, scenario: short, batch_size: 8 }}, repeats: {repeats} }}
",
        good.url(),
        bad.url(),
    )
}

fn servers(lab: &Lab, fault: &str) -> [Server; 2] {
    [Server::start(lab, &["--slots", "16"]), Server::start(lab, &["--slots", "16", "--fault", fault])]
}

fn compared(lab: &Lab, args: &[&str]) -> Value {
    let answer = lab.ok(&[&["compare", "plan.yaml", "--format", "json"], args].concat()).json();
    lab.follows("compare", &answer);
    answer
}

#[test]
fn six_percent_of_errors_fail_the_gate_of_one_round_and_of_three() {
    let lab = Lab::new();
    let [good, bad] = servers(&lab, "http:500@6%");
    for repeats in [1, 3] {
        lab.write("plan.yaml", &plan([&good, &bad], repeats, ""));
        honest(&lab.run(&["run", "plan.yaml", "-q"]));
        let answer = compared(&lab, &[]);
        let guardrail = &answer["families"][0]["cells"][0]["guardrail"];
        assert_eq!((&guardrail["outcome"], &guardrail["rounds"]), (&json!("worse"), &json!(repeats)), "{guardrail}");
        assert_eq!((&guardrail["baseline"]["failed"], &answer["worse_errors"]), (&json!(0), &json!(1)));
        assert!(guardrail["low"].as_f64() > Some(0.0), "{guardrail}");
        let gate = lab.run(&["compare", "plan.yaml", "--gate"]);
        assert_eq!(gate.code, Some(4), "{}{}", gate.stdout, gate.stderr);
        assert!(
            gate.stdout.contains("errors: worse: ") && gate.stdout.contains("; more errors in 1 cell"),
            "{}",
            gate.stdout
        );
        let page = lab.ok(&["compare", "plan.yaml", "--format", "markdown"]).stdout;
        assert!(page.contains("errors: **worse: "), "{page}");
        let gate = lab.run(&["run", "plan.yaml", "--gate"]);
        assert_eq!(gate.code, Some(4), "{}", gate.stderr);
        assert!(gate.stderr.contains("bad against good: errors: "), "{}", gate.stderr);
    }
    // With the sides swapped, nothing is worse.
    let turned = compared(&lab, &["--by", "endpoint", "--baseline", "bad", "--metrics", "ttft_p50"]);
    assert_eq!(turned["families"][0]["cells"][0]["guardrail"]["outcome"], "better");
}

#[test]
fn a_run_that_is_invalid_for_its_errors_is_not_hidden_by_being_left_out() {
    let lab = Lab::new();
    let [good, bad] = servers(&lab, "http:500@40%");
    lab.write("plan.yaml", &plan([&good, &bad], 3, ""));
    let ran = lab.run(&["run", "plan.yaml", "-q"]);
    assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
    let answer = compared(&lab, &[]);
    let cell = &answer["families"][0]["cells"][0];
    assert_eq!(cell["left_out"].as_array().unwrap().len(), 3, "{cell}");
    assert_eq!((&cell["guardrail"]["outcome"], &cell["guardrail"]["rounds"]), (&json!("worse"), &json!(3)), "{cell}");
    assert_eq!(lab.run(&["compare", "plan.yaml", "--gate"]).code, Some(4));
}

/// Writes earlier results: the median TTFT of each repeat multiplied by these factors.
fn earlier(lab: &Lab, baseline: &Value, times: [f64; 5]) {
    let mut changed = baseline.clone();
    for run in changed["runs"].as_array_mut().unwrap() {
        let known = run["readings"]["ttft_p50"]["known"].as_f64().unwrap();
        let repeat = run["names"]["repeat"].as_u64().unwrap() as usize;
        run["readings"]["ttft_p50"] = json!({ "known": known * times[repeat] });
    }
    lab.write("earlier.json", &changed.to_string());
}

#[test]
fn a_margin_is_shown_or_exceeded_or_takes_more_repeats() {
    let lab = Lab::new();
    let [good, other] = servers(&lab, "http:500@999999");
    lab.write("plan.yaml", &plan([&good, &other], 5, ", margin: 2%"));
    honest(&lab.run(&["run", "plan.yaml", "-q"]));
    lab.ok(&["compare", "plan.yaml", "--write-baseline", "baseline.json"]);
    let baseline = serde_json::from_slice(&std::fs::read(lab.path().join("baseline.json")).unwrap()).unwrap();
    let args = ["--against", "earlier.json"];
    let gate = |more: &[&str]| lab.run(&[&["compare", "plan.yaml", "--gate"], &args[..], more].concat());

    // The arm is shown to be slower by half a percent, which is within the margin and passes.
    earlier(&lab, &baseline, [0.994, 0.995, 0.996, 0.995, 0.995]);
    let answer = compared(&lab, &args);
    let cell = &answer["families"][0]["cells"][0];
    let (test, margin) = (&cell["tests"][0], &cell["tests"][0]["margin"]);
    assert_eq!((&answer["families"][0]["margin"], &margin["answer"]), (&json!(0.02), &json!("shown")), "{margin}");
    assert_eq!((&test["outcome"], &answer["gate"]), (&json!("worse"), &json!({ "answer": "passes" })), "{test}");
    assert_eq!(cell["guardrail"]["outcome"], "not_shown");
    let passed = gate(&[]);
    assert_eq!(passed.code, Some(0), "{}{}", passed.stdout, passed.stderr);
    assert!(
        passed.stdout.contains("margin 2 %") && passed.stdout.contains("2 of 2 shown to be within"),
        "{}",
        passed.stdout
    );
    assert_eq!(gate(&["--margin", "0.1%"]).code, Some(4), "more than a tenth of a percent");

    earlier(&lab, &baseline, [0.5, 0.51, 0.49, 0.5, 0.5]);
    let worse = gate(&[]);
    assert_eq!(worse.code, Some(4), "{}{}", worse.stdout, worse.stderr);

    earlier(&lab, &baseline, [1.05, 0.96, 1.04, 0.97, 0.99]);
    let open = gate(&[]);
    assert_eq!(open.code, Some(2), "{}{}", open.stdout, open.stderr);
    let told = "--gate: 2 of 2 tests do not show the arm to be within the margin, such as ttft_p50: within the margin \
                of 2 %: not shown";
    assert!(open.stderr.contains(told) && open.stderr.contains("repeats would suffice for all"), "{}", open.stderr);
}

#[test]
fn exploring_is_not_for_gates() {
    let lab = Lab::new();
    let [good, other] = servers(&lab, "http:500@999999");
    lab.write("plan.yaml", &plan([&good, &other], 3, ""));
    honest(&lab.run(&["run", "plan.yaml", "-q"]));
    assert_eq!(compared(&lab, &["--explore"])["adjusted_by"], "benjamini_hochberg");
    assert_eq!(compared(&lab, &[])["adjusted_by"], "holm");
    let both = lab.run(&["compare", "plan.yaml", "--explore", "--gate"]);
    assert_eq!(both.code, Some(2), "{}", both.stderr);
    let range = "write a share above 0% and below 100%, like 2%";
    for (wrong, said) in [
        ("0%", range),
        ("100%", range),
        ("-1%", range),
        ("much%", range),
        // A plan with this value is also rejected, because it could mean 2 % or 0.02 %.
        ("0.02", "`0.02` is not a share: write it in percent, like 1% or 0.5%"),
        ("2", "`2` is not a share: write 2%, with the percent sign"),
        ("-2", "`-2` is not a share"),
        ("much", "`much` is not a share"),
    ] {
        let told = lab.run(&["compare", "plan.yaml", "--margin", wrong]);
        assert_eq!(told.code, Some(2), "{wrong}");
        assert!(told.stderr.contains(said), "{wrong}: {}", told.stderr);
    }
    let tiny = lab.ok(&["compare", "plan.yaml", "--margin", "0.0001%"]).stdout;
    assert!(tiny.contains("margin 0.0001 %") && tiny.contains("the margin of 0.0001 %"), "{tiny}");
    // The table and the guardrail use different intervals for the share of errors, which the output
    // states.
    let errors = lab.ok(&["compare", "plan.yaml", "--metrics", "error_share,ttft_p50"]).stdout;
    assert!(errors.contains("error share: `errors` pools the requests of all rounds"), "{errors}");
    assert!(!tiny.contains("error share: "), "{tiny}");
}
