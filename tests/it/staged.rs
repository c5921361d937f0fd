//! Tests sweeps that use the result of an earlier sweep: staged runs, kills between the stages, gates and
//! skipped sweeps.

use rustix::process::Signal;
use serde_json::Value;

use lab::Lab;
use lab::plans::LADDER as HEAD;
use lab::sweeps::{Talking, honest, names};

/// Returns a plan with the ladder, followed by a sweep.
fn behind(sweep: &str) -> String {
    format!("{HEAD}{sweep}\n")
}

const SUSTAINED: &str = "  sustained: { matrix: { scenario: short, batch_size: { from: ladder, take: max_batch_size_under_slo, \
                         times: 0.8 } }, repeats: 2 }";

fn preview(lab: &Lab, plan: &str) -> Value {
    let preview = lab.ok(&["preview", plan, "--format", "json"]).json();
    lab.follows("preview", &preview);
    preview
}

/// Returns state and reason of the cells that are not runs yet.
fn pending(preview: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let cells = preview["pending"].as_array().cloned().unwrap_or_default();
    cells.iter().map(|cell| (text(&cell["state"]), text(&cell["why"]))).collect()
}

#[test]
fn a_load_is_taken_from_a_ladder_and_a_kill_between_the_stages_changes_nothing() {
    let lab = Lab::new();
    lab.write("plan.yaml", &behind(SUSTAINED));
    let before = preview(&lab, "plan.yaml");
    assert_eq!(before["pending"][0]["cell"]["batch_size"], "0.8 × ladder.max_batch_size_under_slo");
    let why = "waits for ladder: a · m · short: 0 runs so far";
    assert_eq!(pending(&before), [("pending".to_owned(), why.to_owned())]);
    assert!(lab.ok(&["preview", "plan.yaml"]).stdout.contains("pending 2 runs"));
    cells_that_wait_are_asked_for(&lab, why);
    let graph = lab.ok(&["graph", "plan.yaml", "--format", "json"]).json();
    lab.follows("graph", &graph);
    let nodes = graph["nodes"].as_array().unwrap();
    let at = |kind: &str| nodes.iter().position(|node| node["kind"] == kind).unwrap_or_else(|| panic!("{graph:#}"));
    assert_eq!((&nodes[at("cell")]["state"], &nodes[at("cell")]["said"]), (&"pending".into(), &why.into()));
    assert!(graph["edges"].as_array().unwrap().contains(&serde_json::json!([at("gate"), at("cell")])), "{graph:#}");
    let drawn = lab.ok(&["graph", "plan.yaml", "--format", "text"]).stdout;
    assert!(
        drawn.contains("pending   sustained: ") && drawn.contains("0.8 × ladder.max_batch_size_under_slo"),
        "{drawn}"
    );
    // The cost of these cells is unknown, and is not counted in budgets. An optional sweep does not wait
    // for a sweep that the budget skips.
    lab.write("budget.yaml", &format!("{}budget: {{ time: 20s }}\n", behind(SUSTAINED)));
    assert_eq!(preview(&lab, "budget.yaml")["budget"]["limits"][0]["runs_not_counted"], 2);
    let optional = SUSTAINED.replace("repeats: 2", "repeats: 2, optional: true");
    let optional = behind(&optional).replace("stop: slo_missed", "stop: slo_missed, optional: true");
    lab.write("budget.yaml", &format!("{optional}budget: {{ time: 3s }}\n"));
    let left = preview(&lab, "budget.yaml");
    assert_eq!(left["budget"]["left_out"], serde_json::json!(["sustained", "ladder"]));
    assert_eq!(left["pending"][0]["state"], "left_out");
    lab.ok(&["freeze", "plan.yaml", "-o", "plan.lock"]);
    // The sweep is killed when the value is known, but before any run at this value.
    let run = ["run", "plan.yaml", "--progress", "plain"];
    let talking = Talking::start(&mut lab.command(&run), lab.path().join("stderr"));
    talking.wait_to_say("× 0.8 → 3 in flight");
    talking.signal(Signal::KILL);
    talking.end();
    let ended = lab.run(&["run", "plan.yaml", "--progress", "plain", "--frozen", "plan.lock"]);
    honest(&ended);
    assert!(ended.stderr.contains("(a · m · short) × 0.8 → 3 in flight"), "{}", ended.stderr);
    assert_eq!(names(&lab, "runs").len(), 5, "2, 4 and 8, and twice the resulting 3");
    assert_eq!(pending(&preview(&lab, "plan.yaml")), []);
    // If the ladder is edited, its result is unknown again. Any load may follow from it, so results at
    // such loads are not orphans.
    lab.write("edited.yaml", &behind(SUSTAINED).replace("[2, 4, 8]", "[2, 4, 6]"));
    let edited = preview(&lab, "edited.yaml");
    assert_eq!(
        (edited["pending"][0]["state"].as_str(), &edited["totals"]["states"]["orphan"]),
        (Some("pending"), &0.into())
    );
    lab.write("fewer.yaml", &behind(""));
    assert_eq!(preview(&lab, "fewer.yaml")["totals"]["states"]["orphan"], 2, "3 in flight, twice, without that sweep");
    // The sweep's runs equal those with the same load written as a number, and record the source of
    // the load.
    lab.write("written.yaml", &behind("  sustained: { matrix: { scenario: short, batch_size: 3 }, repeats: 2 }"));
    let written = preview(&lab, "written.yaml");
    let states: Vec<&Value> = written["runs"].as_array().unwrap().iter().map(|run| &run["state"]).collect();
    assert!(states.len() == 5 && states.iter().all(|state| *state == "cached"), "{written:#}");
    let of_sustained = written["runs"].as_array().unwrap().iter().find(|run| run["sweep"] == "sustained").unwrap();
    let shown = lab.ok(&["show", &of_sustained["id"].as_str().unwrap()[..16], "--plan", "plan.yaml"]);
    assert!(!shown.stderr.contains("is not a run of"), "{}", shown.stderr);
    let folder = lab.results().join("runs").join(&of_sustained["id"].as_str().unwrap()[..16]);
    let record: Value = serde_json::from_slice(&std::fs::read(folder.join("run.json")).unwrap()).unwrap();
    let taken = &record["spec"]["taken"][0];
    assert_eq!((&taken["from"], &taken["load"], &taken["found"][0]["load"]), (&"ladder".into(), &3.into(), &4.into()));
    assert_eq!(taken["found"][0]["runs"].as_array().unwrap().len(), 3, "{taken:#}");
}

