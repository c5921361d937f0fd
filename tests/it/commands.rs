//! Tests that every command and every flag has an effect: exit codes, text on stdout and stderr,
//! JSON.

mod cases;
mod datasets;
mod plans;
mod results;
mod running;

use std::collections::BTreeSet;
use std::process::Stdio;

use jiff::Timestamp;
use serde_json::Value;

use cases::Case;
use lab::reserved::ReservedPort;
use lab::{Lab, Run, Server, wait_for};

/// A plan with two endpoints, each with its own server, that is short enough to be run.
const PLAN: &str = "sweepline: 1
name: commands
endpoints:
  a: { engine: mock, mock: { ttft: 1ms, itl: 1ms } }
  b: { engine: mock, mock: { ttft: 1ms, itl: 1ms } }
models: { m: { id: tiny } }
scenarios: { s: { base: B1, output_tokens: 4 } }
phases: { fill: 20ms, stabilize: 20ms, measure: 150ms, drain: 2s }
validity: { client_late: { suspect: 99%, invalid: 100% }, unsteady: { suspect: 99% } }
sweeps:
  closed: { matrix: { endpoint: [a, b], model: [m], scenario: [s], batch_size: [1, 2] } }
  open: { matrix: { endpoint: [a], model: [m], scenario: [s], qps: [40, 50.5] }, repeats: 2 }
";

/// A plan with one run that takes only a moment.
const ONE: &str = "sweepline: 1
name: one
endpoints: { demo: { engine: mock, mock: { ttft: 1ms, itl: 1ms } } }
models: { m: { id: tiny } }
scenarios: { s: { base: B1, output_tokens: 4 } }
phases: { fill: 20ms, stabilize: 20ms, measure: 150ms, drain: 2s }
validity: { client_late: { suspect: 99%, invalid: 100% }, unsteady: { suspect: 99% } }
sweeps:
  s: { matrix: { endpoint: [demo], model: [m], scenario: [s], batch_size: [2] } }
";

const BROKEN: &str = "sweepline: 1\nname: broken\nendpoints: {}\nmodels: {}\nsweeps: {}\ntypo: 1\n";

const CIRCLE: &str = "sweepline: 1
name: circle
endpoints: { demo: { engine: mock } }
models: { m: { id: tiny } }
sweeps:
  a: { after: b, matrix: { endpoint: [demo], model: [m], batch_size: [1] } }
  b: { after: c, matrix: { endpoint: [demo], model: [m], batch_size: [2] } }
  c: { after: a, matrix: { endpoint: [demo], model: [m], batch_size: [3] } }
";

/// Returns the commands and subcommands of the program, from its own help.
fn commands(lab: &Lab) -> Vec<String> {
    let names = listed(&lab.ok(&["--help"]).stdout);
    assert!(names.len() >= 10, "{names:?}");
    let parts = |name: String| {
        let parts = listed(&lab.ok(&[&name, "--help"]).stdout);
        let parts: Vec<String> = parts.iter().map(|part| format!("{name} {part}")).collect();
        std::iter::once(name).chain(parts)
    };
    names.into_iter().flat_map(parts).collect()
}

/// Returns the commands that a help text lists, except `help`.
fn listed(help: &str) -> Vec<String> {
    let list = help.split("Commands:\n").nth(1).unwrap_or_default().split("\n\n").next().unwrap_or_default();
    // Continuation lines are indented further.
    let names = list.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).map(str::to_owned);
    names.filter(|name| !name.is_empty() && name != "help").collect()
}

/// Returns the help of a command.
fn help(lab: &Lab, command: &str) -> String {
    lab.ok(&command.split(' ').chain(["--help"]).collect::<Vec<_>>()).stdout
}

/// Returns the long flags of a command, from its own help.
fn flags(lab: &Lab, command: &str) -> Vec<String> {
    let help = help(lab, command);
    let flag = |line: &str| {
        let line = line.trim_start();
        let line = if line.starts_with('-') && !line.starts_with("--") { line.split_once(", ")?.1 } else { line };
        let name = line.strip_prefix("--")?;
        Some(name.split([' ', '.', '[']).next()?.to_owned())
    };
    let names = help.lines().filter_map(flag);
    names.filter(|name| !["help", "version"].contains(&name.as_str())).collect()
}

/// Returns the text of every test in a folder of the repository.
fn sources(folder: &str) -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let rust = files.filter(|path| path.extension().is_some_and(|ending| ending == "rs"));
    rust.map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// Returns the command of a command line.
fn command_of<'c>(line: &str, commands: &'c [String]) -> &'c str {
    let begins = |command: &&String| format!("{line} ").starts_with(&format!("{command} "));
    // A subcommand is longer than its command.
    let command = commands.iter().filter(begins).max_by_key(|command| command.len());
    command.unwrap_or_else(|| panic!("`{line}` is not in --help"))
}

/// Returns the long flags in a part of a command line, each after its command.
fn flags_in(part: &str, command: &str) -> Vec<String> {
    let flags = part.split_whitespace().filter(|word| word.starts_with("--") && word.len() > 2);
    flags.map(|flag| format!("{command} {flag}")).collect()
}

/// Returns the cases of all files.
fn all_cases() -> impl Iterator<Item = &'static Case> {
    let groups = [results::CASES, plans::CASES, running::CASES, datasets::CASES];
    groups.into_iter().flatten().copied().flatten()
}

