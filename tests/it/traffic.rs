//! Tests the requests that were sent, based on the servers' own logs: they are the same for all compared
//! sides, and nothing is sent twice by accident.
//!
//! Texts are read from the bodies that the mock logged, and are split and compared by code that belongs
//! to the tests.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use sweepline::rows::{Phase, RequestRow};

use lab::mock::Mock;
use lab::{Lab, Run};

/// Number of tokens that the mock's chat template puts before the first text: a mark, the role, and
/// a mark.
const TEMPLATE: usize = 3;
/// The tokens of a nonce: `[`, `ref` and four numbers.
const NONCE: usize = 6;
/// Number of requests of a run that are compared with all others.
const COMPARED: usize = 40;

/// Attempts at runs by name (`run id-attempt`), each with the bodies of its requests in order.
type Traffic = BTreeMap<String, Vec<Sent>>;

/// One request as received by a server.
struct Sent {
    number: u64,
    arrival: u64,
    cached: u64,
    prompt_tokens: u64,
    body: Value,
}

/// Returns the requests that the servers logged, without the probes. Asserts that no request of an attempt
/// is missing between the first and the last.
fn traffic(mocks: &mut [Mock]) -> Traffic {
    let mut traffic = Traffic::new();
    for mock in mocks {
        mock.terminate();
        for line in mock.log_now().into_iter().filter(|line| !line["n"].is_null()) {
            let id = line["request_id"].as_str().unwrap();
            let Some((attempt, number)) = id.rsplit_once('-').filter(|_| id != "sweepline-probe") else { continue };
            let count = |name: &str| line[name].as_u64().unwrap_or_else(|| panic!("no {name} in {line}"));
            traffic.entry(attempt.to_owned()).or_default().push(Sent {
                number: number.parse().unwrap(),
                arrival: count("arrival_ns"),
                cached: line["cached_tokens"].as_u64().unwrap_or_default(),
                prompt_tokens: count("prompt_tokens"),
                body: serde_json::from_str(line["request"].as_str().unwrap()).unwrap(),
            });
        }
    }
    for (attempt, sent) in &mut traffic {
        sent.sort_by_key(|sent| sent.number);
        assert!(sent.iter().map(|sent| sent.number).eq(0..sent.len() as u64), "requests of {attempt} are missing");
    }
    traffic
}

fn attempt(run: &Run) -> String {
    format!("{}-{}", &run.json["id"].as_str().unwrap()[..16], run.json["attempt"])
}

fn rows(run: &Run) -> impl Iterator<Item = &RequestRow> {
    run.records.iter().map(|record| &record.row)
}

/// Returns the scheduled instant of each request, in nanoseconds since the start of the run.
fn offsets(run: &Run) -> BTreeMap<u64, u64> {
    rows(run).map(|row| (row.request, row.scheduled_ns)).collect()
}

/// Runs the plan. Exit code 3 is accepted, because a run may be invalid on a busy machine, which is not
/// tested here.
fn run(lab: &Lab, more: &[&str]) {
    let ended = lab.run(&[&["run", "plan.yaml"], more].concat());
    assert!(matches!(ended.code, Some(0 | 3)), "{}{}", ended.stdout, ended.stderr);
}

/// Returns a plan whose endpoints `a`, `b`, … are these mocks.
fn plan(mocks: &[Mock], rest: &str) -> String {
    let mut plan =
        "sweepline: 1\nname: traffic\nseed: 5\nmodels: { m: { id: tiny }, n: { id: small } }\nendpoints:\n".to_owned();
    for (mock, name) in mocks.iter().zip(["a", "b"]) {
        plan += &format!("  {name}: {{ url: \"http://127.0.0.1:{}/v1\", engine: mock }}\n", mock.port);
    }
    plan + rest
}

/// Separates the nonce at the front of a text from the rest.
fn cut_nonce(text: &str) -> (&str, Option<&str>) {
    match text.strip_prefix("[ref ").and_then(|rest| rest.split_once("] ")) {
        Some((nonce, rest)) => {
            assert!(nonce.split(' ').all(|three| three.len() == 3 && three.parse::<u16>().is_ok()), "{nonce}");
            (rest, Some(nonce))
        }
        None => (text, None),
    }
}

