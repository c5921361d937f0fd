//! Tests of loads from earlier sweeps, of gates, and of cells that `skip_if` skips. All of them depend only
//! on the plan and the findings.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{plan, plan_json};
use crate::expand::{Expansion, Finding, Known, PlannedRun, RunId, Says, Waits, expand, expand_with};
use crate::plan::{Format, ResolvedPlan, SweepMetric, parse};

/// Returns findings of the sweep `limit`, one for each endpoint.
fn known(of: &[(&str, Says)]) -> Known {
    let finding = |(endpoint, says): &(&str, Says)| Finding {
        sweep: Arc::from("limit"),
        metric: SweepMetric::MaxQpsUnderSlo.into(),
        cell: [("endpoint", *endpoint), ("model", "small"), ("scenario", "B1")]
            .map(|(axis, value)| (axis.to_owned(), value.to_owned()))
            .to_vec(),
        says: says.clone(),
        runs: vec![RunId([7; 32])],
    };
    Known { findings: of.iter().map(finding).collect() }
}

fn load(load: &str) -> Says {
    let load = load.parse().expect("a number");
    Says::Load { load, surely: Some(load), is_least: false, caveats: Vec::new() }
}

/// Returns a load that is only observed to meet the objective; `surely` is the load that is shown to meet it,
/// if any.
fn observed(load: &str, surely: Option<&str>) -> Says {
    let decimal = |load: &str| load.parse().expect("a number");
    Says::Load { load: decimal(load), surely: surely.map(decimal), is_least: false, caveats: Vec::new() }
}

fn at_least(load: &str) -> Says {
    let load = load.parse().expect("a number");
    Says::Load { load, surely: Some(load), is_least: true, caveats: Vec::new() }
}

/// Returns a plan that consists of a search and the sweeps in `later`, checked like any plan.
fn checked(later: Value) -> ResolvedPlan {
    let axes = json!({ "endpoint": ["vllm", "other"], "model": "small", "scenario": "B1" });
    let mut sweeps = json!({ "limit": { "matrix": axes, "search": { "qps": { "from": 1, "to": 100 } } } });
    for (name, sweep) in later.as_object().expect("a table") {
        let mut sweep = sweep.clone();
        for (axis, value) in axes.as_object().expect("a table") {
            sweep["matrix"].as_object_mut().expect("a table").entry(axis).or_insert(value.clone());
        }
        sweeps[name] = sweep;
    }
    let mut plan = plan_json(sweeps);
    plan["slo"] = json!({ "ttft": { "p99": "500ms" } });
    parse("plan.yaml".as_ref(), &plan.to_string(), Format::Yaml).unwrap_or_else(|errors| panic!("{errors}")).plan
}

fn sustained(taken: Value) -> ResolvedPlan {
    checked(json!({ "sustained": { "matrix": { "qps": taken }, "repeats": 2 } }))
}

/// Returns the endpoint and the load of each run of a sweep.
fn loads(expansion: &Expansion, sweep: &str) -> BTreeSet<(String, String)> {
    let of = |run: &PlannedRun| (run.cell["endpoint"].to_string(), run.cell["qps"].to_string());
    expansion.runs.iter().filter(|run| *run.sweep == *sweep).map(of).collect()
}

fn pairs(of: &[(&str, &str)]) -> BTreeSet<(String, String)> {
    of.iter().map(|(endpoint, load)| ((*endpoint).to_owned(), (*load).to_owned())).collect()
}

/// Returns the state and the reason of each cell that is not a run.
fn stops(expansion: &Expansion) -> Vec<(Waits, &str)> {
    expansion.pending.iter().map(|pending| (pending.state, pending.why.as_str())).collect()
}

