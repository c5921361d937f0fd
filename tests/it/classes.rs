//! Tests `--class`: the results of `compare` and `curves` for one class of a mix.

use serde_json::{Value, json};

use lab::Lab;
use lab::sweeps::honest;

/// A plan whose arms differ only for long responses; a third sweep has no classes.
const PLAN: &str = "sweepline: 1
name: classes
endpoints:
  old: { engine: mock, mock: { ttft: 5ms, itl: 4ms }, hardware: { price_per_hour: 3 } }
  new: { engine: mock, mock: { ttft: 5ms, itl: 8ms } }
models: { m: { id: tiny } }
validity: { client_late: { suspect: 100%, invalid: 100% }, unsteady: { suspect: 100% } }
scenarios:
  brief: { prompt_tokens: 20, output_tokens: 2 }
  long: { prompt_tokens: 20, output_tokens: 12 }
  mixed: { mix: [{ scenario: brief, share: 3 }, { scenario: long, share: 1 }] }
phases: { fill: 0s, stabilize: 0s, measure: { for: 200ms, min_requests: 80, at_most: 60s }, drain: 10s }
compare: { by: endpoint, baseline: old, metrics: [e2e_p50, output_throughput, cost_per_million_output_tokens] }
sweeps:
  load: { matrix: { endpoint: [old, new], model: m, scenario: mixed, batch_size: [2] }, repeats: 3 }
  plain: { matrix: { endpoint: [old, new], model: m, scenario: brief, batch_size: [2] } }
";

fn answer(lab: &Lab, args: &[&str]) -> Value {
    let answer = lab.ok(&[args, &["--format", "json"]].concat()).json();
    lab.follows(args[0], &answer);
    answer
}

/// Returns the test of a metric in the only cell.
fn test<'a>(answer: &'a Value, metric: &str) -> &'a Value {
    let cells = answer["families"][0]["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 1, "{answer:#}");
    cells[0]["tests"].as_array().unwrap().iter().find(|test| test["metric"] == metric).unwrap()
}

/// Returns the geometric mean of a column of `export --rows classes` over the runs of an endpoint.
fn exported(lab: &Lab, endpoint: &str, class: &str, column: &str) -> f64 {
    let rows = lab.ok(&["export", "plan.yaml", "--rows", "classes", "--format", "json"]).json();
    let of = |row: &&Value| row["endpoint"] == endpoint && row["class"] == class;
    let logarithms: Vec<f64> =
        rows.as_array().unwrap().iter().filter(of).map(|row| row[column].as_f64().unwrap().ln()).collect();
    assert_eq!(logarithms.len(), 3, "{rows:#}");
    (logarithms.iter().sum::<f64>() / 3.0).exp()
}

#[test]
fn a_class_is_answered_for_alone() {
    let lab = Lab::new();
    lab.write("plan.yaml", PLAN);
    honest(&lab.run(&["run", "plan.yaml", "-q"]));
    for class in ["brief", "long"] {
        let compared = answer(&lab, &["compare", "plan.yaml", "--class", class]);
        assert_eq!(compared["class"], class);
        for (metric, column) in [("e2e_p50", "e2e_p50_ms"), ("output_throughput", "output_throughput_tokens_per_s")] {
            for (arm, endpoint) in [("baseline", "old"), ("arm", "new")] {
                let mean = test(&compared, metric)[arm]["value"].as_f64().unwrap();
                let expected = exported(&lab, endpoint, class, column);
                assert!((mean / expected - 1.0).abs() < 1e-9, "{class} {metric} of {endpoint}: {mean}, {expected}");
            }
        }
        let cost = test(&compared, "cost_per_million_output_tokens");
        assert_eq!(
            (&cost["outcome"], &cost["words"]),
            (&json!("unknown"), &json!("n/a: not known for a single class"))
        );

        let curves = answer(&lab, &["curves", "plan.yaml", "--class", class]);
        assert_eq!((&curves["class"], curves["curves"].as_array().unwrap().len()), (&json!(class), 2), "{curves:#}");
        let rung = &curves["curves"][0]["rungs"][0];
        assert_eq!(rung["runs"].as_array().unwrap().len(), 3, "the same runs: {rung:#}");
        let value = rung["figures"]["e2e_p50_ms"]["value"].as_f64().unwrap();
        assert!((value / exported(&lab, "old", class, "e2e_p50_ms") - 1.0).abs() < 1e-9, "{rung:#}");
        assert!(rung["figures"]["cost_per_million_output_tokens"].is_null(), "{rung:#}");
    }
    let both = ["brief", "long"].map(|class| {
        test(&answer(&lab, &["compare", "plan.yaml", "--class", class]), "e2e_p50")["arm"]["value"].as_f64().unwrap()
    });
    assert!(both[1] > 3.0 * both[0], "5 + 8 ms and 5 + 88 ms: {both:?}");

    let text = lab.ok(&["compare", "plan.yaml", "--class", "long"]).stdout;
    assert!(text.contains("against `old`, only requests of class `long`; 1 cell"), "{text}");
    let text = lab.ok(&["curves", "plan.yaml", "--class", "long"]).stdout;
    assert!(text.starts_with("class long: figures cover only its requests"), "{text}");
    assert!(text.replace('\n', " ").contains("2 runs have no class long and are excluded."), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    classes_are_kept_in_files_and_renamed(&lab);
}

fn classes_are_kept_in_files_and_renamed(lab: &Lab) {
    lab.ok(&["compare", "plan.yaml", "--write-baseline", "baseline.json"]);
    let against =
        ["compare", "plan.yaml", "--against", "baseline.json", "--only", "endpoint == 'new'", "--class", "long"];
    let same = answer(lab, &against);
    assert_eq!(test(&same, "e2e_p50")["words"], "equal in every repeat");
    // A renamed scenario keeps its results, under its new name.
    lab.write("plan.yaml", &PLAN.replace("long", "lengthy"));
    let renamed = answer(lab, &["compare", "plan.yaml", "--class", "lengthy"]);
    assert!(test(&renamed, "e2e_p50")["arm"]["value"].is_number(), "{renamed:#}");
    lab.write("plan.yaml", PLAN);

    for command in ["compare", "curves"] {
        let wrong = lab.run(&[command, "plan.yaml", "--class", "lnog"]);
        assert_eq!(wrong.code, Some(2), "{}", wrong.stdout);
        let told = "--class lnog: unknown class; the classes are `brief`, `long`";
        assert!(wrong.stderr.contains(told), "{}", wrong.stderr);
        let none = lab.run(&[command, "plan.yaml", "--class", "brief", "--set", "sweeps.load.matrix.scenario=brief"]);
        assert_eq!(none.code, Some(2), "{}", none.stdout);
        assert!(none.stderr.contains("no run uses a mix; write a scenario like mixed: { mix:"), "{}", none.stderr);
    }
    let by_size = ["compare", "plan.yaml", "--by", "endpoint", "--baseline", "old", "--only", "sweep == 'plain'"];
    let plain = lab.run(&[&by_size[..], &["--class", "brief"]].concat());
    assert!(plain.code == Some(2) && plain.stderr.contains("nothing to compare"), "{}", plain.stderr);
}
