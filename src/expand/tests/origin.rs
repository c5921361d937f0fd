use serde_json::json;

use super::{one, plan_json};
use crate::expand::{canonical, expand, origin};
use crate::plan::Plan;

/// Where `field` of the plan's last run comes from, joined with slashes.
fn place(plan: &Plan, field: &str) -> String {
    let expansion = expand(plan).expect("expands");
    let run = expansion.runs.last().expect("a run");
    origin(plan, run, field).iter().map(ToString::to_string).collect::<Vec<_>>().join("/")
}

#[test]
fn a_field_comes_from_where_the_plan_says_it() {
    let extra = json!({ "phases": { "measure": "10s" }, "arrivals": "constant" });
    let plan = one(json!({ "scenario": ["talk"], "qps": [5] }), extra);
    for (field, expected) in [
        ("load.qps", "sweeps/s/matrix/qps/0"),
        ("load.arrivals", "sweeps/s/arrivals"),
        ("load.pattern", "sweeps/s/matrix"),
        ("phases.measure.for", "sweeps/s/phases/measure/for"),
        ("phases.drain.mode", "phases/drain/mode"),
        ("endpoint.name", "sweeps/s/matrix/endpoint/0"),
        ("endpoint.engine", "endpoints/vllm/engine"),
        ("endpoint.gpus", "endpoints/vllm/hardware/gpus"),
        ("endpoint.server.version", "endpoints/vllm/server/version"),
        ("endpoint.server.flags.max_num_seqs", "endpoints/vllm/server/flags/max_num_seqs"),
        ("model.id", "models/small/id"),
        ("scenario.prompt_tokens", "scenarios/chat/prompt_tokens"),
        ("scenario.output_tokens", "scenarios/talk/output_tokens"),
        ("scenario.reuse", "scenarios/chat/base"),
        ("scenario.turns", "sweeps/s/matrix/scenario/0"),
        ("shaping.stream", "scenarios/chat/stream"),
        ("shaping.nonce", "nonce"),
        ("between.cooldown", "between/cooldown"),
        ("timeouts.stall", "timeouts/stall"),
        ("connections", "connections"),
        ("seed", "seed"),
        ("repeat", "sweeps/s/repeats"),
        ("hash", ""),
    ] {
        assert_eq!(place(&plan, field), expected, "{field}");
    }
}

#[test]
fn the_nearest_layer_is_the_place() {
    let plan = one(
        json!({ "endpoint": "demo", "model": "large", "batch_size": 2, "prompt_tokens": [20], "arrivals": "poisson" }),
        json!({ "stream": false, "between": { "cooldown": "1s" }, "connections": "cold" }),
    );
    assert_eq!(place(&plan, "scenario.prompt_tokens"), "sweeps/s/matrix/prompt_tokens/0");
    assert_eq!(place(&plan, "load.batch_size"), "sweeps/s/matrix/batch_size/0");
    assert_eq!(place(&plan, "shaping.stream"), "sweeps/s/stream");
    assert_eq!(place(&plan, "between.cooldown"), "sweeps/s/between/cooldown");
    assert_eq!(place(&plan, "endpoint.mock.itl"), "endpoints/demo/mock/itl");
    assert_eq!(place(&plan, "model.id"), "models/large/id/mock");
    assert_eq!(place(&plan, "connections"), "sweeps/s/connections");
    let plan = one(json!({ "batch_size": 2, "connections": ["cold"] }), json!({}));
    assert_eq!(place(&plan, "connections"), "sweeps/s/matrix/connections/0");
    assert_eq!(place(&plan, "scenario.reuse"), "sweeps/s/matrix/scenario/0");
}

#[test]
fn every_field_but_the_versions_has_a_place() {
    let json = plan_json(json!({ "s": { "matrix": {
        "endpoint": "demo", "model": "large", "scenario": "talk", "qps": 5, "batch_size": 2
    } } }));
    let plan: Plan = serde_json::from_value(json).expect("a plan");
    let expansion = expand(&plan).expect("expands");
    for (field, _) in canonical(&expansion.runs[0].spec).entries().iter().skip(2) {
        assert!(!origin(&plan, &expansion.runs[0], field).is_empty(), "{field}");
    }
}