/// Before any run, the cells of `sustained` have no ids. They can be found by their sweep, by their
/// values, and by an expression.
fn cells_that_wait_are_asked_for(lab: &Lab, why: &str) {
    let only = ["--only", "sweep == 'sustained' and repeat < 1"];
    let ended = lab.run(&[&["run", "plan.yaml"][..], &only].concat());
    let said = "1 selected run has no id yet: their ids are known once the earlier sweep has a result; also select the sweeps that they wait for; no request was sent";
    assert!(ended.code == Some(6) && ended.stderr.contains(said), "{:?}: {}", ended.code, ended.stderr);
    assert!(ended.stderr.contains(&format!("sustained: 1 run pending: {why}")), "{}", ended.stderr);
    let seen = lab.ok(&[&["preview", "plan.yaml", "--format", "json"][..], &only].concat()).json();
    assert_eq!((&seen["runs"], &seen["pending"][0]["repeats"]), (&serde_json::json!([]), &1.into()));
    // An unknown load is neither a number nor a string.
    let none = lab.run(&["run", "plan.yaml", "--only", "sweep == 'sustained' and batch_size > 0"]);
    assert!(
        none.code == Some(2) && none.stderr.contains("the values of sweep are 'ladder', 'sustained'"),
        "{}",
        none.stderr
    );
    let table = lab.run(&[&["curves", "plan.yaml"][..], &only].concat());
    assert!(table.code == Some(2) && table.stderr.contains(&format!("1 run of the plan, pending: {why}")), "{table:?}");
    for asked in ["sustained", "sustained/a · m · short", "sustained: short", "sweep == 'sustained'"] {
        let told = lab.ok(&["why", asked, "--plan", "plan.yaml", "--format", "json"]).json();
        lab.follows("why", &told);
        let cell = &told["waiting"][0];
        assert_eq!(
            (&told["runs"], &cell["state"], &cell["why"]),
            (&serde_json::json!([]), &"pending".into(), &why.into())
        );
        assert_eq!((&cell["repeats"], &cell["decided_by"][0]["sweep"]), (&2.into(), &"ladder".into()), "{told:#}");
    }
    let other = lab.run(&["why", "sustained/b", "--plan", "plan.yaml"]);
    let named =
        "sweep `sustained` has no cell with b; its cells are a · m · short · 0.8 × ladder.max_batch_size_under_slo";
    assert!(other.code == Some(2) && other.stderr.contains(named), "{}", other.stderr);
    let without = lab.run(&["why", "sustained"]);
    assert!(without.stderr.contains("sweep names require --plan"), "{}", without.stderr);
}