#[test]
fn each_cell_takes_the_load_that_was_found_for_it_and_is_then_a_run_like_any_other() {
    let plan = sustained(json!([{ "from": "limit", "take": "max_qps_under_slo", "times": 0.8 }, 5]));
    let blind = expand(&plan).expect("expands");
    assert_eq!(loads(&blind, "sustained"), pairs(&[("vllm", "5"), ("other", "5")]));
    assert_eq!(stops(&blind), [(Waits::Pending, "waits for `limit`"); 2]);
    let half = known(&[("vllm", load("23.4")), ("other", Says::Open("3 runs so far".to_owned()))]);
    let half = expand_with(&plan, &half).expect("expands");
    assert_eq!(loads(&half, "sustained"), pairs(&[("vllm", "5"), ("vllm", "18.7"), ("other", "5")]));
    assert_eq!(stops(&half), [(Waits::Pending, "waits for limit: other · small · B1: 3 runs so far")]);
    let whole = known(&[("vllm", load("23.4")), ("other", at_least("100"))]);
    let whole = expand_with(&plan, &whole).expect("expands");
    let expected = [("vllm", "5"), ("vllm", "18.7"), ("other", "5"), ("other", "80")];
    assert_eq!(loads(&whole, "sustained"), pairs(&expected));
    assert!(whole.pending.is_empty());
    // The ids are the same as if the loads were written out; their origin is recorded separately.
    let written = sustained(json!([
        { "value": 18.7, "when": { "endpoint": "vllm" } }, { "value": 80, "when": { "endpoint": "other" } }, 5,
    ]));
    let written = expand(&written).expect("expands");
    let ids = |expansion: &Expansion| expansion.runs.iter().map(|run| run.id).collect::<BTreeSet<_>>();
    assert_eq!(ids(&whole), ids(&written));
    let words: BTreeSet<String> =
        whole.runs.iter().flat_map(|run| run.spec.taken.iter().map(|taken| taken.words())).collect();
    let expected = [
        "limit: max_qps_under_slo 23.4 qps (vllm · small · B1) × 0.8 → 18.7 qps",
        "limit: max_qps_under_slo at least 100 qps (other · small · B1) × 0.8 → 80 qps",
    ];
    assert_eq!(words, expected.map(str::to_owned).into());
    assert_eq!(expand_with(&plan, &known(&[("vllm", load("23.4")), ("other", at_least("100"))])), Ok(whole));
}

#[test]
fn one_load_for_all_is_the_least_that_was_found_and_none_where_one_is_lacking() {
    let taken = |uses: Value| {
        let mut taken = json!({ "from": "limit", "take": "max_qps_under_slo", "over": "endpoint" });
        if !uses.is_null() {
            taken["use"] = uses;
        }
        sustained(taken)
    };
    let both = known(&[("vllm", load("23.4")), ("other", load("17"))]);
    let least = expand_with(&taken(Value::Null), &both).expect("expands");
    assert_eq!(loads(&least, "sustained"), pairs(&[("vllm", "17"), ("other", "17")]));
    assert_eq!(least.runs[0].spec.taken[0].found.len(), 2, "both are evidence");
    let most = expand_with(&taken(json!("max")), &both).expect("expands");
    assert_eq!(loads(&most, "sustained"), pairs(&[("vllm", "23.4"), ("other", "23.4")]));
    let lacking = known(&[("vllm", load("23.4")), ("other", Says::Below("1".parse().expect("a number")))]);
    let lacking = expand_with(&taken(Value::Null), &lacking).expect("expands");
    assert!(loads(&lacking, "sustained").is_empty());
    let why = "no load to use: limit: other · small · B1: 1 qps, the lightest load, misses the objective";
    assert_eq!(stops(&lacking), [(Waits::Blocked, why); 2]);
}

