use serde_json::json;

use super::{one, plan_json};
use crate::expand::{canonical, expand, origin};
use crate::plan::{ResolvedPlan, Step};

/// Returns the origin of `field` in the plan's last run, joined with slashes.
fn place(plan: &ResolvedPlan, field: &str) -> String {
    let expansion = expand(plan).expect("expands");
    let run = expansion.runs.last().expect("a run");
    origin(plan, run, field).iter().map(ToString::to_string).collect::<Vec<_>>().join("/")
}

#[test]
fn a_field_comes_from_where_the_plan_says_it() {
    let extra = json!({ "phases": { "measure": { "for": "10s" } }, "arrivals": "constant" });
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
fn a_header_or_extra_field_of_a_class_is_that_of_its_scenario() {
    let mut json = plan_json(json!({ "s": { "matrix": {
        "endpoint": "vllm", "model": "small", "scenario": "mixed", "batch_size": 1,
    } } }));
    json["endpoints"]["vllm"]["headers"] = json!({ "X-Gateway": "g" });
    json["scenarios"]["one"] = json!({ "base": "B1", "headers": { "X-A.b": "1" }, "extra": { "min_p": 0.1 } });
    json["scenarios"]["mixed"] = json!({ "headers": { "X-All": "a" }, "mix": [{ "scenario": "one", "share": 1 }, { "scenario": "chat", "share": 1 }] });
    let plan: ResolvedPlan = serde_json::from_value(json).expect("a plan");
    for (field, expected) in [
        ("mix.00.shaping.headers.x-a.b", "scenarios/one/headers/X-A.b"),
        ("mix.00.shaping.extra.min_p", "scenarios/one/extra/min_p"),
        ("mix.01.shaping.headers.x-all", "scenarios/mixed/headers/X-All"),
        ("mix.01.shaping.headers.x-gateway", "endpoints/vllm/headers/X-Gateway"),
        ("mix.01.weight", "scenarios/mixed/mix/1"),
    ] {
        assert_eq!(place(&plan, field), expected, "{field}");
    }
}

#[test]
fn a_hook_is_found_among_all_of_its_point() {
    let mut json = plan_json(
        json!({ "s": { "matrix": { "endpoint": "vllm", "model": "small", "scenario": "chat", "batch_size": 1 } } }),
    );
    json["endpoints"]["vllm"]["reset"] = json!("prefix_cache");
    json["endpoints"]["vllm"]["hooks"] = json!({
        "before_run": [{ "request": "GET /x", "hash": false }, { "request": "POST /y/{{ model.name }}" }, { "command": ["/opt/bin/z", "{{ port }}"] }],
        "after_run": { "command": ["w"] },
        "after_cell": { "command": ["v"], "hash": true },
    });
    let plan: ResolvedPlan = serde_json::from_value(json).expect("a plan");
    let expansion = expand(&plan).expect("expands");
    let form = canonical(&expansion.runs[0].spec);
    let of_hooks = form.entries().iter().filter(|(path, _)| path.contains(".hooks.") || path.ends_with(".reset"));
    let entries: Vec<String> = of_hooks.map(|(path, value)| format!("{path} = {value}")).collect();
    assert_eq!(
        entries,
        [
            r#"endpoint.hooks.after_cell.0.command = ["v"]"#,
            "endpoint.hooks.before_run.0.request = POST /y/small",
            r#"endpoint.hooks.before_run.1.command = ["z","{{ port }}"]"#,
            "endpoint.reset = prefix_cache",
        ]
    );
    assert!(form.entries().iter().skip(2).map(|(path, _)| path).is_sorted(), "{:?}", form.entries());
    for (field, expected) in [
        ("endpoint.hooks.before_run.0.request", "endpoints/vllm/hooks/before_run/1/request"),
        ("endpoint.hooks.before_run.1.command", "endpoints/vllm/hooks/before_run/2/command"),
        ("endpoint.hooks.after_cell.0.command", "endpoints/vllm/hooks/after_cell/0/command"),
        ("endpoint.reset", "endpoints/vllm/reset"),
    ] {
        assert_eq!(place(&plan, field), expected, "{field}");
    }
}

#[test]
fn every_field_but_the_versions_has_a_place() {
    let json = plan_json(json!({ "s": { "matrix": {
        "endpoint": "demo", "model": "large", "scenario": "talk", "qps": 5, "batch_size": 2
    } } }));
    let plan: ResolvedPlan = serde_json::from_value(json).expect("a plan");
    let expansion = expand(&plan).expect("expands");
    for (field, _) in canonical(&expansion.runs[0].spec).entries().iter().skip(2) {
        assert!(!origin(&plan, &expansion.runs[0], field).is_empty(), "{field}");
    }
}

#[test]
fn values_of_every_form_have_their_place() {
    let plan: ResolvedPlan = serde_json::from_value(plan_json(json!({ "s": {
        "matrix": {
            "endpoint": "demo", "model": "small", "scenario": "B1",
            "lengths": { "zip": { "prompt_tokens": [16, { "from": 20, "to": 30, "step": 10 }], "output_tokens": [1, 2, 3] } },
            "load": [{ "qps": 1 }, { "batch_size": 2, "qps": 3 }],
            "top_p": [0.1, { "value": [0.2, 0.3], "when": { "qps": 3 } }],
        },
        "exclude": [{ "top_p": { "to": 0.2 } }],
        "extend": [{ "when": { "prompt_tokens": 30 }, "with": { "temperature": 0.5 } }],
        "add": [{ "endpoint": "other", "model": "small", "scenario": "B1", "batch_size": 9 }],
    } })))
    .expect("a plan");
    let runs = expand(&plan).expect("expands").runs;
    let place = |find: &dyn Fn(&crate::expand::PlannedRun) -> bool, field: &str| {
        let run = runs.iter().find(|run| find(run)).expect("a run");
        origin(&plan, run, field).iter().map(ToString::to_string).collect::<Vec<_>>().join("/")
    };
    let last =
        |run: &crate::expand::PlannedRun| run.cell.get("prompt_tokens").is_some_and(|value| value.to_string() == "30");
    assert_eq!(place(&last, "scenario.prompt_tokens"), "sweeps/s/matrix/lengths/zip/prompt_tokens/1");
    assert_eq!(place(&last, "scenario.output_tokens"), "sweeps/s/matrix/lengths/zip/output_tokens/2");
    assert_eq!(place(&last, "load.cap"), "sweeps/s/matrix/load/1/batch_size");
    assert_eq!(place(&last, "shaping.top_p"), "sweeps/s/matrix/top_p/1/value/1");
    assert_eq!(place(&last, "shaping.temperature"), "sweeps/s/extend/0/with/temperature");
    let added = |run: &crate::expand::PlannedRun| run.spec.endpoint.name == "other";
    assert_eq!(place(&added, "load.batch_size"), "sweeps/s/add/0/batch_size");
    assert_eq!(place(&added, "endpoint.name"), "sweeps/s/add/0/endpoint");
}

/// Returns the value at a path of a plan, if there is one; a single value may stand for a list with one
/// element.
fn at<'v>(plan: &'v mut serde_json::Value, path: &[Step]) -> Option<&'v mut serde_json::Value> {
    path.iter().try_fold(plan, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Index(0) if !value.is_array() => Some(value),
        Step::Index(index) => value.get_mut(*index),
    })
}