#[test]
fn gates_stop_and_skip_if_leaves_out_by_what_was_found() {
    let lab = Lab::new();
    let gate = |bound: &str| {
        behind(&format!(
            "  checked: {{ matrix: {{ scenario: short, batch_size: 1 }}, gate: {{ sweep: ladder, metric: \
             max_batch_size_under_slo, {bound} }} }}\n  behind: {{ matrix: {{ scenario: short, batch_size: 5 }}, after: checked }}"
        ))
    };
    lab.write("no.yaml", &gate("at_least: 5"));
    let ended = lab.run(&["run", "no.yaml", "--progress", "plain", "--markdown", "gate.md"]);
    let why =
        "checked: 1 run stopped by the gate: ladder: a · m · short: max_batch_size_under_slo is 4 in flight, below 5";
    assert!(ended.code == Some(4) && ended.stderr.contains(why), "{:?}: {}", ended.code, ended.stderr);
    assert_eq!(names(&lab, "runs").len(), 3, "the ladder alone");
    let page = std::fs::read_to_string(lab.path().join("gate.md")).unwrap();
    assert!(page.contains("### staged: the gate failed") && page.contains(&why.replace('_', "\\_")), "{page}");
    assert!(page.contains("- ladder: a · m · short: 8 in flight misses the objective"), "{page}");
    let row =
        "| checked | ladder: a · m · short | max\\_batch\\_size\\_under\\_slo | 4 in flight | n/a | at least 5 | no |";
    assert!(page.contains(row), "{page}");
    // Both sweeps are stopped by the gate of the first one, and the ladder is decided.
    for (sweep, why) in [("checked", "ladder: a"), ("behind", "gate of `checked`: ladder: a")] {
        let told = lab.ok(&["why", sweep, "--plan", "no.yaml", "--format", "json"]).json();
        let cell = &told["waiting"][0];
        assert!(cell["state"] == "stopped" && cell["why"].as_str().unwrap().starts_with(why), "{told:#}");
        assert_eq!(cell["decided_by"][0]["says"], "ladder: a · m · short: 4 in flight", "{told:#}");
        assert_eq!(cell["decided_by"][0]["runs"].as_array().unwrap().len(), 3, "{told:#}");
    }
    let refused = lab.run(&["run", "no.yaml", "--markdown", "no.yaml"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("was not written by --markdown"), "{}", refused.stderr);
    let skip = "  later: { matrix: { scenario: short, batch_size: 1 }, skip_if: { sweep: ladder, metric: \
                max_batch_size_under_slo, below: 5 } }";
    lab.write("skip.yaml", &behind(skip));
    let ended = lab.ok(&["run", "skip.yaml"]);
    assert!(ended.stderr.contains("later: 1 run skipped by `skip_if`: ladder: a"), "{}", ended.stderr);
    let told = lab.ok(&["why", "later", "--plan", "skip.yaml"]).stdout;
    assert!(told.contains("skipped by `skip_if`: ladder: a · m · short: max_batch_size_under_slo is 4"), "{told}");
    assert!(told.contains("max_batch_size_under_slo of ladder: a · m · short: 4 in flight (runs "), "{told}");
    // The ladder meets the objective at its heaviest load, so the limit above that load is unknown.
    lab.write("unknown.yaml", &gate("at_least: 5").replace("[2, 4, 8]", "[2, 4]"));
    let ended = lab.run(&["run", "unknown.yaml"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("cannot be decided"), "{:?}: {}", ended.code, ended.stderr);
    // No load of this ladder meets the objective, so there is no load to use, and none is guessed.
    lab.write("none.yaml", &behind(SUSTAINED).replace("[2, 4, 8]", "[8, 16]"));
    let ended = lab.run(&["run", "none.yaml"]);
    let why =
        "sustained: 2 runs blocked: no load to use: ladder: a · m · short: 8 in flight, the lightest load, misses";
    assert!(ended.code == Some(3) && ended.stderr.contains(why), "{:?}: {}", ended.code, ended.stderr);
    let told = lab.ok(&["why", "sustained", "--plan", "none.yaml", "--format", "json"]).json();
    assert_eq!(told["waiting"][0]["state"], "blocked", "{told:#}");
    assert!(told["waiting"][0]["decided_by"][0]["says"].as_str().unwrap().contains("8 in flight, the lightest"));
    let ended = lab.run(&["run", "none.yaml", "--only", "sweep == 'sustained'"]);
    assert_eq!(ended.code, Some(3), "requested cells that are blocked are missing: {}", ended.stderr);
    assert_eq!(names(&lab, "runs").len(), 3, "nothing was measured for any of them");
    lab.write("yes.yaml", &gate("at_least: 4"));
    honest(&lab.run(&["run", "yes.yaml"]));
    assert_eq!(names(&lab, "runs").len(), 5, "the gate lets both through");
}

#[test]
fn a_comparison_that_has_no_runs_is_not_suggested() {
    let lab = Lab::new();
    let compared = SUSTAINED
        .replace("{ matrix: { ", "{ compare: { by: endpoint, baseline: a }, matrix: { endpoint: [a, b], ")
        .replace("take:", "over: endpoint, use: min, take:");
    let second = "endpoints: { b: { engine: mock, mock: { ttft: 20ms, itl: 10ms, slots: 8 } }, a:";
    let plan = behind(&compared)
        .replace("endpoints: { a:", second)
        .replace("{ scenario: short, batch_size: [", "{ endpoint: [a, b], scenario: short, batch_size: [");
    let suggested = |file: &str, plan: &str| {
        lab.write(file, plan);
        let ended = lab.run(&["run", file, "--jobs", "2"]);
        let (_, next) = ended.stderr.split_once("next:\n").unwrap_or_else(|| panic!("{}", ended.stderr));
        next.split_once("sweepline ").unwrap().1.split(' ').next().unwrap().to_owned()
    };
    assert_eq!(suggested("none.yaml", &plan.replace("[2, 4, 8]", "[16, 32]")), "capacity", "both arms are blocked");
    assert_eq!(suggested("both.yaml", &plan), "compare");
}

#[test]
fn a_gate_holds_the_interval_of_any_metric_against_its_bound() {
    let lab = Lab::new();
    let head = HEAD.split("  ladder:").next().unwrap().replace("measure: 3500ms", "measure: 700ms");
    let plan = |gate: &str| {
        format!(
            "{head}  smoke: {{ matrix: {{ scenario: short, batch_size: 4 }}, repeats: 3 }}\n  checked: {{ matrix: {{ scenario: short, \
             batch_size: 1 }}, gate: {{ sweep: smoke, {gate} }} }}\n"
        )
    };
    // Each response takes 60 ms, and no request fails.
    lab.write("no.yaml", &plan("metric: e2e_p50, at_most: 30ms"));
    let ended = lab.run(&["run", "no.yaml", "--gate", "--markdown", "gate.md"]);
    let said = ended.stderr.split("\ngate: ").nth(1).unwrap_or_else(|| panic!("{}", ended.stderr));
    assert!(said.starts_with("1 failed\n  gate of `checked`: smoke: a · m · short · 4: e2e_p50 is 6"), "{said}");
    let page = std::fs::read_to_string(lab.path().join("gate.md")).unwrap();
    let row = page.lines().find(|line| line.starts_with("| checked |")).unwrap_or_else(|| panic!("{page}"));
    let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
    assert_eq!((cells.len(), cells[5], cells[6]), (7, "at most 30ms", "no"), "{page}");
    assert!(cells[3].starts_with('6') && cells[4].contains(" ms to "), "value and interval: {page}");
    let why = "stopped by the gate: smoke: a · m · short · 4: e2e_p50 is 6";
    assert!(ended.code == Some(4) && ended.stderr.contains(why), "{:?}: {}", ended.code, ended.stderr);
    assert!(ended.stderr.contains("above 30ms"), "{}", ended.stderr);
    // The interval of a share of 0 extends further than this.
    lab.write("few.yaml", &plan("metric: error_share, at_most: 0.01%"));
    let ended = lab.run(&["run", "few.yaml", "--gate"]);
    assert!(ended.stderr.contains("gate: nothing failed; 1 question is undecided"), "{}", ended.stderr);
    assert!(ended.stderr.contains("at most 0.01%: cannot be decided"), "{}", ended.stderr);
    assert!(
        ended.code == Some(2) && ended.stderr.contains("cannot be decided: smoke"),
        "{:?}: {}",
        ended.code,
        ended.stderr
    );
    assert_eq!(names(&lab, "runs").len(), 3, "no run after either gate");
    lab.write("yes.yaml", &plan("metric: e2e_p50, at_most: 2s"));
    honest(&lab.run(&["run", "yes.yaml"]));
    // In such a short window, it remains undecided whether the objective holds.
    let ended = lab.run(&["run", "yes.yaml", "--gate"]);
    let kept = "conditions met\n  gate of `checked`: smoke: a · m · short · 4: e2e_p50 is 6";
    assert!(ended.stderr.contains(kept) && ended.stderr.contains(", at most 2s: yes"), "{}", ended.stderr);
    assert_eq!(names(&lab, "runs").len(), 4, "the gate lets it through");
}

#[test]
fn run_numbers_go_on_in_a_later_stage_and_calibrate_knows_a_load_once_it_is_found() {
    let lab = Lab::new();
    let quick = HEAD.replace("p50: 50ms", "p50: 900ms").replace("3500ms", "1500ms").replace("[2, 4, 8]", "[2, 4]");
    lab.write("plan.yaml", &format!("{quick}{}\n", SUSTAINED.replace(", repeats: 2", "")));
    let calibrate =
        || lab.ok(&["calibrate", "plan.yaml", "--for", "200ms", "--within", "0s", "--no-search", "--format", "json"]);
    let before = calibrate();
    lab.follows("calibrate", &before.json());
    let line = "sustained: batch_size 0.8 × ladder.max_batch_size_under_slo: waits for ladder";
    assert!(before.stderr.contains(&format!("not calibrated: {line}")), "{}", before.stderr);
    assert!(before.json()["not_known"][0].as_str().unwrap().starts_with(line), "{}", before.stdout);
    lab.run(&["run", "plan.yaml"]);
    assert_eq!(calibrate().json()["not_known"], serde_json::json!([]));
    let again = lab.run(&["run", "plan.yaml", "--force", "--progress", "plain"]).stderr;
    let started = again.lines().filter(|line| line.contains(" started, "));
    let numbers: Vec<&str> = started.filter_map(|line| line.split('[').nth(1)?.split('/').next()).collect();
    assert_eq!(numbers, ["1", "2", "3"], "{again}");
}

#[test]
fn check_refuses_budgets_that_run_would_and_questions_without_an_answer() {
    let lab = Lab::new();
    let refused = |name: &str, plan: &str, said: &str| {
        lab.write(name, plan);
        let ended = lab.run(&["check", name]);
        assert!(ended.code == Some(2) && ended.stderr.contains(said), "{:?}: {}", ended.code, ended.stderr);
        let told = lab.run(&["check", name, "--format", "json"]).json();
        let mistake = &told["diagnostics"][0];
        assert!(
            mistake["severity"] == "error" && mistake["line"].is_u64() && mistake["remedy"].is_string(),
            "{told:#}"
        );
        assert_eq!(lab.run(&["run", name]).code, Some(2), "{said}");
    };
    let budget = |time: &str| format!("{}budget: {{ time: {time} }}\n", behind(""));
    refused("time.yaml", &budget("1s"), "error[E029]: `budget.time` is 1s, and one run takes 3.6s");
    lab.write("enough.yaml", &budget("15s"));
    lab.ok(&["check", "enough.yaml"]);
    let launched = HEAD.replace(
        "{ engine: mock, mock: { ttft: 20ms, itl: 10ms, slots: 4 } }",
        "{ engine: vllm, launch: { command: [serve, \"{{ server.args }}\", \"{{ port }}\"], port: auto } }",
    );
    let tuned = |budget: &str| {
        format!(
            "{launched}  tuned: {{ matrix: {{ scenario: short, batch_size: 8, server.max_num_seqs: [1, 2, 4] }}, optimize: {{ for: \
             output_throughput, budget: {budget} }} }}\n"
        )
    };
    let said = "error[E029]: a budget of 5s is less than the time of one run for each of the 3 settings, 10.8s";
    refused("tuned.yaml", &tuned("5s"), said);
    lab.write("enough.yaml", &tuned("1m"));
    lab.ok(&["check", "enough.yaml"]);
    let asked = |question: &str| {
        behind(&format!(
            "  load: {{ matrix: {{ scenario: short, batch_size: 1 }} }}\n  checked: {{ matrix: {{ scenario: short, batch_size: 1 }}, \
             {question} }}"
        ))
    };
    let gate = |metric: &str, bound: &str| asked(&format!("gate: {{ sweep: load, metric: {metric}, {bound} }}"));
    let said =
        "sweep `load` never has `output_throughput`: it runs each cell once, and a single run yields no interval";
    refused("once.yaml", &gate("output_throughput", "at_least: 5"), said);
    let repeated =
        gate("output_throughput", "at_least: 5").replace("batch_size: 1 } }\n", "batch_size: 1 }, repeats: 3 }\n");
    lab.write("enough.yaml", &repeated);
    lab.ok(&["check", "enough.yaml"]);
    let good = gate("goodput_share", "at_least: 90%").replace("slo: { ttft: { p50: 50ms } }\n", "");
    refused("good.yaml", &good.replace(", stop: slo_missed", ""), "the plan does not define which requests are good");
    let ladder = behind("  dear: { matrix: { scenario: short, batch_size: [1, 2] }, stop: { cost_per_million: 3 } }");
    refused("dear.yaml", &ladder, "`stop: { cost_per_million: … }` needs a price, but endpoint `a` has none");
    // With about forty requests there is no p99, but the sweep can be run anyway.
    lab.write("few.yaml", &gate("ttft_p99", "at_most: 1s"));
    let told = lab.ok(&["check", "few.yaml", "--format", "json"]).json();
    let few = told["diagnostics"].as_array().unwrap().iter().find(|one| one["code"] == "M032").expect("a warning");
    assert!(few["message"].as_str().unwrap().starts_with("`ttft_p99` of sweep `load` needs 368 requests"), "{few:#}");
    assert_eq!((&few["severity"], &few["line"]), (&"warning".into(), &14.into()), "{few:#}");
}