#[test]
fn a_gate_stops_its_sweep_and_those_behind_it() {
    let later = json!({
        "sustained": { "matrix": { "qps": 5 }, "gate": { "sweep": "limit", "metric": "max_qps_under_slo", "at_least": 20 } },
        "behind": { "matrix": { "qps": 7 }, "after": "sustained" },
        "beside": { "matrix": { "qps": 9 } },
    });
    let plan = checked(later);
    let of =
        |vllm: Says, other: Says| expand_with(&plan, &known(&[("vllm", vllm), ("other", other)])).expect("expands");
    assert_eq!(stops(&of(observed("21.5", Some("20")), load("40"))), [], "certainty is enough");
    let passed = of(load("20"), at_least("30"));
    assert!(passed.pending.is_empty(), "{:?}", passed.pending);
    let open = || Says::Open("3 runs so far".to_owned());
    for (vllm, other, state, why) in [
        (load("19.9"), open(), Waits::Stopped, "limit: vllm · small · B1: max_qps_under_slo is 19.9 qps, below 20"),
        (load("40"), open(), Waits::Pending, "waits for limit: other · small · B1: 3 runs so far"),
        (load("40"), at_least("15"), Waits::Undecided, "limit: other · small · B1: 15 qps"),
        (
            observed("20.5", Some("19.5")),
            load("40"),
            Waits::Undecided,
            "limit: vllm · small · B1: 20.5 qps as observed, but only 19.5 qps is shown: extend `confirm`",
        ),
        (
            observed("20.5", None),
            load("40"),
            Waits::Undecided,
            "limit: vllm · small · B1: 20.5 qps as observed, but no load is shown: extend `confirm`",
        ),
        (
            observed("19.5", Some("18.5")),
            load("40"),
            Waits::Stopped,
            "limit: vllm · small · B1: max_qps_under_slo is 19.5 qps, below 20",
        ),
        (Says::Nothing("in doubt".to_owned()), load("40"), Waits::Undecided, "limit: vllm · small · B1: in doubt"),
        (
            Says::Below("1".parse().expect("a number")),
            load("40"),
            Waits::Stopped,
            "limit: vllm · small · B1: 1 qps, the lightest load, misses the objective, so max_qps_under_slo is below 20",
        ),
    ] {
        let stopped = of(vllm, other);
        let behind = format!("gate of `sustained`: {why}");
        assert_eq!(stops(&stopped), [(state, why), (state, why), (state, &behind), (state, &behind)]);
        assert_eq!(loads(&stopped, "beside").len(), 2, "sweeps that do not depend on it run");
    }
    // Without known findings, nothing is stopped, because every run of the plan is still possible.
    assert!(expand(&plan).expect("expands").pending.is_empty());
}

#[test]
fn skip_if_leaves_out_the_cells_of_which_it_holds() {
    let skip = json!({ "sweep": "limit", "metric": "max_qps_under_slo", "below": 2, "above": 50 });
    let plan = checked(json!({ "sustained": { "matrix": { "qps": 5 }, "skip_if": skip } }));
    let of =
        |vllm: Says, other: Says| expand_with(&plan, &known(&[("vllm", vllm), ("other", other)])).expect("expands");
    let some = of(load("1.9"), load("2"));
    assert_eq!(loads(&some, "sustained"), pairs(&[("other", "5")]));
    assert_eq!(stops(&some), [(Waits::Pruned, "limit: vllm · small · B1: max_qps_under_slo is 1.9 qps, below 2")]);
    let none = of(load("51"), at_least("51"));
    assert!(stops(&none).iter().all(|(state, _)| *state == Waits::Pruned), "{:?}", none.pending);
    let unknown = of(Says::Nothing("in doubt".to_owned()), load("20"));
    assert_eq!(unknown.pending[0].state, Waits::Blocked);
}

#[test]
fn a_sweep_that_asks_nothing_is_what_it_was() {
    let plan =
        plan(json!({ "s": { "matrix": { "endpoint": "vllm", "model": "small", "scenario": "B1", "qps": [1, 2] } } }));
    assert_eq!(expand(&plan), expand_with(&plan, &Known::default()));
}

