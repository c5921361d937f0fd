//! Tests claims about a run, on a live queue whose true values are known. `cargo bench --bench claims`
//! prints the results of thousands of simulated queues.
//!
//! A mock with four slots and a fixed time to its only token is an M/D/4 queue, in virtual time.

use serde_json::Value;

use lab::Lab;
use lab::mock::Mock;
use lab::plans::single_token_servers;
use lab::sweeps::{honest, shown};

/// Returns a plan over mocks with these figures (`each`), whose responses have a single token.
fn plan(mocks: usize, each: &str, rest: &str) -> String {
    let endpoint = |at| format!("  e{at}: {{ engine: mock, mock: {{ {each}, itl: 0s }} }}\n");
    let endpoints: String = (0..mocks).map(endpoint).collect();
    let names: Vec<String> = (0..mocks).map(|at| format!("e{at}")).collect();
    format!(
        "sweepline: 1\nname: claims\nseed: 11\nendpoints:\n{endpoints}models: {{ m: {{ id: tiny }} }}\n\
         scenarios: {{ one: {{ prompt_tokens: 16, output_tokens: 1 }} }}\n\
         validity: {{ client_late: {{ suspect: 100%, invalid: 100% }} }}\n{}",
        rest.replace("MOCKS", &names.join(", "))
    )
}

fn answer(run: &Value) -> &str {
    run["slo"][0]["answer"].as_str().unwrap()
}

/// Returns the names of reasons and labels of a verdict.
fn names(run: &Value) -> Vec<&str> {
    let of = |list: &str| run["verdict"][list].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap());
    of("reasons").chain(of("labels")).collect()
}

/// Returns the share of the runs' requests above the limit.
fn share(runs: &[Value]) -> f64 {
    let sum = |name: &str| runs.iter().map(|run| run["slo"][0][name].as_f64().unwrap()).sum::<f64>();
    sum("above") / sum("n")
}

/// The load is 86 % of the capacity of four slots with 40 ms per request. In an infinite run, 7.7 % of
/// requests take 2.95 × 40 ms or longer; with this seed, 6.3 % do.
const NEAR: &str =
    "phases: { fill: 200ms, stabilize: 1s, measure: { for: 2s, min_requests: 1, at_most: 2s }, drain: 5s }
slo: { ttft: { p95: 118ms } }
sweeps:
  near: { matrix: { endpoint: [MOCKS], model: m, scenario: one, qps: 86 }, repeats: 10 }
";

#[test]
fn a_limit_that_a_queue_misses_seldom_holds_by_the_luck_of_a_short_window() {
    let lab = Lab::new();
    let runs = shown(&lab, &plan(6, "ttft: 40ms, slots: 4", NEAR), "6");
    assert_eq!(runs.len(), 60);
    let holds = runs.iter().filter(|run| answer(run) == "holds").count();
    println!("{holds} of 60 hold; {:.1} % of all requests are above the limit", 100.0 * share(&runs));
    assert!(share(&runs) > 0.05, "the queue misses its limit: {}", share(&runs));
    assert!(holds <= 5, "{holds} of 60 hold");
}

/// On average, six of 16 slots are busy.
const FAR: &str =
    "phases: { fill: 200ms, stabilize: 300ms, measure: { for: 6s, min_requests: 1, at_most: 6s }, drain: 5s }
slo: { ttft: { p95: 2s } }
sweeps:
  far: { matrix: { endpoint: [MOCKS], model: m, scenario: one, qps: 60 }, repeats: 2 }
";

#[test]
fn a_load_far_below_the_limit_holds() {
    let lab = Lab::new();
    let runs = shown(&lab, &plan(5, "ttft: 100ms, jitter: 60%, slots: 16", FAR), "5");
    assert_eq!(runs.len(), 10);
    let holds = runs.iter().filter(|run| answer(run) == "holds").count();
    assert!(holds >= 9, "{holds} of 10 runs hold");
}

const OVER: &str =
    "phases: { fill: 0s, stabilize: 200ms, measure: { for: 3s, min_requests: 1, at_most: 3s }, drain: 10s }
sweeps:
  over: { matrix: { endpoint: [MOCKS], model: m, scenario: one, qps: 110 }, repeats: 2 }
";

#[test]
fn a_tenth_more_than_a_server_serves_is_never_kept_up_with() {
    let lab = Lab::new();
    let runs = shown(&lab, &plan(5, "ttft: 40ms, slots: 4", OVER), "5");
    for run in &runs {
        let names = names(run);
        assert!(names.contains(&"saturated") || names.contains(&"not_shown"), "{:#}", run["verdict"]);
    }
}

const FAILING: &str =
    "phases: { fill: 0s, stabilize: 100ms, measure: { for: 1500ms, min_requests: 1, at_most: 2s }, drain: 10s }
compare: { by: endpoint, baseline: e0, metrics: [ttft_p50] }
sweeps:
  errors: { matrix: { endpoint: [e0, e1], model: m, scenario: one, batch_size: 8 }, repeats: 3 }
";

#[test]
fn errors_against_none_fail_the_gate() {
    let mocks = [&[][..], &["--fault", "http:500@6%"]]
        .map(|faults| Mock::start(&[&["--ttft", "20ms", "--slots", "8"][..], faults].concat()));
    let lab = Lab::new();
    lab.write("plan.yaml", &single_token_servers(&mocks.each_ref().map(|mock| mock.port), FAILING));
    honest(&lab.run(&["run", "plan.yaml", "-q"]));
    let gate = lab.run(&["compare", "plan.yaml", "--gate"]);
    assert_eq!(gate.code, Some(4), "{}{}", gate.stdout, gate.stderr);
    assert!(gate.stdout.contains("errors: worse"), "{}", gate.stdout);
}
