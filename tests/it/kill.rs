//! Tests sweeps that are killed or stopped: no committed run is touched, and the same command completes
//! the same set.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use lab::sweeps::{
    Talking, children, end, files, goes_on, honest, lab, names, planned, unchanged, wait_for_attempt, wait_until_gone,
};
use lab::{Lab, Running};

/// Number of runs in the plan.
const RUNS: usize = 5;

/// Starts the program with a failpoint and waits until it has killed itself there; by then, its server has
/// also ended.
fn killed_at(lab: &Lab, failpoint: &str, args: &[&str]) {
    let running = Running::start(lab.command(args).env("SWEEPLINE_FAILPOINT", failpoint));
    let (ended, servers) = end(running);
    assert_eq!(ended.code, None, "not killed at {failpoint}: {}", ended.stderr);
    assert_eq!(servers.len(), 1, "the embedded server of the sweep");
    wait_until_gone(&servers);
}

/// Kills at a point before or after the rename that commits, and resumes. `committed`: runs that exist
/// after the kill; `finished`: runs that the next start commits from sealed attempts without measuring
/// anything.
fn kill_and_go_on(failpoint: &str, committed: usize, finished: usize) {
    let lab = lab();
    killed_at(&lab, failpoint, &["run", "plan.yaml"]);
    let before = files(&lab, "runs");
    assert_eq!(names(&lab, "runs").len(), committed, "{failpoint}");
    lab.ok(&["verify"]);
    let ended = goes_on(&lab, &before);
    let left = RUNS - committed - finished;
    let there = committed + finished;
    assert!(
        ended.stderr.contains(&format!("{left} runs to do ({there} are already done)")),
        "{failpoint}: {}",
        ended.stderr
    );
    assert_eq!(ended.stderr.matches("after an earlier kill").count(), finished, "{failpoint}: {}", ended.stderr);
    assert!(names(&lab, "superseded").is_empty(), "{failpoint}: nothing was measured twice");
}

#[test]
fn a_kill_before_the_commit_costs_one_run() {
    kill_and_go_on("before_seal:2", 1, 0);
    kill_and_go_on("before_run_json:3", 2, 0);
}

#[test]
fn a_kill_around_the_rename_costs_nothing() {
    kill_and_go_on("before_rename:2", 1, 1);
    kill_and_go_on("after_rename:3", 3, 0);
}

#[test]
fn a_kill_around_the_entry_costs_nothing_and_the_next_start_writes_it() {
    for (failpoint, entries) in [("before_entry:2", 1), ("after_entry:2", 2)] {
        let lab = lab();
        killed_at(&lab, failpoint, &["run", "plan.yaml"]);
        assert_eq!((names(&lab, "runs").len(), names(&lab, "inventory").len()), (2, entries), "{failpoint}");
        lab.ok(&["verify"]);
        let ended = goes_on(&lab, &files(&lab, "runs"));
        assert!(ended.stderr.contains("3 runs to do (2 are already done)"), "{failpoint}: {}", ended.stderr);
        assert_eq!(names(&lab, "inventory").len(), RUNS, "{failpoint}");
        assert!(names(&lab, "superseded").is_empty(), "{failpoint}: nothing was measured twice");
    }
}

#[test]
fn a_kill_of_a_replacement_leaves_a_healthy_run_at_every_instant() {
    for (failpoint, aside, finished) in [
        ("before_rename:2", 1, 1),
        ("between_exchange_and_supersede:2", 1, 1),
        ("after_rename:2", 2, 0),
        ("before_entry:2", 2, 0),
        ("after_entry:2", 2, 0),
    ] {
        let lab = lab();
        goes_on(&lab, &files(&lab, "runs"));
        killed_at(&lab, failpoint, &["run", "plan.yaml", "--force"]);
        assert_eq!((names(&lab, "runs").len(), names(&lab, "superseded").len()), (RUNS, aside), "{failpoint}");
        lab.ok(&["verify"]);
        assert!(!lab.ok(&["list"]).stdout.contains("corrupt"), "{failpoint}");
        // The next writer finishes the replacement, and then the entries.
        let ended = lab.run(&["run", "plan.yaml", "--force", "--only", "batch_size == 1"]);
        honest(&ended);
        assert_eq!(ended.stderr.matches("after an earlier kill").count(), finished, "{failpoint}: {}", ended.stderr);
        assert_eq!(names(&lab, "superseded").len(), 3, "{failpoint}");
        let attempts: u64 = lab.runs().values().map(|run| run.json["attempt"].as_u64().unwrap()).sum();
        assert_eq!(attempts, RUNS as u64 + 3, "{failpoint}: two were replaced before, and one now");
        assert!(
            !names(&lab, "attempts").iter().any(|name| lab
                .results()
                .join("attempts")
                .join(name)
                .join("run.json")
                .exists())
        );
        lab.ok(&["verify"]);
    }
}