/// Every command, and every flag after its command, has a case. The flags of `mock` have tests instead.
#[test]
fn every_command_and_flag_has_a_case() {
    let lab = Lab::new();
    let commands = commands(&lab);
    let (mut shown, mut used) = (BTreeSet::new(), BTreeSet::new());
    for case in all_cases() {
        let command = command_of(case.line, &commands);
        shown.insert(command.to_owned());
        shown.extend(flags_in(case.flag, command));
        used.extend(flags_in(case.line, command));
    }
    // `lab::mock` starts each mock with a log, which its tests read.
    let of_mock = [include_str!("commands.rs"), include_str!("request_times.rs"), include_str!("../lab/mock.rs")];
    let of_mock = sources("tests/it/mock") + &of_mock.concat();
    let mut offered = BTreeSet::new();
    for command in &commands {
        let is_group = commands.iter().any(|other| other.starts_with(&format!("{command} ")));
        if !is_group {
            offered.insert(command.clone());
        }
        for flag in flags(&lab, command) {
            offered.insert(format!("{command} --{flag}"));
            let is_tested = of_mock.contains(&format!("\"--{flag}\"")) || of_mock.contains(&format!("\"--{flag}="));
            if command == "mock" && is_tested {
                shown.extend([command.clone(), format!("mock --{flag}")]);
            }
        }
    }
    let missing: Vec<&String> = offered.difference(&shown).collect();
    assert!(missing.is_empty(), "no case shows what these do: {missing:#?}");
    used.extend(shown);
    let unknown: Vec<&String> = used.difference(&offered).collect();
    assert!(unknown.is_empty(), "cases use what is not in --help: {unknown:#?}");
}

#[test]
fn help_reads_well() {
    let lab = Lab::new();
    insta::assert_snapshot!("help", lab.ok(&["--help"]).stdout);
    for command in commands(&lab) {
        insta::assert_snapshot!(format!("help_{}", command.replace(' ', "_")), help(&lab, &command));
    }
}

/// Returns the runs that a preview with these flags shows, as sweep and cell, without orphans.
fn previewed(lab: &Lab, args: &[&str]) -> Vec<Value> {
    let args: Vec<&str> =
        ["preview", "plan.yaml", "--format", "json"].into_iter().chain(args.iter().copied()).collect();
    let runs = lab.ok(&args).json()["runs"].as_array().unwrap().clone();
    runs.into_iter().filter(|run| run["state"] != "orphan").collect()
}

#[test]
fn only_and_skip_choose_runs() {
    let lab = Lab::new();
    lab.write("plan.yaml", PLAN);
    let all = previewed(&lab, &[]);
    assert_eq!(all.len(), 8);
    let id = all[0]["id"].as_str().unwrap();
    let by_id = format!("id == '{id}'");
    let cases: [(&[&str], usize); 10] = [
        (&["--only", "endpoint == 'a'"], 6),
        (&["--only", "endpoint == 'a' and batch_size >= 2"], 1),
        (&["--only", "batch_size in [1, 2]"], 4),
        // A run that does not have the axis matches neither the expression nor its negation.
        (&["--only", "qps > 1"], 4),
        (&["--only", "qps == 50.5"], 2),
        (&["--only", "sweep == 'open' and repeat == 0"], 2),
        (&["--only", &by_id], 1),
        (&["--skip", "qps > 1"], 4),
        (&["--skip", "endpoint == 'a'"], 2),
        (&["--only", "sweep == 'closed'", "--skip", "endpoint == 'b'"], 2),
    ];
    for (args, count) in cases {
        assert_eq!(previewed(&lab, args).len(), count, "{args:?}");
    }
    for (text, words) in [
        (
            "speed == 1",
            "`speed` is not an axis of this plan; the axes are batch_size, endpoint, id, model, qps, repeat, scenario, sweep",
        ),
        ("qps ==", "--only \"qps ==\": syntax error"),
        ("qps | nofilter", "unknown filter"),
        ("qps = 40", "; write == to compare"),
        ("scenario == s", "put quotes around it, scenario == 's'"),
        ("qps == 999", "no run of this plan matches; the values of qps are "),
        // A run that does not have the axis matches neither the expression nor its negation.
        ("not qps > 1", "no run of this plan matches; the values of qps are "),
    ] {
        for command in ["preview", "run"] {
            let ended = lab.run(&[command, "plan.yaml", "--only", text]);
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{text}");
            assert!(ended.stderr.contains(words), "{text}: {}", ended.stderr);
        }
    }
    assert!(!lab.results().exists(), "a bad expression and a preview write nothing");
    lab.ok(&["run", "plan.yaml", "--only", "sweep == 'closed'", "--skip", "endpoint == 'b' or batch_size == 2"]);
    let run = lab.only_run();
    assert_eq!(
        (&run.json["spec"]["endpoint"]["name"], &run.json["spec"]["load"]["closed"]["batch_size"]),
        (&"a".into(), &1.into())
    );
    // The plan was not edited, and missing results of the open loop do not count as an edit of the
    // closed loop.
    let open = lab.ok(&["preview", "plan.yaml", "--only", "sweep == 'open'"]).stdout;
    assert!(open.contains("never committed") && !open.contains("added"), "{open}");
}

#[test]
fn force_runs_again_and_dry_run_only_says_so() {
    let lab = Lab::new();
    lab.write("plan.yaml", ONE);
    let dry = lab.ok(&["run", "plan.yaml", "--dry-run"]);
    assert!(dry.stdout.contains("never committed") && dry.stderr.is_empty(), "{dry:?}");
    assert!(!lab.results().exists());
    lab.ok(&["run", "plan.yaml"]);
    assert_eq!(lab.only_run().json["attempt"], 1);
    let dry = lab.ok(&["run", "plan.yaml", "--dry-run", "--force"]);
    assert_eq!(dry.stdout, lab.ok(&["preview", "plan.yaml", "--force"]).stdout);
    assert!(dry.stdout.contains("redo") && dry.stdout.contains("forced"), "{}", dry.stdout);
    assert_eq!(lab.only_run().json["attempt"], 1);
    lab.ok(&["run", "plan.yaml", "--force"]);
    assert_eq!(lab.only_run().json["attempt"], 2);
    assert_eq!(std::fs::read_dir(lab.results().join("superseded")).unwrap().count(), 1);
}

