//! Tests that a stalled generator (SIGSTOP, as when a machine is suspended) is reported in the verdict,
//! in both kinds of loop and wherever in the window it stalls, and that a generator that does not stall
//! is not reported.
//!
//! `SWEEPLINE_FROZEN=5` repeats every stop five times; `SWEEPLINE_CLEAN=200` makes 200 clean runs.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

use lab::mock::Mock;
use lab::plans::plan;
use lab::{Ended, Lab, Run};

const MS: u64 = 1_000_000;
/// Number of runs that are made in parallel. A stopped process needs no core, and one that waits for the
/// mock uses a core only a little.
const BESIDE: usize = 6;

/// The place of the stop, in milliseconds from the start of the window to the start of the stop; also
/// contains the length of the window.
#[derive(Debug, Clone, Copy)]
enum Place {
    AcrossStart,
    Begin,
    Middle,
    AcrossEnd,
    /// The whole window is inside the stop.
    Around,
}

impl Place {
    /// Returns the time from the start of the run to the start of the stop, in milliseconds.
    fn begins(self) -> u64 {
        FILL + STABILIZE
            + match self {
                Place::AcrossStart => return FILL + STABILIZE / 2,
                Place::Around => return FILL + STABILIZE - 200,
                Place::Begin => 100,
                Place::Middle => 1_000,
                Place::AcrossEnd => self.window() - 300,
            }
    }

    /// Returns the length of the window in milliseconds.
    fn window(self) -> u64 {
        if matches!(self, Place::Around) { 400 } else { 4_500 }
    }

    /// Whether a stop between two instants of the run is at its intended place.
    fn holds(self, run: &Run, from: u64, to: u64) -> bool {
        let (start, end) = (run.window("measure_start_ns"), run.window("measure_end_ns"));
        let across = |border: u64| from < border && border < to;
        match self {
            Place::AcrossStart => across(start) && to < end,
            Place::Begin | Place::Middle => start < from && to < end,
            Place::AcrossEnd => start < from && across(end),
            Place::Around => across(start) && across(end),
        }
    }
}

const FILL: u64 = 300;
const STABILIZE: u64 = 500;

/// The load that is stopped, the place of the stop and its length.
#[derive(Debug, Clone, Copy)]
struct Stop {
    load: &'static str,
    place: Place,
    millis: u64,
}

const LOADS: [&str; 4] = ["batch_size: [2]", "batch_size: [8]", "batch_size: [32]", "qps: [20]"];

/// Tests share the machine, which can make requests late by itself, so only the stop itself may
/// trigger this reason.
const DEAF: &str = "validity: { client_late: { suspect: 99%, invalid: 100% }, unsteady: { suspect: 100% } }\n";

/// Returns a plan of one run against the mock.
fn one(port: u16, load: &str, window: u64) -> String {
    let phases = format!("fill: {FILL}ms, stabilize: {STABILIZE}ms, measure: {window}ms, drain: 60s");
    let matrix = format!("endpoint: [a], model: [m], scenario: [short], {load}");
    let plan =
        plan(&[("a", port)], &format!("phases: {{ {phases} }}\nsweeps: {{ s: {{ matrix: {{ {matrix} }} }} }}\n"));
    plan.replace("output_tokens: 8", "output_tokens: 2")
}

/// Starts a server whose responses take 30 ms. Less than a hundredth of a closed loop's requests in the
/// window then span the stop, so neither `client_late` nor a p99 shows it.
fn quick() -> Mock {
    Mock::start(&["--ttft", "27ms", "--itl", "3ms"])
}

/// Starts a server that needs little CPU.
fn slow() -> Mock {
    Mock::start(&["--ttft", "120ms", "--itl", "30ms"])
}

fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sleeps until an instant of the monotonic clock, because the instants of the stop are part of the
/// test.
fn until(instant: u64) {
    std::thread::sleep(Duration::from_nanos(instant.saturating_sub(monotonic())));
}

/// Returns the verdict of a run from `show`, under the plan's thresholds.
fn verdict(lab: &Lab, run: &Run) -> Value {
    let id = &run.json["id"].as_str().unwrap()[..16];
    lab.ok(&["show", id, "--plan", "plan.yaml", "--format", "json"]).json()["verdict"].clone()
}

fn reasons(verdict: &Value) -> BTreeMap<String, String> {
    let text = |reason: &Value, key: &str| reason[key].as_str().unwrap().to_owned();
    verdict["reasons"].as_array().unwrap().iter().map(|reason| (text(reason, "name"), text(reason, "text"))).collect()
}

/// The result of a run that was stopped, and the place of the stop in the run.
struct Stopped {
    ended: Ended,
    lab: Lab,
    run: Run,
    from: u64,
    to: u64,
}

