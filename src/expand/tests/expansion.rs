use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{plan, plan_json};
use crate::expand::{Expansion, RunId, expand, matrix, order};
use crate::plan::ResolvedPlan;
use crate::units::Seed;

fn ids(expansion: &Expansion) -> BTreeSet<RunId> {
    expansion.runs.iter().map(|run| run.id).collect()
}

/// Returns the expected cells of three axes, computed naively: three nested loops that skip the excluded
/// cells.
fn naive(endpoints: &[&str], prompts: &[u32], batches: &[u32], left_out: Option<u32>) -> Vec<(String, u32, u32)> {
    let mut cells = Vec::new();
    for endpoint in endpoints {
        for prompt in prompts {
            for batch in batches {
                if !(*endpoint == "vllm" && Some(*batch) == left_out) {
                    cells.push(((*endpoint).to_owned(), *prompt, *batch));
                }
            }
        }
    }
    cells
}

fn sweep(endpoints: &[&str], prompts: &[u32], batches: &[u32], left_out: Option<u32>) -> Value {
    let exclude: Vec<Value> =
        left_out.iter().map(|batch| json!({ "endpoint": ["vllm"], "batch_size": [batch, 999] })).collect();
    json!({
        "matrix": { "endpoint": endpoints, "model": ["small"], "scenario": "B1", "prompt_tokens": prompts, "batch_size": batches },
        "exclude": exclude,
        "repeats": 2,
    })
}

/// Returns `value` with the keys of every table reversed.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Object(table) => {
            Value::Object(table.iter().rev().map(|(k, v)| (k.clone(), reversed(v))).collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn cells_are_what_three_loops_give(
        endpoints in proptest::sample::subsequence(vec!["vllm", "demo", "other"], 1..=3),
        prompts in proptest::sample::subsequence(vec![16u32, 50, 2_000], 1..=3),
        batches in proptest::sample::subsequence(vec![1u32, 2, 8, 64], 1..=4),
        left_out in proptest::option::of(proptest::sample::select(vec![1u32, 8, 32])),
    ) {
        let plan = plan(json!({ "s": sweep(&endpoints, &prompts, &batches, left_out) }));
        let expected = naive(&endpoints, &prompts, &batches, left_out);
        let cells: Vec<(String, u32, u32)> = matrix::cells("s", &plan.sweeps["s"])
            .expect("cells")
            .iter()
            .map(|cell| {
                let number = |axis: &str| cell[axis].to_string().parse().expect("a number");
                (cell["endpoint"].to_string(), number("prompt_tokens"), number("batch_size"))
            })
            .collect();
        prop_assert_eq!(&cells, &expected);

        let runs = expand(&plan).expect("expands").runs;
        prop_assert_eq!(runs.len(), expected.len() * 2);
        for (repeat, block) in runs.chunks(expected.len().max(1)).enumerate() {
            let order = order::block(Seed(42), "s", repeat as u32, expected.len());
            for (run, at) in block.iter().zip(order) {
                prop_assert_eq!(run.repeat as usize, repeat);
                prop_assert_eq!(run.cell["batch_size"].to_string(), expected[at].2.to_string());
                prop_assert_eq!(&run.spec.endpoint.name, &expected[at].0);
            }
        }
    }

    #[test]
    fn a_block_is_a_permutation(seed: u64, repeat in 0u32..9, cells in 0usize..300) {
        let mut order = order::block(Seed(seed), "s", repeat, cells);
        order.sort_unstable();
        prop_assert_eq!(order, (0..cells).collect::<Vec<_>>());
    }
}

#[test]
fn blocks_differ_by_seed_sweep_and_repeat_and_never_change() {
    let block = |seed, sweep, repeat| order::block(Seed(seed), sweep, repeat, 12);
    assert_eq!(block(1, "a", 0), [2, 6, 0, 5, 11, 9, 8, 3, 1, 4, 10, 7], "pinned");
    assert_ne!(block(1, "a", 0), block(2, "a", 0));
    assert_ne!(block(1, "a", 0), block(1, "b", 0));
    assert_ne!(block(1, "a", 0), block(1, "a", 1));
}

#[test]
fn another_sweep_does_not_change_the_order() {
    let own = sweep(&["vllm", "demo"], &[50], &[1, 2, 8], None);
    let alone = expand(&plan(json!({ "s": own }))).expect("expands");
    let other = sweep(&["other"], &[50], &[1, 2], None);
    let beside = expand(&plan(json!({ "first": other, "s": own }))).expect("expands");
    assert_eq!(beside.runs[4..], alone.runs[..]);
}

#[test]
fn the_order_of_keys_and_the_names_for_people_change_no_id() {
    let json = plan_json(json!({ "s": sweep(&["vllm", "demo"], &[50, 99], &[1, 2, 8], Some(8)) }));
    let read = |json: &Value| serde_json::from_value::<ResolvedPlan>(json.clone()).expect("a plan");
    let before = ids(&expand(&read(&json)).expect("expands"));
    assert_eq!(ids(&expand(&read(&reversed(&json))).expect("expands")), before);

    let mut relabelled = json.clone();
    relabelled["name"] = json!("another");
    relabelled["notes"] = json!("read me");
    relabelled["endpoints"]["vllm"]["url"] = json!("http://127.0.0.1:8001/v1");
    relabelled["endpoints"]["vllm"]["hardware"]["price_per_hour"] = json!(2);
    relabelled["endpoints"]["vllm"]["api_key"] = json!({ "secret": "env:KEY" });
    relabelled["slo"] = json!({ "ttft": { "p99": "1s" } });
    relabelled["sweeps"]["s"]["hypothesis"] = json!("it is fast");
    relabelled["models"]["tiny"] = relabelled["models"]["small"].take();
    relabelled["models"].as_object_mut().expect("a table").shift_remove("small");
    relabelled["sweeps"]["s"]["matrix"]["model"] = json!(["tiny"]);
    let after = ids(&expand(&read(&relabelled)).expect("expands"));
    assert_eq!(after, before);
}

#[test]
fn thousands_of_runs_expand_at_once() {
    let batches: Vec<u32> = (1..=500).collect();
    let plan = plan(json!({ "s": sweep(&["vllm", "demo"], &[50, 60], &batches, None) }));
    let expansion = expand(&plan).expect("expands");
    assert_eq!(ids(&expansion).len(), 4_000);
}