#[test]
fn invalid_runs_are_cached_until_they_are_to_be_redone() {
    let lab = Lab::new();
    let server = Server::start(&lab, &["--fault", "empty@every:2"]);
    let url = server.url();
    // The stream is empty; the probe's own generation is not streamed and succeeds.
    let plan = ONE.replace("engine: mock, mock: { ttft: 1ms, itl: 1ms }", &format!("url: \"{url}\""));
    let plan = format!("{plan}environment: ignore\n");
    lab.write("plan.yaml", &plan);
    let first = lab.run(&["run", "plan.yaml"]);
    assert_eq!(first.code, Some(3), "{first:?}");
    assert!(first.stdout.contains("invalid: errors"), "{}", first.stdout);
    assert!(first.stderr.contains("why a run is not valid"), "{}", first.stderr);
    assert!(first.stderr.contains("run plan.yaml --redo invalid"), "the remedy is offered: {}", first.stderr);
    for shown in [&["preview", "plan.yaml"] as &[&str], &["run", "plan.yaml", "--dry-run"]] {
        let shown = lab.ok(&[shown, &["--redo", "invalid"]].concat());
        assert!(shown.stdout.contains("its verdict is invalid"), "{}", shown.stdout);
    }
    let requests = server.requests();
    let again = lab.run(&["run", "plan.yaml"]);
    assert_eq!((again.code, server.requests()), (Some(3), requests), "cached, and still invalid: {again:?}");
    assert!(again.stderr.contains("nothing to do"), "{}", again.stderr);
    let redone = lab.run(&["run", "plan.yaml", "--redo", "invalid"]);
    assert_eq!(redone.code, Some(3));
    assert!(redone.stderr.contains("its verdict is invalid"), "{}", redone.stderr);
    assert_eq!(lab.only_run().json["attempt"], 2);
    // With a more lenient threshold, the run is no longer invalid.
    lab.write("plan.yaml", &plan.replace("validity: {", "validity: { errors: { suspect: 100%, invalid: 100% },"));
    let id = lab.runs().keys().next().unwrap().clone();
    let judged = lab.ok(&["show", &id, "--plan", "plan.yaml"]).stdout;
    assert!(!judged.contains("errors (invalid)"), "{judged}");
    let mild = lab.ok(&["run", "plan.yaml", "--redo", "invalid"]);
    assert!(mild.stderr.contains("nothing to do"), "{}\n{judged}", mild.stderr);
}

fn time(run: &Run, which: &str) -> Timestamp {
    run.json[which].as_str().unwrap().parse().unwrap()
}

/// Returns the committed runs ordered by start, each as endpoint, start and end.
fn intervals(lab: &Lab) -> Vec<(String, Timestamp, Timestamp)> {
    let runs = lab.runs();
    let name = |run: &Run| run.json["spec"]["endpoint"]["name"].as_str().unwrap().to_owned();
    let mut all: Vec<_> = runs.values().map(|run| (name(run), time(run, "started"), time(run, "ended"))).collect();
    all.sort_by_key(|(_, started, _)| *started);
    all
}

const PARALLEL: &str = "sweepline: 1
name: parallel
endpoints:
  a: { engine: mock, RESOURCE mock: { ttft: 1ms, itl: 1ms } }
  b: { engine: mock, RESOURCE mock: { ttft: 1ms, itl: 1ms } }
models: { m: { id: tiny } }
scenarios: { s: { base: B1, output_tokens: 4 } }
phases: { fill: 20ms, stabilize: 20ms, measure: MEASURE, drain: 2s }
between: { cooldown: COOLDOWN }
sweeps:
  s: { matrix: { endpoint: [a, b], model: [m], scenario: [s], batch_size: [1, 2] } }
";

#[test]
fn jobs_overlap_except_on_one_resource() {
    let lab = Lab::new();
    let plan = PARALLEL.replace("RESOURCE ", "").replace("MEASURE", "2s").replace("COOLDOWN", "0s");
    lab.write("apart.yaml", &plan);
    lab.run(&["run", "apart.yaml", "--jobs", "2"]);
    let runs = intervals(&lab);
    assert_eq!(runs.len(), 4);
    let overlap =
        |(_, _, ended): &(String, Timestamp, Timestamp), later: &(String, Timestamp, Timestamp)| later.1 < *ended;
    let pairs: Vec<_> =
        runs.iter().enumerate().flat_map(|(at, one)| runs[at + 1..].iter().map(move |two| (one, two))).collect();
    assert!(
        pairs.iter().any(|(one, two)| one.0 != two.0 && overlap(one, two)),
        "the runs of two endpoints overlap: {runs:?}"
    );
    assert!(
        !pairs.iter().any(|(one, two)| one.0 == two.0 && overlap(one, two)),
        "the runs of one endpoint never overlap: {runs:?}"
    );

    let lab = Lab::new();
    let shared = PARALLEL.replace("RESOURCE", "resource: node,").replace("MEASURE", "200ms").replace("COOLDOWN", "0s");
    lab.write("shared.yaml", &shared);
    lab.run(&["run", "shared.yaml", "--jobs", "2"]);
    let runs = intervals(&lab);
    assert_eq!(runs.len(), 4);
    assert!(runs.windows(2).all(|pair| !overlap(&pair[0], &pair[1])), "{runs:?}");
}