/// Tests that the place that `why` shows determines the value: if another number is written there, the field
/// changes.
#[test]
fn what_stands_at_a_field_s_place_decides_it() {
    let plans = [
        json!({ "matrix": { "endpoint": "vllm", "model": "small", "scenario": "talk", "qps": 5, "batch_size": 2 }, "repeats": 2 }),
        json!({
            "matrix": { "endpoint": "demo", "model": "large", "scenario": "chat", "batch_size": [4], "prompt_tokens": [20], "top_p": 0.5 },
            "phases": { "measure": { "for": "10s", "min_requests": 30 } },
        }),
        json!({ "matrix": { "endpoint": "vllm", "model": "small", "scenario": "mixed", "batch_size": 1 } }),
    ];
    let mut looked_at = std::collections::BTreeSet::new();
    for sweep in plans {
        let mut json = plan_json(json!({ "s": sweep }));
        json["scenarios"]["mixed"] = json!({
            "mix": [{ "scenario": "chat", "share": 2 }, { "scenario": "talk", "share": 3 }], "presence_penalty": 1,
        });
        let read = |json: &serde_json::Value| serde_json::from_value::<ResolvedPlan>(json.clone()).expect("a plan");
        let plan = read(&json);
        let first = |plan: &ResolvedPlan| expand(plan).expect("expands").runs.swap_remove(0);
        let run = first(&plan);
        let before = canonical(&run.spec);
        for (field, value) in before.entries() {
            let mut other = json.clone();
            let Some(number) = at(&mut other, &origin(&plan, &run, field)).filter(|value| value.is_number()) else {
                continue;
            };
            // The number of repeats is not part of a run's identity, but the repeat's number is.
            if field == "repeat" {
                continue;
            }
            *number = match number.as_u64() {
                Some(whole) => json!(whole + 1),
                None => json!(number.as_f64().expect("a number") + 0.25),
            };
            let after = canonical(&first(&read(&other)).spec);
            let after = after.entries().iter().find(|(other, _)| other == field).map(|(_, value)| value.clone());
            assert_ne!(after.as_ref(), Some(value), "{field} of {sweep}");
            looked_at.insert(field.to_string());
        }
    }
    assert!(looked_at.len() >= 14, "{looked_at:?}");
}
