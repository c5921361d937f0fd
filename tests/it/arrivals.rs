//! Tests the spacing of arrivals and changes of their rate through the program, compared with the
//! server's log.

use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use sweepline::engine::{self, Checked, Job, Progress, SampleSink, Sink, SinkError, Target, Trace};
use sweepline::expand::expand;
use sweepline::plan::{self, Format};
use sweepline::rows::{Facts, Phase, Record, RequestRow, Sample};
use sweepline::units::NonceSeed;
use sweepline::workload::NonceKey;

use super::truth::{Experiment, scheduled, tell};
use lab::mock::Mock;
use lab::{Lab, Run};

const MS: u64 = 1_000_000;
/// Delay that a busy machine may add between the schedule and the server for half of the requests, in
/// milliseconds.
const GENEROUS: f64 = 100.0;

/// Sweeps of every kind: fill to 200 ms, stabilize to 600 ms, then a window of 2 s.
const SWEEPS: &str = "scenarios: { short: { base: B1, output_tokens: 2 } }
phases: { fill: 200ms, stabilize: 400ms, measure: 2s, drain: 30s }
sweeps:
  ramp: { arrivals: { ramp: { from: 10, to: 90, over: 2s }, process: constant }, matrix: { endpoint: a, scenario: short } }
  steps: { arrivals: { steps: [{ qps: 50%, for: 500ms }, { qps: 150%, for: 1s }], process: constant }, matrix: { endpoint: a, scenario: short, qps: 40 } }
  bursts: { arrivals: { bursts: { on: 200ms, off: 300ms } }, matrix: { endpoint: [a, b], scenario: short, qps: 41 } }
  curve: { arrivals: { curve: [[0s, 20], [1s, 80], [2s, 20]], process: constant }, matrix: { endpoint: a, scenario: short } }
  gamma: { arrivals: { gamma: { burstiness: 0.25 } }, matrix: { endpoint: a, scenario: short, qps: [42] } }
";

fn of_sweep<'a>(runs: &'a [Run], kind: &str) -> Vec<&'a Run> {
    let arrivals = |run: &&Run| run.json["spec"]["load"]["open"]["arrivals"].get(kind).is_some();
    let found: Vec<&Run> = runs.iter().filter(arrivals).collect();
    assert!(!found.is_empty(), "no run of {kind}");
    found
}

/// Runs the sweeps in virtual time.
fn simulated() -> Vec<Run> {
    let lab = Lab::new();
    let mock = "{ engine: mock, mock: { ttft: 2ms, itl: 1ms, slots: 64 } }";
    let endpoints = format!("endpoints: {{ a: {mock}, b: {mock} }}\n");
    let head = "sweepline: 1\nname: arrivals\nseed: 5\nmodels: { m: { id: tiny } }\n";
    lab.write("plan.yaml", &format!("{head}{endpoints}{SWEEPS}"));
    lab::sweeps::honest(&lab.run(&["run", "plan.yaml"]));
    lab.runs().into_values().collect()
}

/// Runs the sweeps against a server, and compares its log with the schedules.
fn measured() -> Vec<Run> {
    let experiment = Experiment::new(&["--ttft", "2ms", "--itl", "1ms", "--slots", "64"], SWEEPS);
    for run in &experiment.runs {
        let both = experiment.both(run);
        let origin = run.json["facts"]["start_monotonic_ns"].as_u64().unwrap();
        let late: Vec<i64> =
            both.values().map(|both| (both.arrival() - origin) as i64 - both.row.scheduled_ns as i64).collect();
        assert!(late.iter().all(|late| *late >= 0), "no request arrives before its scheduled time");
        let p50 = tell("from the schedule to the server's arrival", late);
        assert!(p50 < GENEROUS, "{p50} ms");
    }
    experiment.runs
}

/// Asserts that evenly spaced arrivals occur where the expected number of arrivals, which the caller
/// computes, is a whole number.
fn constant_follows(run: &Run, expected: impl Fn(f64) -> f64) {
    let times = scheduled(run);
    assert!(times.len() > 60, "{}", times.len());
    for (k, at) in times.iter().enumerate() {
        let error = expected(*at as f64 / 1e9) - (k + 1) as f64;
        assert!(error.abs() < 1e-5, "arrival {k} at {at}: {error}");
    }
}