#[test]
fn a_resource_rests_between_runs() {
    let lab = Lab::new();
    let plan = PARALLEL.replace("RESOURCE", "resource: node,").replace("MEASURE", "150ms").replace("COOLDOWN", "700ms");
    // The first endpoint has only one run, and the pause after this run also delays the other
    // endpoint.
    lab.write(
        "plan.yaml",
        &plan
            .replace(
                "sweeps:\n",
                "sweeps:\n  z: { matrix: { endpoint: [a], model: [m], scenario: [s], batch_size: [3] } }\n",
            )
            .replace("endpoint: [a, b]", "endpoint: [b]"),
    );
    lab.run(&["run", "plan.yaml", "--jobs", "2"]);
    let runs = intervals(&lab);
    let names: Vec<&str> = runs.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["a", "b", "b"]);
    for pair in runs.windows(2) {
        let gap = pair[1].1.duration_since(pair[0].2);
        assert!(gap.as_millis() >= 700, "{gap:?} between {pair:?}");
    }
}

#[test]
fn a_sweep_waits_for_those_it_comes_after() {
    let lab = Lab::new();
    let plan = PARALLEL.replace("RESOURCE ", "").replace("MEASURE", "200ms").replace("COOLDOWN", "0s");
    let sweeps = "sweeps:
  late: { after: [middle, early], matrix: { endpoint: [a, b], model: [m], scenario: [s], batch_size: [1] } }
  middle: { after: early, matrix: { endpoint: [b], model: [m], scenario: [s], batch_size: [2] } }
  early: { matrix: { endpoint: [a], model: [m], scenario: [s], batch_size: [3, 4] } }
";
    lab.write("plan.yaml", &format!("{}{sweeps}", plan.split("sweeps:").next().unwrap()));
    lab.run(&["run", "plan.yaml", "--jobs", "4"]);
    let runs = lab.runs();
    let of = |batches: &[u64]| -> Vec<&Run> {
        let batch = |run: &Run| run.json["spec"]["load"]["closed"]["batch_size"].as_u64().unwrap();
        let found: Vec<&Run> = runs.values().filter(|run| batches.contains(&batch(run))).collect();
        assert!(!found.is_empty());
        found
    };
    let (late, middle, early) = (of(&[1]), of(&[2]), of(&[3, 4]));
    let after = |first: &[&Run], second: &[&Run]| {
        let (end, start) =
            (first.iter().map(|run| time(run, "ended")).max(), second.iter().map(|run| time(run, "started")).min());
        assert!(start >= end, "{start:?} is before {end:?}");
    };
    after(&early, &middle);
    after(&middle, &late);
}

/// Returns an address on which nothing listens as long as this process lives.
fn dead_address() -> String {
    let reserved = ReservedPort::of_free();
    let address = format!("http://127.0.0.1:{}/v1", reserved.number);
    std::mem::forget(reserved);
    address
}

#[test]
fn a_dead_endpoint_fails_alone_unless_told_to_fail_fast() {
    let plan = ONE.replace("endpoints: {", &format!("endpoints: {{ dead: {{ url: \"{}\", ready: {{ within: 0s }} }},", dead_address())).replace(
        "sweeps:\n  s: {",
        "sweeps:\n  first: { matrix: { endpoint: [dead], model: [m], scenario: [s], batch_size: [2] } }\n  s: { after: first,",
    );
    let lab = Lab::new();
    lab.write("plan.yaml", &plan);
    let fast = lab.run(&["run", "plan.yaml", "--fail-fast"]);
    assert_eq!(fast.code, Some(6), "{fast:?}");
    assert!(fast.stderr.contains("1 skipped, 1 left to do"), "{}", fast.stderr);
    assert!(lab.runs().is_empty() && fast.stdout.is_empty(), "{fast:?}");
    let quiet = lab.run(&["run", "plan.yaml", "-q"]);
    assert_eq!(quiet.code, Some(6));
    assert!(
        quiet.stderr.contains("dead: ") && quiet.stderr.contains("does not respond"),
        "errors are printed despite the flag: {}",
        quiet.stderr
    );
    assert_eq!(lab.only_run().json["spec"]["endpoint"]["name"], "demo");

    // A server that dies during a run leaves an attempt, which `list --attempts` shows.
    let lab = Lab::new();
    let server = Server::start(&lab, &["--fault", "exit@20"]);
    lab.write(
        "plan.yaml",
        &ONE.replace(
            "engine: mock, mock: { ttft: 1ms, itl: 1ms }",
            &format!("url: \"{}\", ready: {{ within: 0s }}, retries: {{ runs: 0 }}", server.url()),
        ),
    );
    let failed = lab.run(&["run", "plan.yaml"]);
    assert_eq!(failed.code, Some(6), "{failed:?}");
    assert!(failed.stderr.contains("failed: ") && lab.runs().is_empty(), "{}", failed.stderr);
    let list = lab.ok(&["list", "--attempts"]).stdout;
    assert!(list.starts_with("tried ") && list.contains("\nattempt "), "{list}");
    let attempts = lab.ok(&["list", "--attempts", "--format", "json"]).json();
    lab.follows("list", &attempts);
    assert_eq!(attempts["attempts"].as_array().unwrap().len(), 1, "{attempts}");
    let id = attempts["attempts"][0]["attempt"].as_str().unwrap().split('.').next().unwrap().to_owned();
    let why = lab.ok(&["why", &id, "--plan", "plan.yaml"]).stdout;
    assert!(why.contains("new: failed: ") && why.contains("attempt 1 "), "{why}");
}

