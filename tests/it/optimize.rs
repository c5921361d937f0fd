//! Tests the search for the best settings of a server, with short runs of all settings and longer runs of
//! those that may be best, each on a server that was started with these settings.

use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::process::Signal;
use serde_json::Value;

use lab::choices::{choice, decides_the_same_wherever_it_is_cut, plan};
use lab::sweeps::{end, honest, names, wait_until_gone};
use lab::{Ended, Lab, wait_for};

fn starts(ended: &Ended) -> usize {
    ended.stderr.lines().filter(|line| line.starts_with("m: starting ")).count()
}

#[test]
fn settings_that_are_worse_have_a_short_run_and_alike_ones_are_said_to_be_so() {
    let lab = Lab::new();
    lab.write("plan.yaml", &plan("optimize: { for: output_throughput, budget: 1m }"));
    let before = choice(&lab);
    assert_eq!((&before["chooses"], &before["most_runs"]), (&"optimize".into(), &10.into()), "{before:#}");
    let text = lab.ok(&["preview", "plan.yaml"]).stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("3 settings for output_throughput, windows of 500ms, 1500ms, at most 10 runs and 1m"),
        "{text}"
    );
    let ended = lab.run(&["run", "plan.yaml", "--progress", "plain"]);
    honest(&ended);
    let after = choice(&lab);
    let standing = after["standing"].as_str().unwrap();
    assert!(after["next"].is_null() && after["finished"].as_array().unwrap().len() <= 5, "{after:#}");
    let settings = after["settings"].as_array().unwrap();
    let of = |at: usize, key: &str| settings[at][key].as_f64().unwrap();
    assert_eq!(of(0, "runs"), 1.0, "eight times slower, so it is not run again: {after:#}");
    // The servers are measured in real time, so a busy machine narrows the gap.
    let factor = if lab::is_whole() { 4.0 } else { 2.0 };
    assert!(of(1, "low") > factor * of(0, "high"), "{after:#}");
    // It is a matter of chance which of two equal settings looks better.
    let is_named = standing.contains("slots=8 with ") || standing.contains("slots=16 with ");
    assert!(is_named && !standing.contains("slots=1 with "), "{standing}");
    // There is one start for each setting, plus one if the other of the two has a longer run, because the
    // last server keeps running.
    let expected = if after["finished"].as_array().unwrap().len() == 5 { 4 } else { 3 };
    assert_eq!(starts(&ended), expected, "{}", ended.stderr);
    let why = lab.ok(&["why", "flags", "--plan", "plan.yaml", "--format", "json"]).json();
    lab.follows("why", &why);
    let trials = why["choices"][0]["trials"].as_array().unwrap();
    let ids = |all: &Value, key: &str| -> Vec<String> {
        let id = |of: &Value| if key.is_empty() { of.clone() } else { of[key].clone() };
        all.as_array().unwrap().iter().map(|of| id(of).as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&why["choices"][0]["trials"], "run"), ids(&after["finished"], ""), "{why:#}");
    assert_eq!((&trials[0]["settings"], &trials[0]["became"]), (&"slots=1".into(), &"left_out".into()), "{why:#}");
    let last = trials.last().unwrap();
    assert!(["best", "undecided", "left_out"].iter().any(|became| last["became"] == *became), "{why:#}");
    assert!(trials.iter().all(|trial| trial["value"].is_f64() && trial["unit"] == "tokens/s"), "{why:#}");
    let told = lab.ok(&["why", trials[0]["run"].as_str().unwrap(), "--plan", "plan.yaml"]).stdout;
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("step 1 of the optimize flags · ") && told.contains("rung 1, slots=1: "), "{told}");
    let told = lab.ok(&["why", "flags", "--plan", "plan.yaml"]).stdout;
    assert!(told.contains("rung  window") && told.contains("excluded"), "{told}");
    let curves = lab.ok(&["curves", "plan.yaml"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(curves.contains("in this order: rung 1, slots=1: "), "{curves}");
    lab.ok(&["report", "plan.yaml", "-o", "report.html"]);
    let page = std::fs::read_to_string(lab.path().join("report.html")).unwrap();
    assert!(page.contains("The path of flags · ") && page.contains("excluded"), "the report lists its runs");
    let runs: Vec<String> =
        after["finished"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()[..16].to_owned()).collect();
    assert_eq!(runs.iter().cloned().collect::<std::collections::BTreeSet<_>>(), names(&lab, "runs"));
    for (short, run) in &lab.runs() {
        let command = run.json["spec"]["endpoint"]["launch"]["command"].as_array().unwrap();
        let at = command.iter().position(|part| part == "--slots").unwrap();
        assert_eq!(
            run.json["spec"]["endpoint"]["server"]["flags.slots"].to_string(),
            command[at + 1].as_str().unwrap(),
            "{short}"
        );
    }
    let again = lab.ok(&["run", "plan.yaml"]);
    assert!(again.stderr.contains("nothing to do") && starts(&again) == 0, "{}", again.stderr);
    decides_the_same_wherever_it_is_cut(&lab);
}

#[test]
fn settings_that_a_server_does_not_start_with_are_none_to_choose() {
    let lab = Lab::new();
    let plan = plan("optimize: { for: output_throughput, budget: 1m }").replace("[1, 8, 16]", "[1, 0, 8]");
    lab.write("plan.yaml", &plan.replace("engine: mock", "engine: mock\n    retries: { runs: 1 }"));
    let ended = lab.run(&["run", "plan.yaml", "--progress", "plain"]);
    assert_eq!(ended.code, Some(3), "a run is given up, the others exist: {}", ended.stderr);
    let after = choice(&lab);
    assert!(after["next"].is_null() && after["finished"].as_array().unwrap().len() == 3, "{after:#}");
    assert!(after["settings"][1]["value"].is_null(), "{after:#}");
    assert!(after["standing"].as_str().unwrap().starts_with("best: slots=8 with "), "{after:#}");
    let why = lab.ok(&["why", "flags", "--plan", "plan.yaml", "--format", "json"]).json();
    let became: Vec<&Value> =
        why["choices"][0]["trials"].as_array().unwrap().iter().map(|trial| &trial["became"]).collect();
    assert_eq!(became, ["left_out", "not_to_choose", "best"], "{why:#}");
    let note = why["choices"][0]["trials"][1]["note"].as_str().unwrap();
    assert!(note.starts_with("given up: "), "{note}");
}

#[test]
fn what_optimize_cannot_be_beside_is_a_mistake_at_its_place() {
    let lab = Lab::new();
    let wrong = |command: &str, sweep: &str, words: &str| {
        lab.write("plan.yaml", &plan(sweep));
        let ended = lab.run(&[command, "plan.yaml"]);
        let told = ended.stderr.clone() + &ended.stdout;
        assert_eq!(ended.code, Some(2), "{told}");
        assert!(told.split_whitespace().collect::<Vec<_>>().join(" ").contains(words), "{words}: {told}");
    };
    let goodput = "optimize: { for: goodput, budget: 2h }";
    wrong(
        "check",
        goodput,
        "`for: goodput` counts good requests, but the plan does not define which requests are good",
    );
    wrong("check", "optimize: { for: cost_per_million, budget: 2h }", "needs a price, but no endpoint has one");
    wrong(
        "check",
        "optimize: { for: output_throughput, budget: 300ms }",
        "a budget of 300ms is less than the duration of one run, 600ms",
    );
    wrong(
        "check",
        "optimize: { for: output_throughput, budget: 1s }",
        "a budget of 1s is less than the time of one run for each of the 3 settings, 1.8s",
    );
    // Settings that a rule excludes are not counted.
    let ruled = plan("optimize: { for: output_throughput, budget: 1s }")
        .replace("16] }", "16] }, exclude: [{ server.slots: 16 }]");
    lab.write("plan.yaml", &ruled);
    let told = lab.run(&["preview", "plan.yaml"]).stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("too short: one run of each of the 2 settings takes 1.2s, not counting"), "{told}");
    wrong(
        "check",
        "optimize: { for: output_throughput, budget: 1h }, repeats: 3",
        "`repeats` has no effect with `optimize`",
    );
    wrong(
        "check",
        "optimize: { for: output_throughput, budget: 1h }, stop: saturated",
        "both decide which runs are executed",
    );
    wrong("check", "optimize: { for: tokens, budget: 1h }", "`tokens`");
    let without = plan("optimize: { for: output_throughput, budget: 1h }").replace(", server.slots: [1, 8, 16]", "");
    lab.write("plan.yaml", &without);
    let told = lab.run(&["check", "plan.yaml"]);
    assert!(told.stderr.contains("the matrix has no `server` axis"), "{}", told.stderr);
}

