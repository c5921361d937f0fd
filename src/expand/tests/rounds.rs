//! What is compared stands side by side, and runs in rounds.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::plan;
use crate::expand::{Cell, PlannedRun, RunId, expand, rounds};

#[test]
fn what_is_compared_runs_in_rounds_that_turn() {
    let mut own = json!({
        "matrix": { "endpoint": ["vllm", "demo", "other"], "model": ["small"], "prompt_tokens": [50, 90], "batch_size": [1, 2] },
        "repeats": 6,
    });
    let alone = expand(&plan(json!({ "s": own.clone() }))).expect("expands");
    own["compare"] = json!({ "by": "endpoint", "baseline": "vllm" });
    let runs = expand(&plan(json!({ "s": own }))).expect("expands").runs;
    let load = |run: &PlannedRun| (run.cell["prompt_tokens"].to_string(), run.cell["batch_size"].to_string());
    let mut orders = BTreeMap::<_, Vec<Vec<String>>>::new();
    for round in runs.chunks(3) {
        assert!(round.iter().all(|run| load(run) == load(&round[0]) && run.repeat == round[0].repeat));
        let arms = round.iter().map(|run| run.cell["endpoint"].to_string()).collect();
        orders.entry(load(&round[0])).or_default().push(arms);
    }
    assert_eq!(orders.len(), 4);
    for rounds in orders.values() {
        assert_eq!(rounds.len(), 6);
        for two in rounds.chunks(2) {
            let turned: Vec<&String> = two[1].iter().rev().collect();
            assert_eq!(two[0].iter().collect::<Vec<_>>(), turned, "the second round turns the first");
        }
    }
    // Which one begins is drawn: not always the same.
    let firsts: BTreeSet<&String> =
        orders.values().flat_map(|rounds| rounds.iter().step_by(2)).map(|round| &round[0]).collect();
    assert!(firsts.len() > 1);
    let ids = |runs: &[PlannedRun]| runs.iter().map(|run| run.id).collect::<BTreeSet<RunId>>();
    assert_eq!(ids(&runs), ids(&alone.runs), "order is no part of identity");
}

#[test]
fn an_axis_that_follows_from_the_compared_one_separates_nothing() {
    let zipped = json!({
        "matrix": {
            "arm": { "zip": { "endpoint": ["vllm", "demo"], "prompt_tokens": [50, 90] } },
            "model": ["small"], "scenario": ["chat"], "batch_size": [1, 2],
        },
    });
    let runs = expand(&plan(json!({ "s": zipped }))).expect("expands").runs;
    let cells: Vec<Cell> = runs.iter().map(|run| run.cell.clone()).collect();
    let found = rounds(&cells, "endpoint");
    assert_eq!(found.bound, ["prompt_tokens"]);
    assert_eq!(found.groups.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
    for group in &found.groups {
        assert_eq!(cells[group[0]]["batch_size"], cells[group[1]]["batch_size"]);
    }
    let alone = rounds(&cells, "qps");
    assert_eq!(alone.groups, [[0], [1], [2], [3]]);
}
