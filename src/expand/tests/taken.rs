//! Tests of loads from earlier sweeps, of gates, and of cells that `skip_if` skips. All of them depend only
//! on the plan and the findings.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{plan, plan_json};
use crate::expand::{
    Expansion, Finding, GateAnswer, Known, Longer, PlannedRun, RunId, Says, SearchFigures, Waits, expand, expand_with,
    gate_states,
};
use crate::plan::{Format, ResolvedPlan, SweepMetric, parse};
use crate::units::Decimal;

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
        search: None,
    };
    Known { findings: of.iter().map(finding).collect() }
}

fn load(load: &str) -> Says {
    let load = load.parse().expect("a number");
    Says::Load { load, surely: Some(load), is_least: false, caveats: Vec::new() }
}

fn decimal(load: &str) -> Decimal {
    load.parse().expect("a number")
}

/// Returns the findings of a search for `vllm`, next to a load of 40 qps for `other`. `needs` is a load that met
/// the objective in what was seen, with the further seconds that would show it.
fn searched([shown, observed, misses]: [Option<&str>; 3], needs: Option<(&str, f64)>, surely: Option<&str>) -> Known {
    let [shown, observed, misses] = [shown, observed, misses].map(|load| load.map(decimal));
    let says = match observed {
        Some(load) => Says::Load { load, surely: surely.map(decimal), is_least: false, caveats: Vec::new() },
        None => Says::Nothing("no load was found".to_owned()),
    };
    let mut known = known(&[("vllm", says), ("other", load("40"))]);
    let needs =
        needs.map(|(load, seconds)| Longer { load: decimal(load), met: true, seconds, confirm: seconds + 20.0 });
    known.findings[0].search =
        Some(SearchFigures { shown, observed, misses, needs: needs.into_iter().collect(), is_short: false });
    known
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
    let passed = of(load("20"), at_least("30"));
    assert!(passed.pending.is_empty(), "{:?}", passed.pending);
    let open = || Says::Open("3 runs so far".to_owned());
    for (vllm, other, state, why) in [
        (load("19.9"), open(), Waits::Stopped, "limit: vllm · small · B1: max_qps_under_slo is 19.9 qps, below 20"),
        (load("40"), open(), Waits::Pending, "waits for limit: other · small · B1: 3 runs so far"),
        (load("40"), at_least("15"), Waits::Undecided, "limit: other · small · B1: at least 15 qps"),
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

/// A gate on a search passes or fails by what is shown, and is undecided between the load that is shown to hold
/// and the one that is shown to miss, whatever was observed.
#[test]
fn a_gate_on_a_search_answers_only_what_is_shown() {
    let plan = |bound: &str| {
        let mut gate = json!({ "sweep": "limit", "metric": "max_qps_under_slo" });
        gate[bound] = json!(20);
        checked(json!({ "sustained": { "matrix": { "qps": 5 }, "gate": gate } }))
    };
    let (least, most) = (plan("at_least"), plan("at_most"));
    let loads = [None, Some("10"), Some("19.5"), Some("20"), Some("20.5"), Some("30")];
    let at = |load: Option<&str>| load.map(decimal);
    let bound = Some(decimal("20"));
    let mut count = 0;
    for shown in loads {
        for observed in loads.into_iter().filter(|observed| at(*observed) >= at(shown)) {
            for misses in loads.into_iter().filter(|misses| misses.is_none() || at(*misses) > at(observed)) {
                for surely in [None, observed] {
                    count += 1;
                    let mut known = searched([shown, observed, misses], observed.map(|load| (load, 42.0)), surely);
                    known.findings.truncate(1);
                    let of = |plan: &ResolvedPlan| gate_states(plan, &known)[0].answer;
                    let passes = shown.is_some() && at(shown) >= bound;
                    let fails = misses.is_some() && at(misses) <= bound;
                    let expected = match (passes, fails) {
                        (true, _) => GateAnswer::Yes,
                        (false, true) => GateAnswer::No,
                        (false, false) => GateAnswer::Undecided,
                    };
                    assert_eq!(of(&least), expected, "{shown:?} {observed:?} {misses:?}");
                    let expected = match (shown.is_some() && at(shown) > bound, fails) {
                        (true, _) => GateAnswer::No,
                        (false, true) => GateAnswer::Yes,
                        (false, false) => GateAnswer::Undecided,
                    };
                    assert_eq!(of(&most), expected, "{shown:?} {observed:?} {misses:?}");
                    // An undecided gate states how much longer would do, if a load that decides it was observed.
                    let value = &gate_states(&least, &known)[0].values[0];
                    let says_how_long = value.note.as_ref().is_some_and(|note| note.contains("42 s more at "));
                    let decides = observed.is_some() && at(observed) >= bound;
                    assert_eq!(says_how_long, value.answer == GateAnswer::Undecided && decides, "{value:?}");
                }
            }
        }
    }
    assert!(count > 100, "{count}");
    let stopped = |known: &Known| {
        let expansion = expand_with(&least, known).expect("expands");
        expansion.pending.first().map(|pending| (pending.state, pending.why.clone()))
    };
    let why = "limit: vllm · small · B1: shown 19.5 qps, observed 20.5 qps; 42 s more at 20.5 qps would decide this; `confirm: \
               62s` includes them, but measures all long runs again";
    let known = searched([Some("19.5"), Some("20.5"), None], Some(("20.5", 42.0)), Some("20.5"));
    assert_eq!(stopped(&known), Some((Waits::Undecided, why.to_owned())));
}

#[test]
fn a_later_sweep_takes_what_was_found_or_what_is_shown() {
    let of = |value: Option<&str>, known: &Known| {
        let mut taken = json!({ "from": "limit", "take": "max_qps_under_slo" });
        if let Some(value) = value {
            taken["value"] = json!(value);
        }
        expand_with(&sustained(taken), known).expect("expands")
    };
    let known = searched([Some("19.5"), Some("20.5"), None], None, Some("20.5"));
    let (found, shown) = (of(None, &known), of(Some("shown"), &known));
    assert_eq!(loads(&found, "sustained"), pairs(&[("vllm", "20.5"), ("other", "40")]));
    assert_eq!(loads(&shown, "sustained"), pairs(&[("vllm", "19.5"), ("other", "40")]));
    let evidence = |expansion: &Expansion| {
        let run = expansion.runs.iter().find(|run| run.cell["endpoint"].to_string() == "vllm").expect("a run");
        run.spec.taken[0].clone()
    };
    assert_eq!(evidence(&found).found[0].caveats, ["not shown at 95 %: shown 19.5 qps, observed 20.5 qps"]);
    assert_eq!((evidence(&shown).value.as_deref(), evidence(&shown).found[0].caveats.len()), (Some("shown"), 0));
    // If nothing is shown, there is no load to use, and none is guessed.
    let nothing = of(Some("shown"), &searched([None, Some("20.5"), None], None, Some("20.5")));
    let why = "no load to use: limit: vllm · small · B1: shown none, observed 20.5 qps";
    assert_eq!(stops(&nothing), [(Waits::Blocked, why)]);
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
        search: None,
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
