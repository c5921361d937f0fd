//! Tests through the program that undecided results state what would decide them: gates, curves, capacity
//! and `show`.

use lab::Lab;
use lab::mock::Mock;
use lab::plans::plan;

const MATRIX: &str = "endpoint: [a], model: [m], scenario: [short]";

#[test]
fn a_cell_without_a_valid_run_is_named() {
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "0ms"]);
    let lab = Lab::new();
    // At 0.001 requests per second, none falls into the window.
    let rest = format!(
        "slo: {{ ttft: {{ p50: 10s }} }}\nvalidity: {{ client_late: {{ suspect: 100%, invalid: 100% }} }}\n\
         phases: {{ fill: 0s, stabilize: 0s, measure: 1s, drain: 10s }}\n\
         sweeps: {{ s: {{ matrix: {{ {MATRIX}, qps: [0.001, 80] }} }} }}\n"
    );
    lab.write("plan.yaml", &plan(&[("a", mock.port)], &rest));
    let gate = lab.run(&["run", "plan.yaml", "--gate"]);
    assert_eq!(gate.code, Some(3), "invalid runs are listed first: {}{}", gate.stdout, gate.stderr);
    assert!(gate.stderr.contains("0.001 qps: no valid run: repeat 0: empty_window"), "{}", gate.stderr);
    assert!(gate.stderr.contains("0.001 qps · 0 requests · invalid: empty_window"), "{}", gate.stderr);

    let curves = lab.ok(&["curves", "plan.yaml"]).stdout;
    let one_line = curves.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one_line.contains("a · short at qps 0.001, repeat 0: empty_window"), "{curves}");

    let empty = lab.runs().into_values().find(|run| run.json["facts"]["scheduled_in_window"] == 0).unwrap();
    let id = &empty.json["id"].as_str().unwrap()[..16];
    let page = lab.ok(&["show", id, "--plan", "plan.yaml"]).stdout;
    assert!(page.contains("not_shown (valid): no request arrived") && !page.contains("would suffice"), "{page}");
    let shown = lab.ok(&["show", id, "--plan", "plan.yaml", "--format", "json"]).json();
    lab.follows("show", &shown);
    assert!(shown["saturation"]["would_do_s"].is_null(), "{}", shown["saturation"]);
    assert!(shown["metrics"]["error_share_high"].is_null(), "{}", shown["metrics"]);
}

#[test]
fn an_error_share_of_none_has_an_upper_end() {
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "0ms"]);
    let lab = Lab::new();
    let rest = format!(
        "phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 50ms, min_requests: 100, at_most: 60s }}, drain: 10s }}\n\
         sweeps: {{ s: {{ matrix: {{ {MATRIX}, batch_size: [1] }} }} }}\n"
    );
    lab.write("plan.yaml", &plan(&[("a", mock.port)], &rest));
    let ended = lab.run(&["run", "plan.yaml", "-q"]);
    assert!(matches!(ended.code, Some(0 | 3)), "{}{}", ended.stdout, ended.stderr);
    let id = lab.only_run().json["id"].as_str().unwrap()[..16].to_owned();
    let metrics = &lab.ok(&["show", &id, "--format", "json"]).json()["metrics"];
    let share = |name: &str| metrics[name].as_f64().unwrap_or_else(|| panic!("{name}: {metrics}"));
    assert_eq!([share("error_share"), share("error_share_low")], [0.0, 0.0]);
    assert!((0.001..0.5).contains(&share("error_share_high")), "{metrics}");
    let page = lab.ok(&["show", &id]).stdout;
    assert!(page.contains("error share, upper end"), "{page}");
    let table = lab.ok(&["export", "plan.yaml", "--format", "csv", "--columns", "all"]).stdout;
    assert!(table.lines().next().unwrap().contains("error_share,error_share_low,error_share_high,"), "{table}");
}

#[test]
fn a_missed_limit_is_named_and_the_gate_lists_beside_it_what_was_not_tested() {
    let lab = Lab::new();
    let plan = format!(
        "sweepline: 1\nname: missed\nmodels: {{ m: {{ id: tiny }} }}\n\
         endpoints: {{ a: {{ engine: mock, mock: {{ ttft: 20ms }} }}, b: {{ engine: mock, mock: {{ ttft: 20ms }} }} }}\n\
         scenarios: {{ short: {{ prompt_tokens: 20, output_tokens: 4 }} }}\nslo: {{ ttft: {{ p90: 1ms }} }}\n\
         phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 1s, min_requests: 60, at_most: 9s }}, drain: 5s }}\n\
         compare: {{ by: endpoint, baseline: a }}\n\
         sweeps: {{ s: {{ matrix: {{ {}, batch_size: [2] }} }} }}\n",
        MATRIX.replace("[a]", "[a, b]")
    );
    lab.write("plan.yaml", &plan);
    let ended = lab.run(&["run", "plan.yaml", "--gate", "--progress", "plain"]);
    assert_eq!(ended.code, Some(4), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.stderr.matches("misses the objective (ttft p90 ≤ 1ms: ").count(), 2, "{}", ended.stderr);
    assert_eq!(ended.stderr.matches(" started, at least 1s").count(), 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("(2 runs may be extended)"), "{}", ended.stderr);
    let (failed, undecided) = ended.stderr.split_once("\nundecided\n").unwrap_or_else(|| panic!("{}", ended.stderr));
    assert!(failed.contains("gate: 2 failed; 1 question is undecided"), "{}", ended.stderr);
    assert!(undecided.contains("nothing could be tested"), "{}", ended.stderr);
}