#[test]
fn results_go_where_they_are_told_to() {
    let lab = Lab::new();
    lab.write("plan.yaml", ONE);
    let ended = lab.ok(&["run", "plan.yaml", "--results", "else/where"]);
    assert!(ended.stderr.contains("--results else/where"), "the suggested command works: {}", ended.stderr);
    assert!(!lab.results().exists() && lab.path().join("else/where/runs").is_dir());
    let id = std::fs::read_dir(lab.path().join("else/where/runs")).unwrap().next().unwrap().unwrap().file_name();
    let id = id.to_str().unwrap();
    for args in [
        &["show", id] as &[&str],
        &["why", id, "--plan", "plan.yaml"],
        &["list"],
        &["preview", "plan.yaml"],
        &["verify"],
        &["export"],
    ] {
        let there = lab.ok(&[args, &["--results", "else/where"]].concat());
        let here = lab.run(args);
        assert_ne!(here.stdout, there.stdout, "{args:?}");
    }
    assert_eq!(lab.run(&["show", id]).code, Some(2), "unknown run");
    // A file is not a folder, and a folder in use is locked.
    lab.write("file", "x");
    let file = lab.run(&["run", "plan.yaml", "--results", "file"]);
    assert_eq!(file.code, Some(5), "{file:?}");
    assert!(file.stderr.contains("file") && !file.stderr.contains("panicked"), "{}", file.stderr);
}

#[test]
fn talk_is_loud_or_quiet() {
    let lab = Lab::new();
    lab.write("plan.yaml", ONE);
    let quiet = lab.ok(&["run", "plan.yaml", "-q"]);
    assert_eq!(quiet.stderr, "");
    assert!(quiet.stdout.contains("verdict"), "the table is printed despite the flag: {}", quiet.stdout);
    let normal = lab.ok(&["run", "plan.yaml", "--force"]);
    let loud = lab.ok(&["run", "plan.yaml", "--force", "--verbose"]);
    let id = lab.runs().keys().next().unwrap().clone();
    let probed = |text: &str| text.contains("demo: 127.0.0.1:") && text.contains("responds");
    assert!(probed(&loud.stderr) && loud.stderr.contains(&format!("batch 2 ({id}) ·")), "{}", loud.stderr);
    assert!(!probed(&normal.stderr) && !normal.stderr.contains(&format!("batch 2 ({id}) ·")), "{}", normal.stderr);
    assert_eq!(lab.run(&["run", "plan.yaml", "-q", "-v"]).code, Some(2), "not both flags");
}

#[test]
fn colour_comes_when_told() {
    let lab = Lab::new();
    lab.write("plan.yaml", ONE);
    lab.write("broken.yaml", BROKEN);
    lab.ok(&["run", "plan.yaml", "-q"]);
    let id = lab.runs().keys().next().unwrap().clone();
    for args in [&["run", "plan.yaml"] as &[&str], &["show", &id], &["check", "broken.yaml"], &["run", "broken.yaml"]] {
        let said = |colour: &[&str]| {
            let ended = lab.run(&[args, colour].concat());
            ended.stdout + &ended.stderr
        };
        assert!(said(&["--color", "always"]).contains("\u{1b}["), "{args:?}");
        assert!(!said(&["--color", "never"]).contains('\u{1b}'), "{args:?}");
        assert!(!said(&["--color", "auto"]).contains('\u{1b}'), "{args:?}: not a terminal");
        assert_eq!(said(&[]), said(&["--color", "auto"]), "{args:?}");
    }
}

#[test]
fn preview_tells_work_by_its_exit_code() {
    let lab = Lab::new();
    lab.write("plan.yaml", ONE);
    assert_eq!(lab.run(&["preview", "plan.yaml", "--exit-code"]).code, Some(10));
    assert_eq!(lab.run(&["preview", "plan.yaml"]).code, Some(0));
    lab.ok(&["run", "plan.yaml"]);
    assert_eq!(lab.run(&["preview", "plan.yaml", "--exit-code"]).code, Some(0));
    assert_eq!(lab.run(&["preview", "none.yaml", "--exit-code"]).code, Some(2));
}

#[test]
fn check_tells_the_mistakes_of_all_plans() {
    let lab = Lab::new();
    lab.write("good.yaml", ONE);
    lab.write("broken.yaml", BROKEN);
    lab.write("circle.yaml", CIRCLE);
    assert!(lab.ok(&["check", "good.yaml"]).stdout.starts_with("good.yaml: ok\n"));
    let all = lab.run(&["check", "broken.yaml", "good.yaml", "circle.yaml", "missing.yaml"]);
    assert!(all.code == Some(2) && all.stdout.starts_with("good.yaml: ok\n"), "{}", all.stdout);
    for words in ["broken.yaml:6:1", "a → b → c → a", "missing.yaml"] {
        assert!(all.stderr.contains(words), "{words}: {}", all.stderr);
    }
    let json = lab.run(&["check", "good.yaml", "circle.yaml", "broken.yaml", "--format", "json"]);
    lab.follows("check", &json.json());
    assert_eq!((json.code, json.stderr.as_str()), (Some(2), ""));
    let mistaken = |json: Value| -> Vec<Value> {
        let all = json["diagnostics"].as_array().unwrap().clone();
        all.iter().filter(|one| one["severity"] == "error").map(|one| one["file"].clone()).collect()
    };
    let files = mistaken(json.json());
    assert!(
        files.contains(&"circle.yaml".into())
            && files.contains(&"broken.yaml".into())
            && !files.contains(&"good.yaml".into())
    );
    let good = lab.ok(&["check", "good.yaml", "--format", "json"]).json();
    assert!(mistaken(good).is_empty());
    for command in ["run", "preview", "graph", "probe"] {
        let ended = lab.run(&[command, "circle.yaml"]);
        assert_eq!(ended.code, Some(2), "{command}");
        assert!(ended.stderr.contains("a → b → c → a") && ended.stdout.is_empty(), "{command}: {ended:?}");
    }
    assert_eq!(lab.run(&["check"]).code, Some(2), "no plan");
    assert_eq!(lab.run(&["nonsense"]).code, Some(2));
}