/// Returns the arrivals expected by `t` for a rate that rises linearly to `first` until 200 ms and stays
/// constant until the window begins at 600 ms. By then, 0.5 × `first` arrivals are expected.
fn before(t: f64, first: f64) -> f64 {
    if t < 0.2 { first * t * t / 0.4 } else { first * (t - 0.1) }
}

#[test]
fn arrivals_reach_the_server_as_the_profile_says() {
    let runs = if lab::is_whole() { measured() } else { simulated() };
    for run in &runs {
        assert!(scheduled(run).is_sorted());
    }

    constant_follows(of_sweep(&runs, "ramp")[0], |t| match t - 0.6 {
        before_window if before_window < 0.0 => before(t, 10.0),
        w => 5.0 + 10.0 * w.min(2.0) + 20.0 * w.min(2.0).powi(2) + 90.0 * (w - 2.0).max(0.0),
    });
    constant_follows(of_sweep(&runs, "steps")[0], |t| match t - 0.6 {
        before_window if before_window < 0.0 => before(t, 20.0),
        w => 10.0 + 20.0 * w.min(0.5) + 60.0 * (w - 0.5).max(0.0),
    });
    constant_follows(of_sweep(&runs, "curve")[0], |t| match t - 0.6 {
        before_window if before_window < 0.0 => before(t, 20.0),
        w if w < 1.0 => 10.0 + 20.0 * w + 30.0 * w * w,
        w => 60.0 + 80.0 * (w - 1.0).min(1.0) - 30.0 * (w - 1.0).min(1.0).powi(2) + 20.0 * (w - 2.0).max(0.0),
    });

    // Bursts are aligned with the window, and also occur before it; no request arrives in a pause.
    let bursts = of_sweep(&runs, "bursts");
    for run in &bursts {
        let after_fill = scheduled(run).into_iter().filter(|at| *at >= 200 * MS);
        let in_cycle: Vec<u64> = after_fill.map(|at| (at + 400 * MS) % (500 * MS)).collect();
        assert!(in_cycle.len() > 40 && in_cycle.iter().all(|at| *at < 200 * MS), "{in_cycle:?}");
        // Within five standard deviations of the mean, for 2 s at 41 per second.
        let counted = run.json["facts"]["scheduled_in_window"].as_u64().unwrap() as f64;
        assert!((counted - 82.0).abs() < 5.0 * 82.0f64.sqrt(), "{counted}");
        assert!((run.json["facts"]["window_qps"].as_f64().unwrap() - 41.0).abs() < 1e-9);
    }
    let both: Vec<Vec<u64>> = bursts.iter().map(|run| scheduled(run)).collect();
    let shared = both[0].len().min(both[1].len());
    assert_eq!(both[0][..shared], both[1][..shared], "one schedule for all endpoints");

    let gamma = of_sweep(&runs, "gamma")[0];
    assert!(gamma.json["facts"].get("window_qps").is_none(), "its rate is the value of qps");
    assert_eq!(gamma.json["spec"]["load"]["open"]["arrivals"], serde_json::json!({ "gamma": { "cv": 2 } }));
}

const PLAN: &str = "sweepline: 1
name: words
endpoints: { demo: { engine: mock } }
models: { m: { id: tiny } }
phases: { fill: 10s, stabilize: 20s, measure: 60s, drain: 10s }
sweeps:
";

fn preview(sweeps: &str) -> Value {
    let lab = Lab::new();
    lab.write("plan.yaml", &format!("{PLAN}{sweeps}"));
    lab.ok(&["preview", "plan.yaml", "--format", "json", "--all"]).json()
}

fn ids(preview: &Value) -> Vec<&str> {
    let runs = preview["runs"].as_array().unwrap_or_else(|| panic!("{preview}"));
    runs.iter().map(|run| run["id"].as_str().unwrap()).collect()
}

