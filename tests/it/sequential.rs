//! Tests `compare: { sequential: true }`: the results of rounds that could have stopped at any
//! interim analysis.

use serde_json::{Value, json};

use lab::sweeps::honest;
use lab::{Lab, Server};

fn plan([good, other]: [&Server; 2], repeats: u32, compare: &str) -> String {
    format!(
        "sweepline: 1
name: looks
endpoints:
  good: {{ url: \"{}\", engine: mock }}
  other: {{ url: \"{}\", engine: mock }}
models: {{ m: {{ id: tiny }} }}
scenarios: {{ short: {{ base: B1, output_tokens: 3 }} }}
validity: {{ client_late: {{ suspect: 100%, invalid: 100% }} }}
phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 200ms, min_requests: 300, at_most: 60s }}, drain: 60s }}
compare: {{ by: endpoint, baseline: good, metrics: [ttft_p50]{compare} }}
sweeps:
  load: {{ matrix: {{ endpoint: [good, other], model: m, scenario: short, batch_size: 8 }}, repeats: {repeats} }}
",
        good.url(),
        other.url(),
    )
}

#[test]
fn a_sequential_comparison_is_judged_at_its_look_and_says_so() {
    let lab = Lab::new();
    let [good, other] = [Server::start(&lab, &["--slots", "16"]), Server::start(&lab, &["--slots", "16"])];
    // The number of rounds is fixed, so that all are run whatever their results are.
    lab.write("plan.yaml", &plan([&good, &other], 4, ""));
    honest(&lab.run(&["run", "plan.yaml", "-q"]));
    let compared = |args: &[&str]| -> Value {
        let answer = lab.ok(&[&["compare", "plan.yaml", "--format", "json"], args].concat()).json();
        lab.follows("compare", &answer);
        answer
    };
    let test = |answer: &Value| answer["families"][0]["cells"][0]["tests"][0].clone();
    let fixed = test(&compared(&[]));
    assert_eq!(fixed["sequence"], Value::Null);

    // The runs are the same as in the first four of at most ten rounds.
    lab.write("plan.yaml", &plan([&good, &other], 10, ", sequential: true"));
    let answer = compared(&[]);
    let looked = test(&answer);
    assert_eq!(looked["sequence"], json!({ "round": 4, "at_most": 10 }));
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("expected a number: {value}"));
    assert!(number(&looked["p"]) > number(&fixed["p"]), "{looked} {fixed}");
    assert!(number(&looked["change"]["low"]) < number(&fixed["change"]["low"]), "{looked} {fixed}");
    assert!(number(&looked["change"]["high"]) > number(&fixed["change"]["high"]), "{looked} {fixed}");
    assert_eq!(looked["change"]["value"], fixed["change"]["value"]);
    assert_eq!((&looked["arm"]["low"], &looked["p_wilcoxon"]), (&Value::Null, &Value::Null));
    let notes = answer["families"][0]["notes"].to_string();
    assert!(notes.contains("group-sequential: the p-values and intervals"), "{notes}");
    // Rounds that could have stopped are judged as such in every command.
    let asked = test(&compared(&["--by", "endpoint", "--baseline", "other", "--metrics", "ttft_p50"]));
    assert_eq!(asked["sequence"], looked["sequence"]);
    for format in ["text", "markdown"] {
        let page = lab.ok(&["compare", "plan.yaml", "--format", format]).stdout;
        let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(page.contains("4 rounds in these launches (group-sequential, look 4 of 10)"), "{page}");
    }
    lab.ok(&["report", "plan.yaml", "-o", "report.html"]);
    let page = std::fs::read_to_string(lab.path().join("report.html")).expect("a report");
    assert!(page.contains("group-sequential t over rounds: they hold at every look"));
}
