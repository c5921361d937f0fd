use serde_json::{Value, json};

use super::{one, plan_json};
use crate::expand::{Load, Mistake, RunSpec, expand};
use crate::plan::model::phases::DrainMode;
use crate::plan::{Arrivals, Connections, ErrorPolicy, NonceMode, Process, ResolvedPlan, Scalar, Timer};
use crate::units::{Decimal, Nanos};

fn first(plan: &ResolvedPlan) -> RunSpec {
    let expansion = expand(plan).expect("expands");
    RunSpec::clone(&expansion.runs[0].spec)
}

fn mistake(matrix: Value) -> String {
    expand(&one(matrix, json!({}))).expect_err("an error").to_string()
}

#[test]
fn every_default_is_explicit() {
    let spec = first(&one(json!({ "batch_size": 4 }), json!({})));
    assert_eq!(spec.load, Load::Closed { batch_size: 4 });
    assert_eq!(spec.phases.fill, Nanos::from_secs(30));
    assert_eq!(spec.phases.stabilize, Nanos::from_secs(60));
    assert_eq!(spec.phases.measure.duration, Nanos::from_secs(120));
    assert_eq!(spec.phases.measure.at_most, None);
    assert_eq!((spec.phases.drain.duration, spec.phases.drain.mode), (Nanos::from_secs(30), DrainMode::Keep));
    assert!(spec.shaping.stream && spec.shaping.ignore_eos && spec.shaping.nonce == NonceMode::On);
    assert_eq!((spec.endpoint.gpu.as_deref(), spec.endpoint.gpus), (Some("H100"), Some(8)));
    assert_eq!(spec.endpoint.server["flags.max_num_seqs"], Scalar::Number(Decimal::from(256)));
    assert_eq!(spec.endpoint.mock, None);
}

#[test]
fn stream_comes_from_the_nearest() {
    let stream = |matrix, extra| first(&one(matrix, extra)).shaping.stream;
    assert!(stream(json!({ "batch_size": 1 }), json!({})));
    assert!(!stream(json!({ "batch_size": 1 }), json!({ "stream": false })));
    assert!(stream(json!({ "batch_size": 1, "scenario": "chat" }), json!({ "stream": false })));
    assert!(!stream(json!({ "batch_size": 1, "scenario": "chat", "stream": false }), json!({})));
}

#[test]
fn what_an_outage_means_is_said_by_the_scenario_or_the_endpoint() {
    let of = |endpoint: Value, chat: Value, mix: Value| {
        let mixed = json!({ "mix": [{ "scenario": "chat", "share": 1 }, { "scenario": "talk", "share": 1 }] });
        let run = |scenario: &str| {
            let matrix = json!({ "endpoint": "vllm", "model": "small", "scenario": scenario, "batch_size": 1 });
            let mut json = plan_json(json!({ "s": { "matrix": matrix } }));
            json["endpoints"]["vllm"]["errors"] = endpoint.clone();
            json["scenarios"]["chat"]["errors"] = chat.clone();
            json["scenarios"]["mixed"] = mixed.clone();
            json["scenarios"]["mixed"]["errors"] = mix.clone();
            first(&serde_json::from_value(json).expect("a plan")).errors == ErrorPolicy::Measured
        };
        // `talk` has `chat` as its base, so it inherits the setting of `chat`.
        ["B1", "chat", "talk", "mixed"].map(run)
    };
    let (measured, environment) = (json!("measured"), json!("environment"));
    assert_eq!(of(Value::Null, Value::Null, Value::Null), [false; 4]);
    assert_eq!(of(measured.clone(), Value::Null, Value::Null), [true; 4]);
    assert_eq!(of(measured.clone(), environment, Value::Null), [true, false, false, false]);
    assert_eq!(
        of(Value::Null, measured.clone(), Value::Null),
        [false, true, true, true],
        "all classes of the mix set it"
    );
    assert_eq!(of(Value::Null, Value::Null, measured), [false, false, false, true]);
}

#[test]
fn a_run_that_two_cells_hold_is_measured_where_one_of_them_asks_for_it() {
    let mut json = plan_json(json!({ "s": { "matrix": {
        "endpoint": "vllm", "model": "small", "scenario": ["one", "two"], "batch_size": 1,
    } } }));
    json["scenarios"]["one"] = json!({ "base": "B1" });
    json["scenarios"]["two"] = json!({ "base": "B1", "errors": "measured" });
    let plan: ResolvedPlan = serde_json::from_value(json).expect("a plan");
    let runs = expand(&plan).expect("expands").runs;
    assert_eq!((runs.len(), runs[0].id), (2, runs[1].id));
    assert!(runs.iter().all(|run| run.spec.errors == ErrorPolicy::Measured));
}

