//! Tests claims about a run, on a live queue whose true values are known. `cargo bench --bench claims`
//! prints the results of thousands of simulated queues.
//!
//! A mock with four slots and a fixed time to its only token is an M/D/4 queue. A slow machine makes
//! the queue slower, never faster, so a claim that is wrong for this queue stays wrong.

use serde_json::Value;

use super::lab::Lab;
use super::mock::Mock;
use super::sweeps::honest;

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

/// Runs the plan with its endpoints in parallel, and returns `show` of every run.
fn shown(lab: &Lab, plan: &str, jobs: &str) -> Vec<Value> {
    lab.write("plan.yaml", plan);
    honest(&lab.measured(&["run", "plan.yaml", "-q", "--jobs", jobs]));
    let show = |id: &String| lab.ok(&["show", id, "--plan", "plan.yaml", "--format", "json"]).json();
    lab.runs().keys().map(show).collect()
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

#[timed_test]
fn a_limit_that_a_queue_misses_seldom_holds_by_the_luck_of_a_short_window() {
    let lab = Lab::new();
    let runs = shown(&lab, &plan(6, "ttft: 40ms, slots: 4", NEAR), "6");
    assert_eq!(runs.len(), 60);
    let holds = runs.iter().filter(|run| answer(run) == "holds").count();
    println!("{holds} of 60 hold; {:.1} % of all requests are above the limit", 100.0 * share(&runs));
    assert!(share(&runs) > 0.05, "the queue misses its limit: {}", share(&runs));
    assert!(holds <= 5, "{holds} of 60 hold");
}

/// On average, six of 16 slots are busy. Times vary between requests by more than the delay that a
/// busy machine adds.
const FAR: &str =
    "phases: { fill: 200ms, stabilize: 300ms, measure: { for: 6s, min_requests: 1, at_most: 6s }, drain: 5s }
slo: { ttft: { p95: 2s } }
sweeps:
  far: { matrix: { endpoint: [MOCKS], model: m, scenario: one, qps: 60 }, repeats: 2 }
";

/// On a busy machine, requests wait for cores together and are therefore less informative, so there are
/// up to three tries.
#[timed_test]
fn a_load_far_below_the_limit_holds() {
    let holds = || {
        let lab = Lab::new();
        let runs = shown(&lab, &plan(5, "ttft: 100ms, jitter: 60%, slots: 16", FAR), "5");
        assert_eq!(runs.len(), 10);
        runs.iter().filter(|run| answer(run) == "holds").count()
    };
    let mut tries = Vec::new();
    while tries.len() < 3 && tries.last().is_none_or(|held| *held < 9) {
        tries.push(holds());
    }
    assert!(tries.last().is_some_and(|held| *held >= 9), "this many of 10 runs hold: {tries:?}");
}

const OVER: &str =
    "phases: { fill: 0s, stabilize: 200ms, measure: { for: 3s, min_requests: 1, at_most: 3s }, drain: 10s }
sweeps:
  over: { matrix: { endpoint: [MOCKS], model: m, scenario: one, qps: 110 }, repeats: 2 }
";

#[timed_test]
fn a_tenth_more_than_a_server_serves_is_never_kept_up_with() {
    let lab = Lab::new();
    let runs = shown(&lab, &plan(5, "ttft: 40ms, slots: 4", OVER), "5");
    for run in &runs {
        let names = names(run);
        assert!(names.contains(&"saturated") || names.contains(&"not_shown"), "{:#}", run["verdict"]);
    }
}

/// Returns a plan over running servers, by their ports.
fn over(ports: &[u16], rest: &str) -> String {
    let endpoint = |(at, port): (usize, &u16)| {
        format!("  e{at}: {{ url: 'http://127.0.0.1:{port}/v1', engine: mock, errors: measured }}\n")
    };
    let endpoints: String = ports.iter().enumerate().map(endpoint).collect();
    format!(
        "sweepline: 1\nname: claims\nseed: 11\nendpoints:\n{endpoints}models: {{ m: {{ id: tiny }} }}\n\
         scenarios: {{ one: {{ prompt_tokens: 16, output_tokens: 1 }} }}\n\
         validity: {{ client_late: {{ suspect: 100%, invalid: 100% }} }}\n{rest}"
    )
}

const SLOWED: &str =
    "phases: { fill: 0s, stabilize: 500ms, measure: { for: 8s, min_requests: 1, at_most: 8s }, drain: 10s }
sweeps:
  closed: { matrix: { endpoint: e0, model: m, scenario: one, batch_size: 4 } }
  open: { matrix: { endpoint: e1, model: m, scenario: one, qps: 80 } }
  over: { matrix: { endpoint: e2, model: m, scenario: one, qps: 160 } }
";

#[timed_test]
fn a_server_that_halves_its_speed_under_way_is_never_valid() {
    let slowed =
        |from: &str| Mock::start(&["--ttft", "20ms", "--slots", "4", "--fault", &format!("slow:2@{from}-999999")]);
    // The rates are 200, 80 and 160 requests per second. The request numbers are chosen so that a slow
    // machine also reaches them within the window. The last rate is more than the slowed server can handle,
    // so it is saturated from halfway on.
    let mocks = [slowed("600"), slowed("360"), slowed("640")];
    let lab = Lab::new();
    let runs = shown(&lab, &over(&mocks.each_ref().map(|mock| mock.port), SLOWED), "3");
    assert_eq!(runs.len(), 3);
    for run in &runs {
        assert_ne!(run["verdict"]["state"], "valid", "{:#}", run["verdict"]);
    }
}

const FAILING: &str =
    "phases: { fill: 0s, stabilize: 100ms, measure: { for: 1500ms, min_requests: 1, at_most: 2s }, drain: 10s }
compare: { by: endpoint, baseline: e0, metrics: [ttft_p50] }
sweeps:
  errors: { matrix: { endpoint: [e0, e1], model: m, scenario: one, batch_size: 8 }, repeats: 3 }
";

#[timed_test]
fn errors_against_none_fail_the_gate() {
    let mocks = [&[][..], &["--fault", "http:500@6%"]]
        .map(|faults| Mock::start(&[&["--ttft", "20ms", "--slots", "8"][..], faults].concat()));
    let lab = Lab::new();
    lab.write("plan.yaml", &over(&mocks.each_ref().map(|mock| mock.port), FAILING));
    honest(&lab.measured(&["run", "plan.yaml", "-q"]));
    let gate = lab.run(&["compare", "plan.yaml", "--gate"]);
    assert_eq!(gate.code, Some(4), "{}{}", gate.stdout, gate.stderr);
    assert!(gate.stdout.contains("errors: worse"), "{}", gate.stdout);
}
