//! Tests that the defaults in the schema are those of a run: writing them explicitly does not
//! change any id.

use serde_json::{Map, Value, json};

use lab::Lab;

/// Returns the defaults of a table of the schema.
fn defaults(schema: &Value, table: &str) -> Value {
    let properties = if table.is_empty() { &schema["properties"] } else { &schema["$defs"][table]["properties"] };
    let given =
        properties.as_object().unwrap().iter().filter_map(|(name, one)| Some((name.clone(), one.get("default")?)));
    let given: Map<String, Value> = given.map(|(name, value)| (name, value.clone())).collect();
    assert!(!given.is_empty(), "{table} has no defaults");
    given.into()
}

/// Merges the keys of `over` into `under`.
fn with(mut under: Value, over: Value) -> Value {
    under.as_object_mut().unwrap().extend(over.as_object().unwrap().clone());
    under
}

fn ids(lab: &Lab, plan: &Value) -> Vec<Value> {
    lab.write("plan.yaml", &plan.to_string());
    let preview = lab.ok(&["preview", "plan.yaml", "--format", "json"]).json();
    preview["runs"].as_array().unwrap().iter().map(|run| run["id"].clone()).collect()
}

#[test]
fn the_schemas_defaults_are_what_runs_get() {
    let lab = Lab::new();
    let schema = lab.ok(&["schema"]).json();
    let sweep = |load: Value| json!({ "matrix": with(json!({ "scenario": ["s"] }), load) });
    let least = json!({
        "sweepline": 1,
        "name": "least",
        "endpoints": { "e": { "engine": "mock" }, "v": { "url": "http://127.0.0.1:8000/v1" } },
        "models": { "m": { "id": "m" } },
        "scenarios": { "s": {} },
        "sweeps": {
            "closed": sweep(json!({ "endpoint": ["e", "v"], "batch_size": [2] })),
            "open": sweep(json!({ "endpoint": ["e", "v"], "qps": [5] })),
        },
    });
    let mut explicit = with(least.clone(), defaults(&schema, ""));
    for (key, table) in
        [("phases", "PhasesPatch"), ("between", "Between"), ("timeouts", "Timeouts"), ("engine", "LoadEnginePatch")]
    {
        explicit[key] = defaults(&schema, table);
    }
    for endpoint in ["e", "v"] {
        explicit["endpoints"][endpoint] = with(defaults(&schema, "Endpoint"), least["endpoints"][endpoint].clone());
    }
    explicit["endpoints"]["e"]["mock"] = defaults(&schema, "MockFigures");
    let mut scenario = defaults(&schema, "Scenario");
    // These are defaults for requests for vectors and scores; this request is for text.
    for field in ["inputs", "documents", "query_tokens"] {
        assert!(scenario.as_object_mut().unwrap().shift_remove(field).is_some(), "{field}");
    }
    explicit["scenarios"] = json!({ "s": scenario });
    for sweep in ["closed", "open"] {
        let mut all = defaults(&schema, "Sweep");
        if sweep == "closed" {
            // Only open loops have arrival processes.
            all.as_object_mut().unwrap().shift_remove("arrivals");
        }
        explicit["sweeps"][sweep] = with(all, least["sweeps"][sweep].clone());
    }
    let before = ids(&lab, &least);
    assert_eq!(before.len(), 4);
    assert_eq!(ids(&lab, &explicit), before, "{explicit:#}");
}