#[test]
fn one_process_has_one_id_however_it_is_written() {
    let of = |sweep: &str| {
        let preview = preview(&format!("  s: {{ {sweep} }}\n"));
        let ids = ids(&preview);
        assert_eq!(ids.len(), 1);
        ids[0].to_owned()
    };
    let gamma = of("arrivals: { gamma: { cv: 2 } }, matrix: { qps: 5 }");
    for same in [
        "arrivals: { gamma: { burstiness: 0.25 } }, matrix: { qps: 5 }",
        "arrivals: gamma cv 2, matrix: { qps: 5 }",
        "matrix: { qps: 5, arrivals: [gamma burstiness 0.25] }",
    ] {
        assert_eq!(of(same), gamma, "{same}");
    }
    let plain = of("matrix: { qps: 5 }");
    assert_eq!(of("arrivals: poisson, matrix: { qps: 5 }"), plain);
    let others = [
        gamma,
        plain,
        of("arrivals: constant, matrix: { qps: 5 }"),
        of("arrivals: gamma burstiness 0.3, matrix: { qps: 5 }"),
        of("arrivals: { bursts: { on: 1s, off: 1s } }, matrix: { qps: 5 }"),
        of("arrivals: { bursts: { on: 1s, off: 1s }, process: constant }, matrix: { qps: 5 }"),
        of("arrivals: { steps: [{ qps: 5, for: 1s }] }, matrix: { scenario: B1 }"),
        of("arrivals: { steps: [{ qps: 5, for: 1s }], repeat: true }, matrix: { scenario: B1 }"),
    ];
    let distinct: std::collections::BTreeSet<&String> = others.iter().collect();
    assert_eq!(distinct.len(), others.len(), "{others:?}");
}

#[test]
fn requests_are_counted_by_the_profile_and_sweeps_are_told_apart() {
    let lab = Lab::new();
    let count = |sweep: &str| {
        lab.write("plan.yaml", &format!("{PLAN}  s: {{ {sweep} }}\n"));
        let json = lab.ok(&["preview", "plan.yaml", "--format", "json"]).json();
        json["totals"]["to_do"]["requests"].as_u64().unwrap_or_else(|| panic!("{json}"))
    };
    // The expected number covers half of fill, all of stabilize, and the window.
    assert_eq!(count("matrix: { qps: 10 }"), 50 + 200 + 600);
    // The 20 s before a window that begins with a burst are a pause.
    assert_eq!(count("arrivals: { bursts: { on: 10s, off: 20s } }, matrix: { qps: 10 }"), 50 + 600);
    assert_eq!(count("arrivals: { ramp: { from: 2, to: 20, over: 1m } }, matrix: { scenario: B1 }"), 10 + 40 + 660);
    assert_eq!(count("arrivals: { ramp: { from: 20%, to: 200%, over: 1m } }, matrix: { qps: 10 }"), 10 + 40 + 660);
    let shown = lab.ok(&["preview", "plan.yaml"]).stdout;
    assert!(shown.contains("10 qps · arrivals ramp 20% to 200% over 1m"), "{shown}");
}

/// The rows that a run recorded.
#[derive(Default)]
struct Kept(Mutex<Vec<RequestRow>>);

struct Keeping(Arc<Kept>, Sender<()>);

impl Sink for Keeping {
    fn append(&mut self, records: &[Record]) -> Result<(), SinkError> {
        self.0.0.lock().unwrap().extend(records.iter().map(|record| record.row.clone()));
        Ok(())
    }
    fn finish(self: Box<Self>) -> Result<(), SinkError> {
        Ok(self.1.send(())?)
    }
}

struct Forgetting;

impl SampleSink for Forgetting {
    fn append(&mut self, _: &[Sample]) -> Result<(), SinkError> {
        Ok(())
    }
    fn finish(self: Box<Self>) -> Result<u64, SinkError> {
        Ok(0)
    }
}