#[test]
fn a_saturated_load_asks_for_no_longer_window() {
    let mock = Mock::start(&["--ttft", "20ms", "--itl", "0ms", "--slots", "1"]);
    let lab = Lab::new();
    // There is no queueing between two tokens, and so few requests leave open whether the share
    // above the limit is too high.
    let rest = format!(
        "slo: {{ e2e: {{ p99: 100s }} }}\nphases: {{ fill: 0s, stabilize: 500ms, measure: 2s, drain: 60s }}\n\
         sweeps: {{ s: {{ matrix: {{ {MATRIX}, qps: [100, 110] }} }} }}\n"
    );
    lab.write("plan.yaml", &plan(&[("a", mock.port)], &rest));
    let ended = lab.run(&["run", "plan.yaml", "--gate"]);
    let (id, _) = lab.runs().pop_first().unwrap();
    let page = lab.ok(&["show", &id, "--plan", "plan.yaml"]).stdout;
    let curves = lab.ok(&["curves", "plan.yaml"]).stdout;
    let capacity = lab.ok(&["capacity", "plan.yaml"]).stdout;
    for text in [&ended.stdout, &ended.stderr, &page, &curves, &capacity] {
        assert!(text.contains("saturated") && !text.contains("would suffice"), "{text}");
    }
    let joined = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains("observed to hold in this window, but the queue grows"), "{page}");
    assert!(curves.contains("(0 of 2 loads count; 2 saturated)"), "{curves}");
}

/// What was observed stands beside an undecided limit, in every output, and the reason is shown on request.
#[test]
fn an_undecided_limit_says_what_was_observed_and_that_it_is_not_proven() {
    let lab = Lab::new();
    let plan = "sweepline: 1\nname: observed\nseed: 3\n\
                endpoints: { a: { engine: mock, mock: { ttft: 10ms, itl: 1ms, slots: 8, jitter: 20% } } }\n\
                models: { m: { id: tiny } }\nscenarios: { short: { prompt_tokens: 20, output_tokens: 4 } }\n\
                phases: { fill: 0s, stabilize: 100ms, measure: 1s, drain: 5s }\n\
                sweeps: { s: { matrix: { scenario: short, qps: [80] } } }\n";
    for (limit, verb, observed) in [("900ms", "hold", "holds"), ("11ms", "miss", "misses")] {
        lab.write("plan.yaml", &format!("{plan}slo: {{ ttft: {{ p99: {limit} }} }}\n"));
        let ended = lab.run(&["run", "plan.yaml", "--gate"]);
        let id = lab.only_run().json["id"].as_str().unwrap()[..16].to_owned();
        let show = ["show", &id, "--plan", "plan.yaml"];
        let shown = lab.ok(&[&show[..], &["--format", "json"]].concat()).json();
        lab.follows("show", &shown);
        let test = &shown["slo"][0];
        if test["answer"] != "undecided" {
            assert_eq!(test["answer"], observed, "{test}");
            continue;
        }
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert_eq!(test["observed"], observed, "{test}");
        let curves = lab.ok(&["curves", "plan.yaml", "--format", "json"]).json();
        lab.follows("curves", &curves);
        let rung = &curves["curves"][0]["rungs"][0];
        assert_eq!((&rung["slo"], &rung["observed"]), (&"undecided".into(), &observed.into()), "{rung:#}");
        let table = lab.ok(&["export", "plan.yaml", "--rows", "curves", "--format", "json"]).json();
        assert_eq!(table[0]["objective_observed"], observed, "{table:#}");
        lab.ok(&["report", "plan.yaml", "-o", "report.html"]);
        let page = std::fs::read_to_string(lab.path().join("report.html")).unwrap();
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let verb_said = format!("observed to {verb}, not proven (");
        let counts = format!(": {} of {} above; ", test["above"], test["n"]);
        let is_said = |text: &str| text.split(&verb_said).skip(1).any(|rest| rest.contains(&counts));
        for text in [
            ended.stderr.clone(),
            lab.ok(&show).stdout,
            lab.ok(&["curves", "plan.yaml"]).stdout,
            lab.ok(&["capacity", "plan.yaml"]).stdout,
            page,
        ] {
            assert!(words(&text).contains(&format!("observed to {verb}, not proven (")), "{text}");
        }
        assert!(is_said(&words(&ended.stdout)) || is_said(&words(&ended.stderr)), "{}", ended.stderr);
        // The reason is shown on request.
        for args in [&show[..], &["curves", "plan.yaml"], &["capacity", "plan.yaml"]] {
            let [brief, full] = [&[][..], &["-v"]].map(|more| words(&lab.ok(&[args, more].concat()).stdout));
            assert!(full.contains(" independent ") && full.len() > brief.len(), "{full}");
            assert!(!brief.contains("worth "), "{brief}");
        }
    }
}