/// Returns a body without its model and its nonces, and the nonces.
fn without_nonces(body: &Value) -> (Value, Vec<String>) {
    let (mut body, mut nonces) = (body.clone(), Vec::new());
    body["model"] = json!(null);
    for message in body["messages"].as_array_mut().unwrap() {
        let text = message["content"].as_str().unwrap().to_owned();
        let (rest, nonce) = cut_nonce(&text);
        nonces.extend(nonce.map(str::to_owned));
        message["content"] = rest.into();
    }
    (body, nonces)
}

/// Splits a prompt into tokens: the template's marks, sequences of letters and digits, and single
/// characters.
fn tokens(body: &Value) -> Vec<String> {
    let mut tokens = Vec::new();
    for message in body["messages"].as_array().unwrap() {
        tokens.extend(["<start>".to_owned(), format!("<{}>", message["role"].as_str().unwrap()), "<text>".to_owned()]);
        let mut word = String::new();
        for letter in message["content"].as_str().unwrap().chars().chain([' ']) {
            if letter.is_alphanumeric() {
                word.push(letter);
                continue;
            }
            tokens.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
            tokens.extend(Some(letter.to_string()).filter(|_| !letter.is_whitespace()));
        }
        tokens.push("<end>".to_owned());
    }
    tokens
}