#[test]
fn a_kill_of_the_first_and_of_the_last_commit() {
    let lab = lab();
    killed_at(&lab, "before_rename", &["run", "plan.yaml"]);
    assert!(names(&lab, "runs").is_empty());
    // The pending rename of the run that was killed first counts as the first rename.
    killed_at(&lab, &format!("after_rename:{RUNS}"), &["run", "plan.yaml"]);
    assert_eq!(names(&lab, "runs").len(), RUNS);
    let ended = goes_on(&lab, &files(&lab, "runs"));
    assert!(ended.stderr.contains("nothing to do"), "{}", ended.stderr);
}

/// Returns numbers from 0 to 1 that never change between test runs (SplitMix64).
fn random(seed: u64) -> f64 {
    let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) as f64 / u64::MAX as f64
}

#[test]
fn a_kill_at_any_instant_loses_nothing() {
    const KILLS: u32 = 20;
    const ROUNDS: u32 = 4;
    let undisturbed = lab();
    let start = Instant::now();
    honest(&undisturbed.run(&["run", "plan.yaml"]));
    let whole = start.elapsed();
    goes_on(&undisturbed, &files(&undisturbed, "runs"));
    // A sweep may be faster than the undisturbed one was, on a machine that is less busy by then. The instants are then
    // earlier in the next round.
    let mut kills = 0;
    for round in 0..ROUNDS {
        let within = whole / 2u32.pow(round);
        kills += killed_within(within, KILLS, &names(&undisturbed, "runs"));
        if kills >= KILLS / 2 {
            return;
        }
    }
    panic!("only {kills} sweeps were killed before they ended");
}

/// Kills `count` sweeps at instants that are spread over this time, and resumes each. Returns how many were still
/// running.
fn killed_within(within: Duration, count: u32, undisturbed: &BTreeSet<String>) -> u32 {
    let next = Mutex::new(0..count);
    let kills = Mutex::new(0);
    // Labs wait more than they compute, so two of them run at a time.
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(at) = next.lock().unwrap().next() else { break };
                    let instant = within.mul_f64((f64::from(at) + random(u64::from(at))) / f64::from(count));
                    let killed = kill_at_and_go_on(instant, undisturbed);
                    *kills.lock().unwrap() += u32::from(killed);
                }
            });
        }
    });
    kills.into_inner().unwrap()
}

/// Kills a sweep this long `after` its start and resumes it; returns whether it was still running.
fn kill_at_and_go_on(after: Duration, undisturbed: &BTreeSet<String>) -> bool {
    let lab = lab();
    let running = lab.start(&["run", "plan.yaml"]);
    // The test varies this instant; it does not wait for anything.
    std::thread::sleep(after);
    let servers = children(running.id());
    running.signal(Signal::KILL);
    let (ended, more) = end(running);
    wait_until_gone(&servers);
    wait_until_gone(&more);
    let before = files(&lab, "runs");
    // At the first instants, there is no results folder yet.
    if lab.results().exists() {
        lab.ok(&["verify"]);
    }
    goes_on(&lab, &before);
    assert_eq!(&names(&lab, "runs"), undisturbed);
    assert!(names(&lab, "superseded").is_empty(), "after {after:?}: nothing was measured twice");
    ended.code.is_none()
}

#[test]
fn a_kill_between_moving_the_old_run_out_and_the_new_one_in_loses_neither() {
    let lab = lab();
    let first = goes_on(&lab, &files(&lab, "runs"));
    assert!(first.stderr.contains("5 runs to do"), "{}", first.stderr);
    let old = files(&lab, "runs");
    killed_at(&lab, "between_supersede_and_rename:2", &["run", "plan.yaml", "--force"]);
    assert_eq!((names(&lab, "runs").len(), names(&lab, "superseded").len()), (RUNS - 1, 2));
    lab.ok(&["verify"]);
    let now = files(&lab, "runs");

    let again = goes_on(&lab, &now);
    assert!(
        again.stderr.contains("after an earlier kill") && again.stderr.contains("nothing to do"),
        "{}",
        again.stderr
    );
    let attempt = |json: &Value| json["attempt"].as_u64().unwrap();
    let attempts: Vec<u64> = lab.runs().values().map(|run| attempt(&run.json)).collect();
    assert_eq!(attempts.iter().filter(|attempt| **attempt == 2).count(), 2, "{attempts:?}");
    // Replaced runs are undamaged in superseded/, under the number of their attempt; all other files
    // are unchanged.
    let replaced = names(&lab, "superseded");
    for (path, bytes) in &old {
        let place = path.strip_prefix(lab.results().join("runs")).unwrap();
        let (run, file) = (place.parent().unwrap().to_str().unwrap(), place.file_name().unwrap());
        let aside = format!("{run}.1");
        let path = if replaced.contains(&aside) {
            lab.results().join("superseded").join(aside).join(file)
        } else {
            path.clone()
        };
        assert!(&std::fs::read(&path).unwrap() == bytes, "{} has changed", path.display());
    }

    let forced = lab.run(&["run", "plan.yaml", "--force"]);
    honest(&forced);
    assert_eq!((names(&lab, "runs").len(), names(&lab, "superseded").len()), (RUNS, 2 + RUNS));
    lab.ok(&["verify"]);
}