/// Returns findings of a sweep called `load`: the value of `metric` at each of its loads.
fn measured(metric: &str, of: &[(&str, f64, Option<[f64; 2]>, usize)]) -> Known {
    let finding = |(load, value, ends, runs): &(&str, f64, Option<[f64; 2]>, usize)| Finding {
        sweep: Arc::from("load"),
        metric: metric.parse().expect("a metric"),
        cell: [("endpoint", "vllm"), ("model", "small"), ("scenario", "B1"), ("qps", load)]
            .map(|(axis, value)| (axis.to_owned(), value.to_owned()))
            .to_vec(),
        says: Says::Measured { value: *value, ends: *ends, runs: *runs },
        runs: vec![RunId([7; 32]); *runs],
    };
    Known { findings: of.iter().map(finding).collect() }
}

#[test]
fn gates_and_skips_hold_intervals_of_metrics_against_their_bounds() {
    let load = json!({ "matrix": { "endpoint": "vllm", "qps": [1, 2] }, "repeats": 3 });
    let behind = |gate: Value| {
        checked(json!({ "load": load, "release": { "matrix": { "endpoint": "vllm", "qps": 50 }, "gate": gate } }))
    };
    let gate = behind(json!({ "sweep": "load", "metric": "ttft_p99", "at_most": "500ms" }));
    let says = |known: &Known| {
        let expansion = expand_with(&gate, known).expect("expands");
        expansion.pending.first().map(|pending| (pending.state, pending.why.clone()))
    };
    assert_eq!(
        says(&measured("ttft_p99", &[("1", 300.0, Some([280.0, 320.0]), 3), ("2", 480.0, Some([470.0, 500.0]), 3)])),
        None
    );
    let (state, why) =
        says(&measured("ttft_p99", &[("1", 300.0, Some([280.0, 320.0]), 3), ("2", 612.4, Some([590.0, 640.0]), 3)]))
            .expect("stopped");
    let told = "load: vllm · small · B1 · 2: ttft_p99 is 612 ms (590 ms to 640 ms), above 500ms";
    assert_eq!((state, why.as_str()), (Waits::Stopped, told));
    // The bound lies within the interval, so a mean below the bound decides nothing.
    let (state, why) = says(&measured("ttft_p99", &[("1", 490.0, Some([460.0, 520.0]), 3)])).expect("undecided");
    assert_eq!(
        (state, why.as_str()),
        (Waits::Undecided, "load: vllm · small · B1 · 1: ttft_p99 is 490 ms (460 ms to 520 ms)")
    );
    let (state, why) = says(&measured("ttft_p99", &[("1", 300.0, None, 1)])).expect("undecided");
    assert_eq!(
        (state, why.as_str()),
        (
            Waits::Undecided,
            "load: vllm · small · B1 · 1: ttft_p99 is 300 ms of a single run has no interval: set `repeats` of `load`"
        )
    );
    // The percentile lies among failed requests, so it is above all observed values.
    let (state, why) = says(&measured("ttft_p99", &[("1", 900.0, Some([900.0, f64::INFINITY]), 3)])).expect("stopped");
    assert_eq!(
        (state, why.as_str()),
        (Waits::Stopped, "load: vllm · small · B1 · 1: ttft_p99 is above 900 ms, above 500ms")
    );
    // A cell is also skipped because of findings at other loads, here at 2 qps.
    let skip = checked(
        json!({ "load": load, "release": { "matrix": { "endpoint": "vllm", "qps": 50 }, "skip_if": { "sweep": "load", "metric": "error_share", "above": "1%" } } }),
    );
    let known = measured("error_share", &[("1", 0.0, Some([0.0, 0.004]), 3), ("2", 0.05, Some([0.03, 0.08]), 3)]);
    let expansion = expand_with(&skip, &known).expect("expands");
    let [pending] = &expansion.pending[..] else { panic!("expected one: {:?}", expansion.pending) };
    assert_eq!(
        (pending.state, pending.why.as_str()),
        (Waits::Pruned, "load: vllm · small · B1 · 2: error_share is 5 % (3 % to 8 %), above 1%")
    );
}