/// Kills a sweep `SWEEPLINE_KILLS` times, each time at a different instant; the sweep takes a few
/// seconds, including its starts.
#[test]
fn an_optimize_that_is_killed_at_any_instant_decides_what_it_would_have_decided() {
    let lab = Lab::new();
    lab.write("plan.yaml", &plan("optimize: { for: output_throughput, budget: 1m }"));
    let kills = std::env::var("SWEEPLINE_KILLS").map_or(4, |kills| kills.parse().expect("a number of kills"));
    let seed = std::env::var("SWEEPLINE_SEED").map_or(1, |seed| seed.parse().expect("a seed"));
    eprintln!("seed {seed}");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for kill in 0..kills {
        let before = names(&lab, "runs").len();
        let mut running = lab.start(&["run", "plan.yaml", "--progress", "plain"]);
        // Every second kill comes shortly after a commit, while the next run is being chosen and its server
        // started.
        let is_after_commit = kill % 2 == 1;
        if is_after_commit {
            wait_for("a commit", || (running.has_ended() || names(&lab, "runs").len() > before).then_some(()));
        }
        let wait = if is_after_commit { rng.random_range(0..80) } else { rng.random_range(50..1_200) };
        let deadline = Instant::now() + Duration::from_millis(wait);
        wait_for("the instant of the kill", || (running.has_ended() || Instant::now() >= deadline).then_some(()));
        let has_hit = !running.has_ended();
        running.signal(Signal::KILL);
        let (_, children) = end(running);
        wait_until_gone(&children);
        eprintln!("kill {kill} after {wait} ms hit: {has_hit}, {} runs", names(&lab, "runs").len());
    }
    honest(&lab.run(&["run", "plan.yaml"]));
    lab.ok(&["verify"]);
    let after = choice(&lab);
    let finished = after["finished"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()[..16].to_owned());
    assert!(after["next"].is_null(), "{after:#}");
    assert_eq!(finished.collect::<std::collections::BTreeSet<_>>(), names(&lab, "runs"), "nothing else was run");
    decides_the_same_wherever_it_is_cut(&lab);
}