/// Two runs, long enough to be interrupted.
const LONGER: &str = "
sweepline: 1
name: longer
seed: 6
endpoints: { demo: { engine: mock, mock: { ttft: 2ms, itl: 1ms, slots: 4 } } }
models: { m: { id: tiny } }
scenarios: { short: { base: B1, output_tokens: 6 } }
phases: { fill: 20ms, stabilize: 20ms, measure: 3s, drain: 5s }
sweeps:
  closed:
    matrix: { endpoint: [demo], model: [m], scenario: [short], batch_size: [1, 2] }
";

/// Whether this test, and so the program, was started to outlive its terminal.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 1
}

#[test]
fn one_signal_abandons_the_run_and_leaves_the_rest() {
    let lab = Lab::real_time();
    lab.write("plan.yaml", LONGER);
    // Under `nohup`, the program ignores the third signal, as it must.
    let last = if ignores_hangup() { Signal::INT } else { Signal::HUP };
    for (count, signal) in [(1, Signal::INT), (2, Signal::TERM), (3, last)] {
        let before = files(&lab, "runs");
        let known = names(&lab, "attempts");
        let running = lab.start(&["run", "plan.yaml"]);
        lab::wait_for("a new attempt", || {
            let new = names(&lab, "attempts").into_iter().find(|name| !known.contains(name))?;
            lab.results().join("attempts").join(new).join("journal.arrow").exists().then_some(())
        });
        running.signal(signal);
        let (ended, servers) = end(running);
        assert_eq!(ended.code, Some(130), "{}", ended.stderr);
        assert!(ended.stderr.contains("2 left to do; the same command continues"), "{}", ended.stderr);
        wait_until_gone(&servers);
        let list = lab.ok(&["list", "--attempts", "--format", "json"]).json();
        let attempts = list["attempts"].as_array().unwrap();
        assert_eq!(attempts.len(), count, "{list}");
        assert!(attempts.iter().all(|attempt| attempt["reason"] == "interrupted"), "{list}");
        assert_eq!(files(&lab, "runs"), before, "nothing was committed");
    }
    goes_on(&lab, &files(&lab, "runs"));
    assert_eq!(names(&lab, "attempts").len(), 3, "abandoned attempts are kept for inspection");
}

#[test]
fn a_sweep_that_is_to_outlive_its_terminal_does() {
    let lab = Lab::real_time();
    lab.write("plan.yaml", LONGER);
    // This is the situation under `nohup`.
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" run plan.yaml"]).arg(lab::program()).current_dir(lab.path());
    let running = lab::Running::start(command.stdin(std::process::Stdio::null()));
    wait_for_attempt(&lab);
    running.signal(Signal::HUP);
    let ended = running.end();
    // The exit code is not 130; a busy machine may make a run invalid.
    assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
    assert_eq!(names(&lab, "runs").len(), 2);
}

#[test]
fn a_signal_between_runs_keeps_what_is_committed() {
    let lab = lab();
    let running = lab.start(&["run", "plan.yaml"]);
    lab::wait_for("a committed run", || (!names(&lab, "runs").is_empty()).then_some(()));
    running.signal(Signal::INT);
    let before = files(&lab, "runs");
    let (ended, servers) = end(running);
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    wait_until_gone(&servers);
    unchanged(&before, &files(&lab, "runs"));
    let left = RUNS - names(&lab, "runs").len();
    assert!(left > 0, "the sweep was stopped before its end");
    let ended = goes_on(&lab, &files(&lab, "runs"));
    assert!(ended.stderr.contains(&format!("short: {left} run")), "{}", ended.stderr);
}

#[test]
fn a_second_signal_ends_at_once() {
    // A server that accepts connections and never responds: a probe waits for it.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let lab = lab();
    let url = format!("url: http://{}/v1, engine: vllm", silent.local_addr().unwrap());
    lab.write("silent.yaml", &lab::sweeps::PLAN.replace("engine: mock, mock: { ttft: 2ms, itl: 1ms, slots: 4 }", &url));
    for (first, second) in [(Signal::INT, Signal::INT), (Signal::TERM, Signal::INT)] {
        let program = Talking::start(&mut lab.command(&["run", "silent.yaml"]), lab.path().join("stderr"));
        let _connection = silent.accept().unwrap();
        program.signal(first);
        program.wait_to_say("stopping");
        program.signal(second);
        assert_eq!(program.end(), Some(130));
    }
    assert!(names(&lab, "runs").is_empty());
}

#[test]
fn a_killed_attempt_is_listed_and_never_a_result() {
    let lab = lab();
    lab.write("longer.yaml", LONGER);
    let running = lab.start(&["run", "longer.yaml"]);
    let attempt = wait_for_attempt(&lab);
    running.signal(Signal::KILL);
    end(running);
    assert!(lab.ok(&["list", "--attempts"]).stdout.contains(&format!("attempt {attempt}: not finished")));
    assert_eq!(lab.ok(&["export", "--format", "json"]).json(), serde_json::json!([]));
    let states = lab.ok(&["preview", "longer.yaml", "--format", "json"]).json();
    assert!(states["runs"].as_array().unwrap().iter().all(|run| run["state"] == "new"), "{states}");
    assert_eq!(planned(&lab, "longer.yaml").len(), 2);
}