#[test]
fn graphs_are_drawn() {
    let lab = Lab::new();
    lab.write("plan.yaml", &PLAN.replace("open: {", "open: { after: closed,"));
    let json = lab.ok(&["graph", "plan.yaml", "--format", "json"]).json();
    lab.follows("graph", &json);
    let nodes = json["nodes"].as_array().unwrap();
    let count = |kind: &str| nodes.iter().filter(|node| node["kind"] == kind).count();
    assert_eq!((count("serve"), count("probe"), count("run"), count("gate")), (2, 2, 8, 1), "{json}");
    let gate = nodes.iter().position(|node| node["kind"] == "gate").unwrap();
    let edges: Vec<(usize, usize)> = serde_json::from_value(json["edges"].clone()).unwrap();
    let (into, out) = (edges.iter().filter(|e| e.1 == gate).count(), edges.iter().filter(|e| e.0 == gate).count());
    assert_eq!((into, out), (4, 4), "the gate is between the sweeps");

    let dot = lab.ok(&["graph", "plan.yaml"]).stdout;
    assert_eq!(dot, lab.ok(&["graph", "plan.yaml", "--format", "dot"]).stdout);
    let lines: Vec<&str> = dot.lines().collect();
    assert_eq!((lines[0], *lines.last().unwrap()), ("digraph sweepline {", "}"));
    let is_node = |line: &str| line.starts_with("  n") && line.contains(" [label=\"") && line.ends_with("];");
    let is_edge = |line: &str| {
        let ends = line.trim().trim_end_matches(';').split_once(" -> ");
        ends.is_some_and(|(from, to)| {
            [from, to]
                .iter()
                .all(|end| end.strip_prefix('n').is_some_and(|n| n.parse::<usize>().is_ok_and(|n| n < nodes.len())))
        })
    };
    assert_eq!(lines.iter().filter(|line| is_node(line)).count(), nodes.len());
    assert_eq!(lines.iter().filter(|line| is_edge(line)).count(), edges.len());
    assert_eq!(lines.len(), nodes.len() + edges.len() + 4, "no other lines: {dot}");
    assert!(dot.contains("[label=\"closed has ended\", shape=diamond]"), "{dot}");

    let mermaid = lab.ok(&["graph", "plan.yaml", "--format", "mermaid"]).stdout;
    assert!(mermaid.starts_with("flowchart LR\n") && mermaid.contains("{\"closed has ended\"}"), "{mermaid}");
    assert_eq!(mermaid.matches(" --> ").count(), edges.len());
}

/// The only run of the plan is done in its own results folder and open in another one.
fn what_lies_in_a_folder_is_drawn(lab: &Lab) {
    for (results, state) in [("results", "done"), ("elsewhere", "pending")] {
        let drawn = lab.ok(&["graph", "plan.yaml", "--format", "text", "--results", results]).stdout;
        assert!(drawn.lines().any(|line| line.starts_with(state) && line.contains("repeat=0")), "{drawn}");
    }
}

#[test]
fn readers_answer_in_text_and_json() {
    let lab = Lab::new();
    lab.write("plan.yaml", ONE);
    lab.ok(&["run", "plan.yaml"]);
    what_lies_in_a_folder_is_drawn(&lab);
    let (id, run) = lab.runs().pop_first().unwrap();
    let full = run.json["id"].as_str().unwrap();
    let start = &id[..6];

    let list = lab.ok(&["list"]).stdout;
    assert!(list.contains(&id) && list.contains("batch 2") && list.contains("whole"), "{list}");
    let list = lab.ok(&["list", "--format", "json"]).json();
    lab.follows("list", &list);
    assert_eq!((&list["runs"][0]["id"], &list["runs"][0]["state"]), (&full.into(), &"whole".into()));

    let show = lab.ok(&["show", start]).stdout;
    assert!(show.contains(full) && show.contains("verdict: ") && show.contains("TTFT ms"), "{show}");
    assert!(show.lines().all(|line| line.chars().count() <= 100), "{show}");
    let defined = lab.ok(&["show", start, "--definitions"]).stdout;
    assert!(defined.starts_with(show.trim_end()) && defined.len() > show.len() + 500, "{defined}");
    let json = lab.ok(&["show", &id.to_uppercase(), "--format", "json"]).json();
    lab.follows("show", &json);
    assert_eq!(json["run"]["id"], full);
    assert!(json["metrics"]["ttft_p50_ms"].as_f64().unwrap() > 0.0 && json["verdict"]["state"].is_string(), "{json}");
    let priced = ONE.replace("engine: mock,", "engine: mock, hardware: { price_per_hour: 3600 },");
    lab.write("priced.yaml", &priced);
    let cost = |args: &[&str]| lab.ok(&[&["show", start, "--format", "json"], args].concat()).json()["metrics"].clone();
    let cost_name = "cost_per_million_output_tokens";
    let (bare, priced) = (cost(&[]), cost(&["--plan", "priced.yaml"]));
    let of = |metrics: &Value| {
        metrics.as_object().unwrap().iter().find(|(name, _)| name.starts_with(cost_name)).unwrap().1.clone()
    };
    assert!(of(&bare).is_null() && of(&priced).as_f64().unwrap() > 0.0, "{bare} {priced}");

    let why = lab.ok(&["why", start, "--plan", "plan.yaml"]).stdout;
    assert!(why.contains("cached: committed ") && why.contains("  load.batch_size = 2"), "{why}");
    lab.follows("why", &lab.ok(&["why", "batch_size == 2", "--format", "json"]).json());
    let why = lab.ok(&["why", start, "--plan", "plan.yaml", "--format", "json"]).json();
    lab.follows("why", &why);
    assert_eq!(
        (&why["id"], &why["state"], &why["identity"]["load.batch_size"]),
        (&full.into(), &"cached".into(), &"2".into())
    );

    assert!(lab.ok(&["verify"]).stdout.contains("1 run in results: all whole"));
    assert_eq!(lab.ok(&["verify", "--format", "json"]).json()["runs"][0]["whole"], true);
    // One byte is changed without changing the length, so only the digest reveals it.
    let file = run.dir.join("requests.parquet");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let damaged = lab.run(&["verify"]);
    assert_eq!(damaged.code, Some(5));
    assert!(damaged.stdout.contains(&format!("{id} requests.parquet: ")), "{}", damaged.stdout);
    let damaged = lab.run(&["verify", "--format", "json"]);
    lab.follows("verify", &damaged.json());
    assert_eq!((damaged.code, &damaged.json()["runs"][0]["whole"]), (Some(5), &false.into()));

    let schema = lab.ok(&["schema"]);
    assert_eq!(schema.json()["title"], "sweepline plan");
    assert_eq!(lab.ok(&["schema", "plan"]).stdout, schema.stdout);
    assert!(lab.ok(&["schema", "columns"]).stdout.contains("`scheduled_ns`"));
    for command in [&["show", "ffff"] as &[&str], &["why", "ffff", "--plan", "plan.yaml"]] {
        let ended = lab.run(command);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    }
}