#[test]
fn the_best_settings_meet_the_objective_and_what_is_not_shown_is_said() {
    let lab = Lab::new();
    // A response takes 145 ms or 185 ms. With the faster setting, users wait longer for the first token
    // than promised.
    let plan = plan("optimize: { for: output_throughput, budget: 1m }")
        .replace("server.slots: [1, 8, 16]", "server.ttft: [5ms, 110ms], server.itl: [5ms, 26ms]")
        .replace("--ttft, 5ms, --itl, 2ms", "--slots, '64'")
        .replace("batch_size: 8, ", "batch_size: 4, ")
        .replace("server.itl: [5ms, 26ms] }", "server.itl: [5ms, 26ms] }, exclude: [{ server.ttft: 5ms, server.itl: 5ms }, { server.ttft: 110ms, server.itl: 26ms }]")
        .replace("sweeps:", "slo: { ttft: { p50: 60ms } }\nsweeps:");
    lab.write("plan.yaml", &plan);
    honest(&lab.run(&["run", "plan.yaml"]));
    let after = choice(&lab);
    let standing = after["standing"].as_str().unwrap();
    assert!(standing.contains("ttft=5ms itl=26ms with "), "{standing}");
    let answer = standing.split("; ").next().unwrap();
    let is_first = answer.starts_with("best: ttft=5ms") || answer.starts_with("undecided between ttft=5ms");
    assert!(is_first && standing.contains("; ttft=110ms itl=5ms misse"), "{standing}");
    let settings = after["settings"].as_array().unwrap();
    let of =
        |name: &str| settings.iter().find(|setting| setting["settings"].as_str().unwrap().starts_with(name)).unwrap();
    assert!(["shown", "seems"].iter().any(|meets| of("ttft=5ms")["meets"] == *meets), "{after:#}");
    assert!(["misses", "seems_not"].iter().any(|meets| of("ttft=110ms")["meets"] == *meets), "{after:#}");
    decides_the_same_wherever_it_is_cut(&lab);
}
