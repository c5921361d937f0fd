//! Tests repeats that end early: once a cell's means are known, or an arm differs from its baseline.
//! Unneeded repeats are skipped with the reason, and a sweep that is killed and resumed skips the same
//! ones.

use std::collections::BTreeSet;

use serde_json::Value;

use lab::sweeps::{end, honest, names, wait_until_gone};
use lab::{Lab, Running};

const HEAD: &str = "
sweepline: 1
name: enough
endpoints:
  fast: { engine: mock, mock: { ttft: 10ms, itl: 2ms, jitter: 5% } }
  slow: { engine: mock, mock: { ttft: 10ms, itl: 5ms, jitter: 5% } }
models: { m: { id: demo } }
scenarios: { short: { prompt_tokens: 20, output_tokens: 12 } }
phases: { fill: 0s, stabilize: 0s, measure: 400ms, drain: 5s }
# A busy machine sends late; what is asked here is which runs are made.
validity: { client_late: { suspect: 100%, invalid: 100% } }
";

/// Returns the ids of the runs in a state according to `preview`, and the section on repeats.
fn preview(lab: &Lab, state: &str) -> (BTreeSet<String>, Vec<Value>) {
    let preview = lab.ok(&["preview", "plan.yaml", "--format", "json"]).json();
    lab.follows("preview", &preview);
    let runs = preview["runs"].as_array().unwrap().iter().filter(|run| run["state"] == state);
    let ids = runs.map(|run| run["id"].as_str().unwrap()[..16].to_owned()).collect();
    (ids, preview["repeats"].as_array().cloned().unwrap_or_default())
}

/// Starts the program with a failpoint, waits until it has killed itself there, and then lets it finish.
fn killed_and_resumed(lab: &Lab, failpoint: &str) {
    let args = ["run", "plan.yaml"];
    let running = Running::start(lab.command(&args).env("SWEEPLINE_FAILPOINT", failpoint));
    let (ended, servers) = end(running);
    assert_eq!(ended.code, None, "not killed at {failpoint}: {}", ended.stderr);
    wait_until_gone(&servers);
    honest(&lab.run(&args));
}

#[test]
fn repeats_end_when_means_are_known_and_a_killed_sweep_leaves_out_the_same() {
    let lab = Lab::new();
    let sweep = "  s: { matrix: { endpoint: fast, scenario: short, batch_size: [1, 2] }, \
                 repeats: { until: 50%, at_most: 6, metrics: e2e_p50 } }\n";
    lab.write("plan.yaml", &format!("{HEAD}sweeps:\n{sweep}"));
    // The ids equal those of the same number of unconditional repeats.
    let (all, before) = preview(&lab, "new");
    assert_eq!((all.len(), before.len(), &before[0]["at_least"], &before[0]["at_most"]), (12, 2, &3.into(), &6.into()));
    lab.write(
        "fixed.yaml",
        &format!("{HEAD}sweeps:\n{}", sweep.replace("{ until: 50%, at_most: 6, metrics: e2e_p50 }", "6")),
    );
    let fixed = lab.ok(&["preview", "fixed.yaml", "--format", "json"]).json();
    let fixed = fixed["runs"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()[..16].to_owned());
    assert_eq!(fixed.collect::<BTreeSet<_>>(), all);
    lab.ok(&["freeze", "plan.yaml", "-o", "plan.lock"]);
    killed_and_resumed(&lab, "before_rename:4");
    let (cached, after) = preview(&lab, "cached");
    let (pruned, _) = preview(&lab, "pruned");
    assert_eq!((cached.clone(), &cached | &pruned), (names(&lab, "runs"), all));
    let made: u64 = after.iter().map(|cell| cell["finished"].as_u64().unwrap()).sum();
    assert_eq!(made, cached.len() as u64);
    assert!(
        made < 12 && after.iter().all(|cell| cell["standing"].as_str().unwrap().starts_with("known to within ")),
        "{after:#?}"
    );
    // When the same rows are read again, there is nothing to do for users, pipelines and locks.
    let again = lab.ok(&["run", "plan.yaml", "--frozen", "plan.lock"]);
    assert!(again.stderr.contains("nothing to do") && again.stderr.contains(" skipped"), "{}", again.stderr);
    lab.ok(&["preview", "plan.yaml", "--exit-code"]);
    let id = pruned.first().unwrap();
    let why = lab.ok(&["why", id, "--plan", "plan.yaml"]).stdout;
    assert!(why.contains("pruned") && why.contains("known to within "), "{why}");
    // For runs that are requested again, the decision is made again.
    let forced = lab.ok(&["preview", "plan.yaml", "--force", "--format", "json"]).json();
    assert_eq!(forced["totals"]["states"]["pruned"], 0, "{}", forced["totals"]);
}