#[test]
fn exports_have_a_row_for_each_run_or_request() {
    let lab = Lab::new();
    lab.write("plan.yaml", ONE);
    lab.write("two.yaml", &ONE.replace("[2]", "[3]").replace("name: one", "name: two"));
    lab.ok(&["run", "plan.yaml"]);
    lab.ok(&["run", "two.yaml"]);
    let requests: usize = lab.runs().values().map(|run| run.records.len()).sum();
    let csv = |args: &[&str]| lab.ok(&[&["export"], args].concat()).stdout.lines().count() - 1;
    assert_eq!(csv(&[]), 2);
    assert_eq!(csv(&["plan.yaml"]), 1, "only the run of the plan");
    assert_eq!(csv(&["--rows", "requests"]), requests);
    let json = lab.ok(&["export", "two.yaml", "--format", "json"]).json();
    assert_eq!((&json[0]["plan"], &json[0]["batch_size"]), (&"two".into(), &3.into()), "{json}");
    let markdown = lab.ok(&["export", "--format", "markdown"]).stdout;
    assert_eq!(markdown.lines().filter(|line| line.starts_with("| ")).count(), 2 + 2, "{markdown}");
    let file = lab.ok(&["export", "--output", "runs.csv"]);
    assert_eq!(
        (file.stdout.as_str(), std::fs::read_to_string(lab.path().join("runs.csv")).unwrap()),
        ("", lab.ok(&["export"]).stdout)
    );
    lab.ok(&["export", "--format", "parquet"]);
    assert!(std::fs::read(lab.results().join("runs.parquet")).unwrap().starts_with(b"PAR1"));
    for (args, told) in [
        (["export", "--results", "nowhere"], "no results folder nowhere"),
        (["export", "--output", "nowhere/x.csv"], "cannot write nowhere/x.csv"),
    ] {
        let refused = lab.run(&args);
        assert!(refused.code == Some(2) && refused.stdout.is_empty() && refused.stderr.contains(told), "{refused:?}");
    }
    let refused = lab.run(&["export", "--format", "parquet", "--rows", "requests"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("-o FILE"), "{}", refused.stderr);
    lab.ok(&["export", "--rows", "requests", "-o", "requests.parquet"]);
    assert!(std::fs::read(lab.path().join("requests.parquet")).unwrap().starts_with(b"PAR1"));
}

#[test]
fn probes_tell_what_servers_say() {
    let lab = Lab::new();
    let server = Server::start(&lab, &["--model", "tiny"]);
    let endpoint = format!("endpoints: {{ live: {{ url: \"{}\" }},", server.url());
    let plan = ONE.replace("endpoints: {", &endpoint).replace("[demo]", "[demo, live]");
    lab.write("plan.yaml", &plan);
    let text = lab.ok(&["probe", "plan.yaml"]).stdout;
    assert!(
        text.contains("live: ready; server ") && text.contains("lists tiny") && text.contains("demo: embedded"),
        "{text}"
    );
    let json = lab.ok(&["probe", "plan.yaml", "--format", "json"]).json();
    lab.follows("probe", &json);
    assert_eq!((&json["endpoints"][0]["state"], &json["endpoints"][0]["models"][0]), (&"ready".into(), &"tiny".into()));
    assert_eq!(json["endpoints"][1]["state"], "embedded");
    let before = server.requests();
    lab.ok(&["preview", "plan.yaml", "--format", "json"]);
    assert_eq!(server.requests(), before, "a preview sends no requests");
    let preview = lab.ok(&["preview", "plan.yaml", "--probe", "--format", "json"]).json();
    assert_eq!((preview["runs"].as_array().unwrap().len(), &preview["endpoints"][0]["state"]), (2, &"ready".into()));
    assert!(server.requests() > before, "it does with --probe");

    lab.write("plan.yaml", &plan.replace(&server.url(), &dead_address()));
    for args in [&["probe", "plan.yaml"] as &[&str], &["preview", "plan.yaml", "--probe"]] {
        let ended = lab.run(args);
        assert_eq!(ended.code, Some(6), "{ended:?}");
        assert!(
            ended.stdout.contains("live: not ready: ") && ended.stdout.contains("does not respond"),
            "{}",
            ended.stdout
        );
    }
    lab.write("plan.yaml", &plan.replace("id: tiny", "id: huge"));
    let unknown = lab.run(&["probe", "plan.yaml"]);
    assert_eq!(unknown.code, Some(2), "the plan must be edited");
    assert!(unknown.stdout.contains("does not have the model `huge`; it lists tiny"), "{}", unknown.stdout);
}

#[test]
fn a_finished_plan_sends_nothing() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let plan = ONE.replace("engine: mock, mock: { ttft: 1ms, itl: 1ms }", &format!("url: \"{}\"", server.url()));
    // Otherwise `run` would request the version of a server that reported one when it was measured.
    lab.write("plan.yaml", &format!("{plan}environment: ignore\n"));
    let first = lab.ok(&["run", "plan.yaml"]);
    let sent = server.requests();
    assert!(sent > 10);
    for args in
        [&["run", "plan.yaml"] as &[&str], &["preview", "plan.yaml"], &["check", "plan.yaml"], &["graph", "plan.yaml"]]
    {
        lab.ok(args);
    }
    assert_eq!(server.requests(), sent, "not even a GET");
    drop(server);
    let again = lab.ok(&["run", "plan.yaml"]);
    assert_eq!(again.stdout, first.stdout, "without a server");
    assert!(
        again.stderr.contains("one: nothing to do; the result of the one run is in results; no request was sent"),
        "{}",
        again.stderr
    );
}

