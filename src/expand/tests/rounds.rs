//! Tests that compared cells stay together and run in rounds.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::plan;
use crate::expand::{Cell, PlannedRun, RunId, expand, order, rounds};
use crate::units::Seed;

#[test]
fn what_is_compared_runs_in_rounds_that_turn() {
    let mut own = json!({
        "matrix": { "endpoint": ["vllm", "demo", "other"], "model": ["small"], "scenario": "B1", "prompt_tokens": [50, 90], "batch_size": [1, 2] },
        "repeats": 8,
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
        assert_eq!(rounds.len(), 8);
        for four in rounds.chunks(4) {
            let turned: Vec<String> = four[0].iter().rev().cloned().collect();
            assert_eq!(four.iter().filter(|round| **round == four[0]).count(), 2, "{four:?}");
            assert_eq!(four.iter().filter(|round| **round == turned).count(), 2, "{four:?}");
        }
    }
    // The first arm is drawn at random, so it is not always the same.
    let firsts: BTreeSet<&String> =
        orders.values().flat_map(|rounds| rounds.iter().step_by(4)).map(|round| &round[0]).collect();
    assert!(firsts.len() > 1);
    let ids = |runs: &[PlannedRun]| runs.iter().map(|run| run.id).collect::<BTreeSet<RunId>>();
    assert_eq!(ids(&runs), ids(&alone.runs), "the order is not part of the identity");
}

/// Returns, for each round of two arms, whether the second arm comes first.
fn turns(seed: u64, rounds: u32) -> Vec<bool> {
    let turned = |repeat| order::rounds(Seed(seed), "s", repeat, &[vec![0, 1]]) == [1, 0];
    (0..rounds).map(turned).collect()
}

#[test]
fn either_arm_comes_first_in_half_of_the_rounds() {
    let mut seen = BTreeMap::<Vec<bool>, usize>::new();
    for seed in 0..600 {
        let rounds = turns(seed, 20);
        assert!(rounds.chunks(4).all(|four| four.iter().filter(|turned| **turned).count() == 2));
        let ahead = |n: usize| rounds[..n].iter().map(|turned| if *turned { 1 } else { -1 }).sum::<i32>().abs();
        assert!((1..=20).all(|n| ahead(n) <= 2) && ahead(3) == 1, "{rounds:?}");
        *seen.entry(rounds[..4].to_vec()).or_default() += 1;
    }
    // All six ways to choose two of four occur about equally often: 100 times ± 4 standard deviations
    // of 9.1.
    assert_eq!(seen.len(), 6);
    assert!(seen.values().all(|count| (64..=136).contains(count)), "{seen:?}");
}

#[test]
fn the_order_of_rounds_never_changes() {
    let text: String = turns(1, 12).iter().map(|turned| if *turned { 'b' } else { 'a' }).collect();
    assert_eq!(text, "aabbbaabbaba");
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