/// Runs the plan and stops the process (SIGSTOP) at the given place, relative to the run's first request,
/// whose arrival is in the mock's log.
fn stopped(stop: Stop) -> Stopped {
    let mock = quick();
    let lab = Lab::measured_time();
    lab.write("plan.yaml", &(one(mock.port, stop.load, stop.place.window()) + DEAF));
    let running = lab.start(&["run", "plan.yaml"]);
    let first = mock.log_of_runs(1)[0].clone();
    let arrived = first["arrival_ns"].as_u64().unwrap();
    until(arrived + stop.place.begins() * MS);
    running.signal(Signal::STOP);
    let from = monotonic();
    until(from + stop.millis * MS);
    let to = monotonic();
    running.signal(Signal::CONT);
    let ended = running.end();
    let run = lab.only_run();
    let start = run.json["facts"]["start_monotonic_ns"].as_u64().unwrap();
    Stopped { ended, lab, from: from - start, to: to - start, run }
}

/// Repeats until the stop is at its intended place, because the signal may come late on a busy
/// machine.
fn placed(stop: Stop) -> Stopped {
    let mut tries = (0..5).map(|_| stopped(stop));
    let holds = |stopped: &Stopped| stop.place.holds(&stopped.run, stopped.from, stopped.to);
    tries.find(holds).unwrap_or_else(|| panic!("{stop:?} was never at its intended place"))
}

/// Applies a function to each item, several in parallel, and returns the results in the order of the items.
fn beside<T: Copy + Sync, R: Send>(items: &[T], work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..BESIDE.min(items.len()) {
            scope.spawn(|| {
                while let Some((at, item)) = Some(next.fetch_add(1, Relaxed)).and_then(|at| Some((at, *items.get(at)?)))
                {
                    let result = work(item);
                    done.lock().unwrap().push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

fn times(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().map_or(default, |times| times.parse().unwrap())
}

fn a_generator_that_stood_still_is_never_valid() {
    let places = [Place::AcrossStart, Place::Begin, Place::Middle, Place::AcrossEnd];
    let mut stops = Vec::new();
    // Only one of several consecutive stops has 32 requests in flight, so that the others leave the
    // cores to it.
    for place in places {
        for millis in [1_000, 3_000] {
            stops.extend(LOADS.map(|load| Stop { load, place, millis }));
        }
    }
    stops.extend(LOADS.map(|load| Stop { load, place: Place::Around, millis: 1_000 }));
    let stops = stops.repeat(times("SWEEPLINE_FROZEN", 1));
    let judged = beside(&stops, |stop| {
        let Stopped { ended, lab, run, .. } = placed(stop);
        let verdict = verdict(&lab, &run);
        let (state, reasons) = (verdict["state"].as_str().unwrap().to_owned(), reasons(&verdict));
        let code = if state == "invalid" { 3 } else { 0 };
        let told = ended.code == Some(code) && ended.stdout.contains("client_paused");
        (state, reasons, told, ended.stdout)
    });
    let mut wrong = Vec::new();
    for (stop, (state, reasons, told, stdout)) in stops.iter().zip(&judged) {
        let paused = reasons.get("client_paused").map_or("", String::as_str);
        println!("{:16} {:11} {} ms: {state:8} {paused}", stop.load, format!("{:?}", stop.place), stop.millis);
        if state == "valid" || !paused.contains("was stopped") || !told {
            wrong.push(format!("{stop:?}: {state}: {reasons:?}\n{stdout}"));
        }
    }
    println!("{} of {} stops reported", judged.len() - wrong.len(), judged.len());
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), judged.len());
}

fn clean_runs_are_not_called_paused() {
    let runs: Vec<&str> = LOADS.into_iter().cycle().take(times("SWEEPLINE_CLEAN", 6)).collect();
    let judged = beside(&runs, |load| {
        let mock = slow();
        let lab = Lab::measured_time();
        lab.write("plan.yaml", &one(mock.port, load, 2_000));
        let ended = lab.run(&["run", "plan.yaml"]);
        let run = lab.only_run();
        let verdict = verdict(&lab, &run);
        (verdict["state"].as_str().unwrap().to_owned(), reasons(&verdict), run.json["facts"].clone(), ended)
    });
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (load, (state, reasons, facts, ended)) in runs.iter().zip(&judged) {
        *found.entry(state.clone()).or_default() += 1;
        reasons.iter().for_each(|(name, _)| *found.entry(name.clone()).or_default() += 1);
        let (pauses, wakes) = (&facts["pauses"], &facts["observed"]["wakes"]["max_ns"]);
        if !reasons.is_empty() {
            println!("{load}: {state} {reasons:?}, latest wake-up {wakes}, {pauses}");
        }
        // The run was not stopped. Other processes may have used the cores; if so, the kernel's figures
        // must show that.
        let paused = reasons.get("client_paused");
        if paused.is_some_and(|text| text.contains("was stopped")) {
            wrong.push(format!("{load}: {reasons:?} {pauses}\n{}", ended.stdout));
        }
    }
    println!("of {} clean runs: {found:?}", judged.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

lab::measured_tests![a_generator_that_stood_still_is_never_valid, clean_runs_are_not_called_paused];