/// Replays a trace against a mock under an open loop's phases.
fn replay(trace: Trace, phases: &str, axes: &str) -> (Vec<RequestRow>, Facts) {
    let mut mock = Mock::start(&["--ttft", "2ms", "--itl", "1ms"]);
    let text = format!(
        "sweepline: 1\nname: replay\nendpoints: {{ e: {{ engine: mock, url: 'http://127.0.0.1:1/v1' }} }}\nmodels: {{ m: {{ id: tiny }} }}\n\
         scenarios: {{ short: {{ base: B1, output_tokens: 2 }} }}\nphases: {phases}\n\
         sweeps: {{ s: {{ matrix: {{ scenario: short, {axes} }} }} }}\n"
    );
    let loaded =
        plan::parse(Path::new("replay.yaml"), &text, Format::Yaml).unwrap_or_else(|e| panic!("{}", e.render(false)));
    let run = expand(&loaded.plan).unwrap().runs.swap_remove(0);
    let (kept, (tell, told)) = (Arc::new(Kept::default()), channel());
    let job = Job {
        spec: Arc::clone(&run.spec),
        target: Target::parse(&format!("http://127.0.0.1:{}/v1", mock.port)).unwrap(),
        id_prefix: "replay".to_owned(),
        nonce_key: NonceKey::new(NonceSeed([1; 16])),
        tokenizer: None,
        trace: Some(trace),
        sink: Box::new(Keeping(Arc::clone(&kept), tell)),
        samples: Box::new(Forgetting),
        texts: None,
        check: Arc::new(|_| Checked::Well),
        part: None,
        virtual_time: false,
    };
    let (_running, stop) = tokio::sync::watch::channel(false);
    let finished = engine::execute(job, Arc::new(Progress::default()), stop).unwrap();
    told.recv().unwrap();
    mock.terminate();
    let mut rows = std::mem::take(&mut *kept.0.lock().unwrap());
    rows.sort_by_key(|row| row.request);
    (rows, finished.facts)
}

#[test]
fn a_trace_is_replayed_and_its_end_is_the_end_of_the_load() {
    // The trace was recorded over 1 s, from 10 s on, and is replayed at twice the speed, from 100
    // ms on.
    let recorded: Vec<u64> = (0..40).map(|k| 10_000 * MS + k * 25 * MS).collect();
    let trace = Trace::new(recorded.into()).window(10_100 * MS, 10_900 * MS).scaled(0.5).begin_at(100 * MS);
    let phases =
        "{ fill: 0s, stabilize: 100ms, measure: { for: 300ms, min_requests: 1000, at_most: 10m }, drain: 30s }";
    let (rows, facts) = replay(trace, phases, "qps: 1");
    let wanted: Vec<u64> = (0..32).map(|k| 100 * MS + k * 12_500_000).collect();
    assert_eq!(rows.iter().map(|row| row.scheduled_ns).collect::<Vec<_>>(), wanted);
    assert!(rows.iter().all(|row| row.phase == Phase::Measure && row.outcome.is_ok()));
    // The window was to be extended until it contains a thousand requests; with the last arrival, it
    // contains all that exist.
    assert_eq!(facts.windows.measure_end_ns, wanted[31] + 1);
    assert_eq!((facts.scheduled, facts.never_sent), (32, 0));
}

#[test]
fn a_repeated_trace_goes_on_and_waits_for_a_cap() {
    let trace = Trace::new([0, 0, 0, 50 * MS].into()).repeated(100 * MS);
    let (rows, facts) =
        replay(trace, "{ fill: 0s, stabilize: 0s, measure: 450ms, drain: 30s }", "qps: 1, batch_size: 1");
    let window: Vec<u64> =
        rows.iter().filter(|row| row.phase == Phase::Measure).map(|row| row.scheduled_ns / MS).collect();
    let turn = |turn: u64| [0, 0, 0, 50].map(|at| turn * 100 + at);
    let wanted: Vec<u64> = (0..5).flat_map(turn).filter(|at| *at < 450).collect();
    assert_eq!(window, wanted);
    assert_eq!((facts.scheduled_in_window, facts.max_in_flight), (wanted.len() as u64, 1));
    assert!(rows.iter().filter(|row| row.released_ns > Some(row.scheduled_ns)).count() >= 5, "two of three waited");
}