#[test]
fn connections_and_engine_come_from_the_nearest() {
    let of = |plan: Value, matrix: Value, sweep: Value| {
        let mut json = plan_json(
            json!({ "s": { "matrix": { "endpoint": "demo", "model": "large", "scenario": "B1", "batch_size": 1 } } }),
        );
        json.as_object_mut().expect("a table").extend(plan.as_object().expect("a table").clone());
        let table = json["sweeps"]["s"].as_object_mut().expect("a table");
        table.extend(sweep.as_object().expect("a table").clone());
        table["matrix"].as_object_mut().expect("a table").extend(matrix.as_object().expect("a table").clone());
        let spec = first(&serde_json::from_value(json).expect("a plan"));
        (spec.connections, spec.engine.threads, spec.engine.timer)
    };
    assert_eq!(of(json!({}), json!({}), json!({})), (Connections::Warm, 1, Timer::Timerfd));
    let plan = json!({ "connections": "cold", "engine": { "threads": 4, "timer": "spin" } });
    assert_eq!(of(plan.clone(), json!({}), json!({})), (Connections::Cold, 4, Timer::Spin));
    let sweep = json!({ "connections": "per_request", "engine": { "threads": 2 } });
    assert_eq!(of(plan.clone(), json!({}), sweep.clone()), (Connections::PerRequest, 2, Timer::Spin), "merged");
    let axis = json!({ "connections": ["warm"] });
    assert_eq!(of(plan, axis, sweep).0, Connections::Warm);
    assert!(mistake(json!({ "batch_size": 1, "connections": "hot" })).contains("warm, cold or per_request"));
}

#[test]
fn ignore_eos_goes_only_where_it_is_known() {
    let ignore = |matrix| first(&one(matrix, json!({}))).shaping.ignore_eos;
    assert!(ignore(json!({ "batch_size": 1 })));
    assert!(!ignore(json!({ "batch_size": 1, "ignore_eos": false })));
    assert!(!ignore(json!({ "batch_size": 1, "endpoint": "other", "ignore_eos": true })));
}

#[test]
fn loads_follow_the_axes() {
    let load = |matrix| first(&one(matrix, json!({ "arrivals": "constant" }))).load;
    let qps = Decimal::new(25, 1);
    assert_eq!(load(json!({ "qps": 2.5 })), Load::Open { qps, arrivals: Process::Constant.into(), cap: None });
    let capped = json!({ "qps": 2.5, "batch_size": 8, "arrivals": "poisson" });
    assert_eq!(load(capped), Load::Open { qps, arrivals: Arrivals::default(), cap: Some(8) });
}

#[test]
fn phases_merge_one_by_one() {
    let mut json = plan_json(json!({ "s": {
        "matrix": { "endpoint": "demo", "model": "large", "scenario": "B1", "batch_size": [10] },
        "phases": { "fill": { "per_second": 3 }, "measure": { "for": "10s", "min_requests": 50 } },
    } }));
    json["phases"] = json!({ "fill": { "for": "5s" }, "stabilize": "7s", "measure": { "for": "1m" } });
    let spec = first(&serde_json::from_value(json).expect("a plan"));
    assert_eq!(spec.phases.fill, Nanos(3_333_333_334), "10 slots at 3 per second, rounded up");
    assert_eq!(spec.phases.stabilize, Nanos::from_secs(7));
    assert_eq!(spec.phases.measure.at_most, Some(Nanos::from_secs(50)));
    let mock = spec.endpoint.mock.clone().expect("an embedded mock");
    assert_eq!((mock.itl, mock.slots), (Nanos::from_millis(5), 8));
    assert_eq!(spec.model.id, "mock-large");
}

#[test]
fn fields_of_a_request_are_axes() {
    let plan = one(json!({ "batch_size": 1, "scenario": "talk", "prompt_tokens": 99, "top_p": 0.9 }), json!({}));
    let spec = first(&plan);
    assert_eq!((spec.scenario.prompt_tokens, spec.scenario.output_tokens), (99, 64));
    assert_eq!(
        ["temperature", "top_p"].map(|name| spec.shaping.fields.sampling.get(name)),
        [Decimal::new(7, 1), Decimal::new(9, 1)].map(Some)
    );
    assert_eq!(spec.labels.axes.iter().map(|(axis, _)| axis).collect::<Vec<_>>(), ["prompt_tokens", "top_p"]);
}

#[test]
fn a_mistake_names_sweep_and_cell() {
    let text = mistake(json!({ "batch_size": 1, "model": "huge" }));
    assert!(text.starts_with("sweep `s`, cell { endpoint: vllm, model: huge, scenario: B1, batch_size: 1 }"), "{text}");
    assert!(mistake(json!({})).contains("batch_size"));
    assert!(mistake(json!({ "batch_size": 1.5 })).contains("a whole number"));
    assert!(mistake(json!({ "batch_size": 1, "stream": "yes" })).contains("true or false"));
    assert!(mistake(json!({ "qps": 1, "arrivals": "often" })).contains("poisson or constant"));
    assert!(mistake(json!({ "batch_size": 1, "colour": "red" })).contains("`colour` is not an axis"));
    assert!(mistake(json!({ "batch_size": 1, "scenario": "E" })).contains("unknown scenario `E`"));
}

#[test]
fn a_fill_without_end_is_a_mistake() {
    let extra = json!({ "phases": { "fill": { "per_second": 0 } } });
    let error = expand(&one(json!({ "batch_size": 8 }), extra)).expect_err("no end");
    assert_eq!(error.mistake, Mistake::FillTooLong { slots: 8 });
}

#[test]
fn one_fact_has_one_value() {
    let mut plan = crate::plan::Plan::clone(&one(json!({ "batch_size": 1 }), json!({})));
    let server = &mut plan.endpoints["vllm"].server;
    server.insert("flags.max_num_seqs".to_owned(), crate::plan::Fact::One(Scalar::Bool(true)));
    let error = expand(&ResolvedPlan::new(plan)).expect_err("two values");
    assert_eq!(error.mistake, Mistake::SameFact("flags.max_num_seqs".to_owned()));
}