fn common(one: &[String], other: &[String]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

#[test]
fn endpoints_arms_and_loads_get_the_same_requests() {
    let lab = Lab::new();
    let flags = ["--ttft", "2ms", "--slots", "64"];
    let mut mocks = [Mock::start(&flags), Mock::start(&flags)];
    let rest = "scenarios: { s: { base: C, output_tokens: 3 }, p: { base: B1, output_tokens: 3, prefix: { share: 0.5, tokens: 64, groups: 3 } } }
phases: { fill: 100ms, stabilize: 100ms, measure: { for: 500ms, min_requests: 20 }, drain: 30s }
sweeps:
  closed: { matrix: { endpoint: [a, b], model: [m, n], scenario: [s, p], batch_size: [1] } }
  open: { matrix: { endpoint: [a, b], model: [m, n], scenario: [s, p], qps: [60] } }
";
    lab.write("plan.yaml", &plan(&mocks, rest));
    run(&lab, &[]);
    let traffic = traffic(&mut mocks);
    let runs = lab.runs();
    assert_eq!((traffic.len(), runs.len()), (16, 16));
    let of = |run: &Run| &traffic[&attempt(run)];

    // Request k is the same for both endpoints, both models and both loads, except for the nonce.
    for scenario in ["s", "p"] {
        let group: Vec<&Run> = runs.values().filter(|run| self::scenario(run) == scenario).collect();
        assert_eq!(group.len(), 8);
        let first = of(group[0]);
        for other in &group[1..] {
            let pairs = first.iter().zip(of(other));
            assert!(pairs.len() >= 5, "{} requests in common", pairs.len());
            for (one, other) in pairs {
                let ((one, nonces), (other, others)) = (without_nonces(&one.body), without_nonces(&other.body));
                assert_eq!(one, other);
                // There is one nonce at the front; after a shared text, the question also has its
                // own nonce.
                assert_eq!((nonces.len(), others.len()), if scenario == "s" { (1, 1) } else { (2, 2) });
                assert!(nonces.iter().zip(&others).all(|(one, other)| one != other), "{nonces:?} {others:?}");
            }
        }
    }

    let (mut delays, mut closed) = (Vec::new(), 0);
    let open: Vec<&Run> = runs.values().filter(|run| run.json["spec"]["load"]["open"].is_object()).collect();
    for run in runs.values() {
        let origin = run.json["facts"]["start_monotonic_ns"].as_u64().unwrap();
        if run.json["spec"]["load"]["open"].is_object() {
            // The offsets are equal, and no request arrives before its scheduled offset.
            let schedule = offsets(run);
            for other in open.iter().filter(|other| scenario(other) == scenario(run)) {
                assert!(schedule.iter().zip(&offsets(other)).all(|(one, other)| one == other));
            }
            delays.extend(of(run).iter().map(|sent| sent.arrival as i64 - (origin + schedule[&sent.number]) as i64));
        } else {
            assert!(of(run).is_sorted_by_key(|sent| sent.arrival), "requests sent one at a time arrive in order");
            closed += 1;
        }
    }
    delays.sort_unstable();
    let at = |part: usize| delays[(delays.len() - 1) * part / 100] as f64 / 1e6;
    println!("arrival after its offset, n = {}: p0 {:.3} p50 {:.3} p99 {:.3} ms", delays.len(), at(0), at(50), at(99));
    assert_eq!((open.len(), closed), (8, 8));
    assert!(delays[0] >= 0 && at(50) < 1_000.0);
}

#[test]
fn runs_share_no_prefix_that_is_not_declared() {
    let lab = Lab::new();
    let flags = ["--ttft", "2ms", "--slots", "64", "--prefix-cache", "1000000000"];
    let mut mocks = [Mock::start(&flags)];
    let rest = "scenarios:
  a1: { base: A1, output_tokens: 8 }
  b1: { base: B1, output_tokens: 8 }
  b2: { base: B2, output_tokens: 8 }
  c: { base: C, output_tokens: 8 }
  d: { base: D, output_tokens: 8 }
  warm: { base: B1, output_tokens: 8, prefix: { share: 0.7, tokens: 200, groups: 3, order: zipf } }
  cold: { base: warm, cache: cold }
  tile: { base: B1, output_tokens: 8, prefix: { tokens: 200, groups: 9, order: tile } }
phases: { fill: 50ms, stabilize: 0s, measure: { for: 200ms, min_requests: 20 }, drain: 30s }
sweeps:
  all: { repeats: 2, matrix: { endpoint: [a], model: [m], scenario: [a1, b1, b2, c, d, warm, cold, tile], batch_size: [2] } }
";
    lab.write("plan.yaml", &plan(&mocks, rest));
    run(&lab, &[]);
    let first: BTreeMap<String, String> = lab.runs().values().map(|run| (attempt(run), scenario(run))).collect();
    // A second attempt at each run sends the same texts again.
    run(&lab, &["--force"]);
    let second = lab.runs().values().map(|run| (attempt(run), scenario(run))).collect::<BTreeMap<_, _>>();
    let scenarios: BTreeMap<String, String> = first.into_iter().chain(second).collect();
    let traffic = traffic(&mut mocks);
    assert_eq!(scenarios.len(), 32);
    assert!(scenarios.keys().eq(traffic.keys()), "{:?}\n{:?}", scenarios.keys(), traffic.keys());

    let nothing_declared = |attempt: &str| matches!(scenarios[attempt].as_str(), "b1" | "b2" | "cold");
    let prompts: Vec<(&str, Vec<Vec<String>>)> = traffic
        .iter()
        .map(|(attempt, sent)| (attempt.as_str(), sent.iter().take(COMPARED).map(|sent| tokens(&sent.body)).collect()))
        .collect();
    let (mut pairs, mut longest) = (0u64, 0);
    for (at, (attempt, ones)) in prompts.iter().enumerate() {
        for (other, others) in &prompts[at..] {
            if attempt == other && !nothing_declared(attempt) {
                continue;
            }
            for (k, one) in ones.iter().enumerate() {
                for (_, other) in others.iter().enumerate().filter(|(l, _)| attempt != other || *l > k) {
                    longest = longest.max(common(one, other));
                    pairs += 1;
                }
            }
        }
    }
    println!("{pairs} pairs of requests of {} attempts: at most {longest} tokens in common", prompts.len());
    assert!(pairs > 10_000 && longest >= TEMPLATE + 2);
    assert!(longest < TEMPLATE + NONCE, "a nonce occurred twice");

    // The cache hits confirm this: there are none if nothing is shared, and never any for the first
    // request of an attempt, even if earlier attempts sent the same texts.
    for (attempt, sent) in &traffic {
        assert_eq!(sent[0].cached, 0, "{attempt}, a run of {}", scenarios[attempt]);
        if nothing_declared(attempt) {
            assert!(sent.iter().all(|sent| sent.cached == 0), "{attempt}, a run of {}", scenarios[attempt]);
        }
    }
    let reused: BTreeSet<&str> = traffic
        .iter()
        .filter(|(_, sent)| sent.iter().any(|sent| sent.cached > 0))
        .map(|(attempt, _)| scenarios[attempt].as_str())
        .collect();
    assert!(["a1", "c", "d", "warm"].iter().all(|name| reused.contains(name)), "{reused:?}");
}

fn scenario(run: &Run) -> String {
    run.json["spec"]["labels"]["scenario"].as_str().unwrap().to_owned()
}

/// Returns Σ reusable / Σ intended of a run's window, and Σ cached / Σ prompt tokens of the same requests
/// from the server's log.
fn shares(run: &Run, traffic: &Traffic) -> (f64, f64) {
    let log = &traffic[&attempt(run)];
    let (mut reusable, mut intended, mut cached, mut prompts) = (0, 0, 0, 0);
    for row in rows(run).filter(|row| row.phase == Phase::Measure && row.outcome.is_ok()) {
        let sent = &log[row.request as usize];
        assert_eq!(row.cached_tokens.map(u64::from), Some(sent.cached));
        assert_eq!(row.prompt_tokens.map(u64::from), Some(sent.prompt_tokens));
        reusable += u64::from(row.reusable_tokens.unwrap());
        intended += u64::from(row.intended_prompt_tokens);
        cached += sent.cached;
        prompts += sent.prompt_tokens;
    }
    assert!(prompts > 0, "nothing was measured");
    (reusable as f64 / intended as f64, cached as f64 / prompts as f64)
}

/// Returns the verdict's remark about the cache of a run, if any.
fn warm_cache(lab: &Lab, run: &Run) -> Option<Value> {
    let id = &run.json["id"].as_str().unwrap()[..16];
    let verdict = lab.ok(&["show", id, "--plan", "plan.yaml", "--format", "json"]).json()["verdict"].clone();
    verdict["reasons"].as_array().unwrap().iter().find(|reason| reason["name"] == "warm_cache").cloned()
}

#[test]
fn the_cache_gives_back_what_scenarios_declare() {
    let lab = Lab::new();
    // A tile is three times the size of the cache; everything else fits in.
    let flags = ["--ttft", "1ms", "--slots", "64", "--prefix-cache", "100000"];
    let mut mocks = [Mock::start(&flags)];
    let rest = "scenarios:
  same: { base: A2, output_tokens: 8 }
  none: { base: B2, output_tokens: 8 }
  system: { base: C, output_tokens: 8 }
  history: { base: D, prompt_tokens: 200, output_tokens: 64, turns: 10 }
  short: { base: D }
  warm: { base: B1, prompt_tokens: 100, output_tokens: 8, prefix: { share: 0.6, tokens: 512, groups: 8, order: zipf } }
  cold: { base: warm, cache: cold }
  tile: { base: B1, output_tokens: 8, prefix: { tokens: 4000, groups: 100, order: tile } }
phases: { fill: 1s, stabilize: 0s, measure: { for: 400ms, min_requests: 60 }, drain: 30s }
sweeps:
  all: { matrix: { endpoint: [a], model: [m], scenario: [same, none, system, history, short, warm, cold, tile], batch_size: [1] } }
";
    lab.write("plan.yaml", &plan(&mocks, rest));
    run(&lab, &[]);
    let traffic = traffic(&mut mocks);
    let mut off = Vec::new();
    for run in lab.runs().values() {
        let (declared, cached) = shares(run, &traffic);
        println!("{}: {:.1}% declared, {:.1}% cached", scenario(run), declared * 100.0, cached * 100.0);
        if (declared - cached).abs() > 0.02 {
            off.push(scenario(run));
        }
        let shared = !matches!(scenario(run).as_str(), "none" | "cold" | "tile");
        assert_eq!(shared, declared > 0.2, "{}", scenario(run));
        assert_eq!(warm_cache(&lab, run), None, "{}", scenario(run));
    }
    assert!(off.is_empty(), "more than 2 points off: {off:?}");
}

#[test]
fn a_leak_between_runs_is_a_warm_cache() {
    let lab = Lab::new();
    let mocks = [Mock::start(&["--ttft", "1ms", "--prefix-cache", "10000000"])];
    // Without nonces, the second attempt hits texts that the first one left in the server's cache.
    let rest = "nonce: off
scenarios: { leak: { base: B2, output_tokens: 4 } }
phases: { fill: 20ms, stabilize: 0s, measure: { for: 200ms, min_requests: 20 }, drain: 30s }
sweeps: { all: { matrix: { endpoint: [a], model: [m], scenario: [leak], qps: [40] } } }
";
    lab.write("plan.yaml", &plan(&mocks, rest));
    run(&lab, &[]);
    assert_eq!(warm_cache(&lab, &lab.only_run()), None);
    run(&lab, &["--force"]);
    let found = warm_cache(&lab, &lab.only_run()).expect("a warm cache");
    println!("{found}");
    assert_eq!(found["state"], "invalid", "{found}");
}