#[test]
fn rounds_end_when_a_difference_is_shown_and_compare_judges_by_that_look() {
    let lab = Lab::new();
    let sweep = "  s: { matrix: { endpoint: [fast, slow], scenario: short, batch_size: 1 }, repeats: 12, \
                 compare: { by: endpoint, baseline: fast, metrics: e2e_p50, sequential: true } }\n";
    lab.write("plan.yaml", &format!("{HEAD}sweeps:\n{sweep}"));
    killed_and_resumed(&lab, "after_rename:5");
    let (cached, after) = preview(&lab, "cached");
    let (pruned, _) = preview(&lab, "pruned");
    assert_eq!((&cached, cached.len() + pruned.len()), (&names(&lab, "runs"), 24));
    let rounds = after[0]["finished"].as_u64().unwrap();
    assert!((3..12).contains(&rounds) && cached.len() as u64 == 2 * rounds, "{after:#?}");
    assert_eq!(after[1]["standing"], format!("decided after {rounds} of 12 rounds"));
    let compared = lab.ok(&["compare", "plan.yaml", "--format", "json"]).json();
    let test = &compared["families"][0]["cells"][0]["tests"][0];
    assert_eq!((&test["outcome"], &test["sequence"]["round"]), (&"worse".into(), &rounds.into()), "{test:#}");
    assert_eq!(compared["families"][0]["cells"][0]["left_out"].as_array().map(Vec::len), Some(0), "{compared:#}");
    assert!(lab.ok(&["run", "plan.yaml"]).stderr.contains("nothing to do"));
}

#[test]
fn a_budget_leaves_out_what_is_optional_and_spends_what_was_not_needed() {
    let lab = Lab::new();
    let plan = |budget: &str| {
        format!(
            "{HEAD}budget: {{ time: {budget} }}\nsweeps:\n  \
             must: {{ matrix: {{ endpoint: fast, scenario: short, batch_size: 1 }}, \
             repeats: {{ until: 50%, at_most: 4, metrics: e2e_p50 }} }}\n  \
             more: {{ matrix: {{ endpoint: fast, scenario: short, batch_size: [2, 3, 4] }}, optional: true }}\n  \
             last: {{ matrix: {{ endpoint: fast, scenario: short, batch_size: 5 }}, optional: true }}\n"
        )
    };
    // A budget that is too small for a single run is rejected, with its place.
    lab.write("plan.yaml", &plan("100ms"));
    for command in ["check", "run"] {
        let refused = lab.run(&[command, "plan.yaml"]);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains("plan.yaml:12:17"), "{}", refused.stderr);
        assert!(refused.stderr.contains("`budget.time` is 0.1s, and one run takes 0.4s"), "{}", refused.stderr);
    }
    // Sweeps that are not optional run in spite of the budget; the output reports this.
    lab.write("plan.yaml", &plan("1s"));
    let shown = lab.ok(&["preview", "plan.yaml"]).stdout;
    assert!(shown.contains("sweeps that are not optional take"), "{shown}");
    // The budget is 1.6 s, of which optional sweeps of 1.2 and 0.4 s leave too little; the sweeps that
    // are finally made need 1.2 s.
    lab.write("plan.yaml", &plan("2500ms"));
    let budget = || lab.ok(&["preview", "plan.yaml", "--format", "json"]).json()["budget"].clone();
    let left_out = |budget: &Value| -> Vec<String> {
        budget["left_out"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    let before = budget();
    assert_eq!(left_out(&before), ["last", "more"], "{before:#}");
    assert_eq!(
        (&before["limits"][0]["of"], &before["limits"][0]["worst"]),
        (&"time".into(), &1.6.into()),
        "{before:#}"
    );
    let ended = lab.run(&["run", "plan.yaml"]);
    honest(&ended);
    assert!(ended.stderr.contains("the budget now allows an optional sweep: 3 runs"), "{}", ended.stderr);
    assert!(ended.stderr.contains("(optional, last declared first): `last`"), "{}", ended.stderr);
    assert_eq!((left_out(&budget()), names(&lab, "runs").len()), (vec!["last".to_owned()], 6));
    let (pruned, _) = preview(&lab, "pruned");
    assert_eq!(pruned.len(), 2, "a repeat, and the last sweep");
}

#[test]
fn a_budget_is_looked_at_again_before_each_optional_run_where_its_cost_was_not_known() {
    let lab = Lab::new();
    // The token cost of a closed loop is unknown before it has been measured; one run costs more than this
    // budget.
    let plan = format!(
        "{HEAD}budget: {{ tokens: 20 }}\nsweeps:\n  \
         must: {{ matrix: {{ endpoint: fast, scenario: short, batch_size: 1 }} }}\n  \
         more: {{ matrix: {{ endpoint: fast, scenario: short, batch_size: [2, 3] }}, optional: true }}\n"
    );
    lab.write("plan.yaml", &plan);
    let before = lab.ok(&["preview", "plan.yaml", "--format", "json"]).json()["budget"].clone();
    assert_eq!(before["limits"][0]["runs_not_counted"], 3, "{before:#}");
    let ended = lab.run(&["run", "plan.yaml", "--progress", "plain"]);
    honest(&ended);
    assert!(ended.stderr.contains("of a budget of 20 tokens"), "{}", ended.stderr);
    assert_eq!((ended.code, names(&lab, "runs").len()), (Some(0), 1), "{}", ended.stderr);
    assert!(ended.stderr.contains("(optional, last declared first): `more`"), "{}", ended.stderr);
}
