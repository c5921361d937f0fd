//! Tests of expansion and identity, and the plans that they share.

mod expansion;
mod golden;
mod identity;
mod naive;
mod origin;
mod properties;
mod resolve;
mod rounds;
mod taken;

use serde_json::{Value, json};

use crate::plan::ResolvedPlan;

/// Returns a plan with two endpoints (one embedded mock), two models and `sweeps`.
fn plan_json(sweeps: Value) -> Value {
    json!({
        "sweepline": 1,
        "name": "test",
        "seed": 42,
        "endpoints": {
            "vllm": {
                "url": "http://127.0.0.1:8000/v1",
                "engine": "vllm",
                "hardware": { "gpu": "H100", "gpus": 8, "price_per_hour": 31.2 },
                "server": { "version": "0.33.0", "flags": { "max_num_seqs": 256 } },
            },
            "demo": { "engine": "mock", "mock": { "itl": "5ms" } },
            "other": { "url": "http://127.0.0.1:9000/v1" },
        },
        "models": {
            "small": { "id": "org/small", "precision": "bf16" },
            "large": { "id": { "default": "org/large", "mock": "mock-large" } },
        },
        "scenarios": {
            "chat": { "base": "B1", "prompt_tokens": 200, "stream": true },
            "talk": { "base": "chat", "output_tokens": 64, "temperature": 0.7 },
        },
        "sweeps": sweeps,
    })
}

fn plan(sweeps: Value) -> ResolvedPlan {
    serde_json::from_value(plan_json(sweeps)).expect("a plan")
}

/// Returns a plan with a sweep `s` of one cell, with the additional fields `extra`.
fn one(matrix: Value, extra: Value) -> ResolvedPlan {
    let mut sweep = json!({ "matrix": { "endpoint": "vllm", "model": "small", "scenario": "B1" } });
    for (key, value) in matrix.as_object().expect("a table") {
        sweep["matrix"][key] = value.clone();
    }
    for (key, value) in extra.as_object().expect("a table") {
        sweep[key] = value.clone();
    }
    plan(json!({ "s": sweep }))
}