#[test]
fn the_mock_listens_where_it_is_told_to() {
    let lab = Lab::new();
    let server = Server::start(&lab, &["--bind", "127.0.0.2"]);
    assert!(server.url().starts_with("http://127.0.0.2:"), "{}", server.url());
    assert_eq!(server.requests(), 0, "the server responds, but gets no requests");
    // The port has just been released, on an address that no other test uses.
    let url = server.url();
    let port = url.trim_end_matches("/v1").rsplit(':').next().unwrap().to_owned();
    drop(server);
    let again = Server::start(&lab, &["--bind", "127.0.0.2", "--port", &port]);
    assert_eq!(again.url(), url);
}

/// The kernel gives each connection to one of the mocks. With a new connection for each of 40 requests, the
/// probability that all go to the same mock is 2^-39.
#[test]
fn mocks_that_share_a_port_share_its_connections() {
    let [lab, second] = [Lab::new(), Lab::new()];
    let one = Server::start(&lab, &["--reuse-port"]);
    let port = one.url().trim_end_matches("/v1").rsplit(':').next().unwrap().to_owned();
    let other = Server::start(&second, &["--reuse-port", "--port", &port]);
    assert_eq!(one.url(), other.url());
    let alone = lab.run(&["mock", "--port", &port]);
    assert!(alone.code == Some(1) && alone.stderr.contains("cannot listen on"), "{alone:?}");
    let measured = "measure: { for: 150ms, min_requests: 40, at_most: 10s }";
    let plan = ONE.replace("engine: mock, mock: { ttft: 1ms, itl: 1ms }", &format!("url: '{}'", one.url()));
    lab.write(
        "plan.yaml",
        &plan
            .replace("measure: 150ms", measured)
            .replace("batch_size: [2] }", "batch_size: [2] }, connections: per_request"),
    );
    lab.ok(&["run", "plan.yaml", "-q"]);
    for log in [&lab, &second].map(|lab| lab.path().join("server.jsonl")) {
        wait_for("a chat request in each log", || {
            std::fs::read_to_string(&log).ok().filter(|text| text.contains("/v1/chat/completions"))
        });
    }
}

#[test]
fn embedded_servers_are_gone_with_their_runs() {
    let lab = Lab::new();
    let path = lab.path().join("the-program");
    // A copy of the program under a different name, which distinguishes its processes from those of
    // other tests.
    std::fs::copy(env!("CARGO_BIN_EXE_sweepline"), &path).unwrap();
    lab.write("plan.yaml", ONE);
    // A process that another test starts at this moment holds the copy open for writing until it executes its program.
    let output = wait_for("the copy to be closed", || {
        match std::process::Command::new(&path).args(["run", "plan.yaml"]).current_dir(lab.path()).output() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => None,
            other => Some(other.unwrap()),
        }
    });
    assert!(output.status.success(), "{output:?}");
    let of_this = |entry: std::io::Result<std::fs::DirEntry>| {
        let exe = std::fs::read_link(entry.ok()?.path().join("exe")).ok()?;
        (exe == path).then_some(exe)
    };
    assert_eq!(std::fs::read_dir("/proc").unwrap().filter_map(of_this).count(), 0);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let lab = Lab::new();
    lab.write("plan.yaml", ONE);
    lab.write("broken.yaml", BROKEN);
    lab.ok(&["run", "plan.yaml"]);
    let id = lab.runs().keys().next().unwrap().clone();
    for args in [
        &["run", "plan.yaml"] as &[&str],
        &["preview", "plan.yaml"],
        &["preview", "plan.yaml", "--format", "json"],
        &["check", "plan.yaml"],
        &["graph", "plan.yaml"],
        &["why", &id, "--plan", "plan.yaml"],
        &["show", &id],
        &["list"],
        &["export"],
        &["export", "--rows", "requests", "--format", "json"],
        &["probe", "plan.yaml"],
        &["verify"],
        &["schema", "columns"],
        &["run", "--help"],
    ] {
        let mut child = lab.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(0), "{args:?}: {stderr}");
        assert!(!stderr.contains("panicked") && !stderr.contains("Broken pipe"), "{args:?}: {stderr}");
    }
    for args in [&["check", "broken.yaml"] as &[&str], &["run", "broken.yaml"], &["show", "ffff"]] {
        let mut child = lab.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stderr.take());
        assert_eq!(child.wait().unwrap().code(), Some(2), "{args:?}: the exit code is unaffected by a closed stderr");
    }
}
