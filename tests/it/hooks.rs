//! Tests the hooks of a plan: their input, their order, the effect of their failures, and their
//! records.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;
use serde_json::{Value, json};

use lab::mock::Mock;
use lab::{Ended, Lab, Running, wait_for};

/// The program, as a command in a plan.
const SWEEPLINE: &str = "sweepline";

/// Marks every process that a lab's hooks start, because the variable is inherited.
const MARK: &str = "SWEEPLINE_TEST_HOOKS";

const EMBEDDED: &str = "engine: mock, mock: { ttft: 5ms, itl: 1ms }";

/// Returns a plan whose endpoint `m` has these fields; `axes` and `repeats` belong to its only sweep.
fn plan(endpoint: &str, axes: &str, repeats: u32) -> String {
    format!(
        "\
sweepline: 1
name: hooked
endpoints:
  m: {{ {endpoint} }}
models: {{ tiny: {{ id: mock }} }}
scenarios: {{ short: {{ base: B1, output_tokens: 8 }} }}
phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 200ms }}, drain: 10s }}
validity: {{ client_late: {{ suspect: 100%, invalid: 100% }} }}
sweeps:
  s: {{ matrix: {{ {axes} }}, repeats: {repeats} }}
"
    )
}

/// Returns a plan for an embedded mock with these hooks and one run.
fn hooked(hooks: &str) -> String {
    plan(&format!("{EMBEDDED}, hooks: {{ {hooks} }}"), "batch_size: 1", 1)
}

fn lab(plan: &str) -> Lab {
    let lab = Lab::new();
    lab.write("plan.yaml", plan);
    lab
}

/// Writes a program into the lab's folder.
fn program(lab: &Lab, name: &str, lines: &str) {
    let path = lab.write(name, &format!("#!/bin/sh\n{lines}\n"));
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn run(lab: &Lab) -> Ended {
    Ended::from(lab.command(&["run", "plan.yaml"]).env(MARK, lab.path()).output().unwrap())
}

/// Returns the point, the command and the outcome of each recorded hook.
fn hooks(run: &Value) -> Vec<(String, String, String)> {
    let hooks = run["facts"]["hooks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |hook: &Value, key: &str| hook[key].as_str().unwrap().to_owned();
    hooks.iter().map(|hook| (text(hook, "when"), text(hook, "what"), text(hook, "outcome"))).collect()
}

/// Returns `run.json` of the only run.
fn only(lab: &Lab) -> Value {
    lab.only_run().json
}

/// Returns the live processes that the hooks of a lab started.
fn left(lab: &Lab) -> Vec<String> {
    let wanted = format!("{MARK}={}", lab.path().display());
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let of = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
        let is_ours = of("environ").split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes());
        let stat = String::from_utf8_lossy(&of("stat")).into_owned();
        let is_zombie = stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'));
        if is_ours && !is_zombie {
            found.push(String::from_utf8_lossy(&of("cmdline")).replace('\0', " "));
        }
    }
    found
}

#[test]
fn hooks_happen_around_runs_and_cells_and_are_told_their_circumstances() {
    let lab = lab(&plan(
        &format!(
            "{EMBEDDED}, hooks: {{ before_cell: {{ command: [./note.sh, '{{{{ model.id }}}}'] }}, before_run: [{{ command: [./note.sh] }}, {{ request: POST /reset_prefix_cache }}], after_run: {{ command: [./note.sh, a b] }}, after_cell: {{ command: [./note.sh] }} }}"
        ),
        "batch_size: [1, 2]",
        2,
    ));
    program(
        &lab,
        "note.sh",
        r#"echo "$SWEEPLINE_HOOK $SWEEPLINE_AXES $SWEEPLINE_REPEAT $SWEEPLINE_RUN_ID $SWEEPLINE_ENDPOINT $SWEEPLINE_SWEEP $SWEEPLINE_URL|$*" | tee -a notes"#,
    );
    lab.ok(&["run", "plan.yaml"]);
    let notes = fs::read_to_string(lab.path().join("notes")).unwrap();
    let mut seen: Vec<Vec<String>> = Vec::new();
    for line in notes.lines() {
        let (told, arguments) = line.split_once('|').unwrap();
        let told: Vec<&str> = told.split(' ').collect();
        let axes: Value = serde_json::from_str(told[1]).unwrap();
        let runs = lab.runs();
        let run = &runs.values().find(|run| run.json["id"] == told[3]).unwrap().json;
        assert_eq!(run["spec"]["load"]["closed"]["batch_size"], axes["batch_size"], "{line}");
        assert_eq!((told[4], told[5], axes["endpoint"].as_str()), ("m", "s", Some("m")));
        assert!(told[6].starts_with("http://127.0.0.1:") && told[6].ends_with("/v1"), "{line}");
        assert_eq!(run["spec"]["repeat"].to_string(), told[2]);
        let expected = match told[0] {
            "before_cell" => "mock",
            "after_run" => "a b",
            _ => "",
        };
        assert_eq!(arguments, expected);
        seen.push([told[3], told[0]].map(str::to_owned).to_vec());
    }
    // Each of the four runs has two hooks, and so does each of the two cells.
    let of = |point: &str| seen.iter().filter(|entry| entry[1] == point).count();
    assert_eq!(["before_cell", "before_run", "after_run", "after_cell"].map(of), [2, 4, 4, 2], "{notes}");
    // In the order of execution, a cell's hooks come right before its first run and right after its last
    // one.
    for pair in seen.windows(2) {
        if pair[0][1] == "before_cell" {
            assert_eq!((&pair[1][0], pair[1][1].as_str()), (&pair[0][0], "before_run"));
        }
        if pair[1][1] == "after_cell" {
            assert_eq!((&pair[0][0], pair[0][1].as_str()), (&pair[1][0], "after_run"));
        }
    }
    for run in lab.runs().values() {
        let (hooks, recorded) = (hooks(&run.json), &run.json["facts"]["hooks"]);
        let has = |when: &str, what: &str| hooks.contains(&(when.to_owned(), what.to_owned(), "ok".to_owned()));
        assert!(has("before_run", "POST /reset_prefix_cache") && has("after_run", "./note.sh 'a b'"), "{hooks:?}");
        let last = &recorded[hooks.len() - 1];
        assert_eq!((&last["exit_code"], last["took_ns"].as_u64() > Some(0)), (&json!(0), true), "{last}");
        assert!(last["output"].as_str().unwrap().contains(" m s http://"), "{last}");
    }
}

#[test]
fn a_hook_that_fails_before_a_run_ends_its_attempt_and_the_others_go_on() {
    let hooks = "before_run: [{ command: [./begin.sh, \"{{ model.name }}\"] }, { command: [./never.sh] }], after_run: { command: [./after.sh] }";
    let lab = lab(&plan(&format!("{EMBEDDED}, hooks: {{ {hooks} }}"), "batch_size: [1, 2]", 1));
    program(
        &lab,
        "begin.sh",
        r#"echo "setting $1"; case "$SWEEPLINE_AXES" in *'"batch_size":2'*) echo "no such clock" >&2; exit 3;; esac"#,
    );
    program(&lab, "never.sh", "echo $SWEEPLINE_AXES >> second");
    program(&lab, "after.sh", "echo $SWEEPLINE_AXES >> after");
    let ended = run(&lab);
    assert_eq!(ended.code, Some(6), "{}{}", ended.stdout, ended.stderr);
    let failed: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("failed: ")).collect();
    assert!(
        failed.len() == 1
            && failed[0]
                .contains("the before_run hook `./begin.sh '{{ model.name }}'` failed: exit code 3; its last lines:"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("\n  setting tiny\n  no such clock\n"), "{}", ended.stderr);
    assert_eq!(only(&lab)["spec"]["load"]["closed"]["batch_size"], 1);
    // The hook after the failed one was skipped; the hooks at the end of a run were called for both.
    let lines = |name: &str| fs::read_to_string(lab.path().join(name)).unwrap().lines().count();
    assert_eq!((lines("second"), lines("after")), (1, 2));
    program(&lab, "begin.sh", "true");
    let ended = run(&lab);
    assert_eq!((ended.code, lab.runs().len()), (Some(0), 2), "{}", ended.stderr);
}

#[test]
fn a_hook_that_fails_after_a_run_makes_it_suspect() {
    let lab = lab(&hooked("after_run: [{ command: [./collect.sh] }, { command: [./more.sh] }]"));
    program(&lab, "collect.sh", "seq 1 2000; echo 'disk full'; exit 1");
    program(&lab, "more.sh", "kill -9 $$");
    let ended = run(&lab);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("suspect: hook_failed"), "{}", ended.stdout);
    let json = only(&lab);
    let recorded = &json["facts"]["hooks"];
    assert_eq!((&recorded[0]["exit_code"], recorded[0]["outcome"].as_str()), (&json!(1), Some("failed")));
    let output = recorded[0]["output"].as_str().unwrap();
    assert!(output.len() <= 2048 && output.len() > 2000 && output.ends_with("2000\ndisk full"), "{output}");
    assert_eq!((&recorded[1]["detail"], recorded[1].get("exit_code")), (&json!("ended by signal 9"), None));
    let id = json["id"].as_str().unwrap();
    let shown = lab.run(&["show", &id[..12]]);
    for words in [
        "hook_failed (suspect): the after_run hook `./collect.sh` failed: exit code 1; 1 more failed",
        "after_run: ./collect.sh (failed: exit code 1, ",
        "    disk full",
        "after_run: ./more.sh (failed: ended by signal 9, ",
    ] {
        assert!(shown.stdout.contains(words), "{words}\n{}", shown.stdout);
    }
    let exported = lab.run(&["export", "--format", "json"]);
    assert_eq!(exported.json()[0]["hooks_failed"], 2, "{}", exported.stdout);
    // With `on_failure: end`, the same failure leaves no result.
    lab.write(
        "plan.yaml",
        &hooked("after_run: { command: [./collect.sh], on_failure: end }, before_run: { command: ['true'] }"),
    );
    let ended = run(&lab);
    assert_eq!((ended.code, lab.runs().len()), (Some(6), 1), "{}", ended.stderr);
    assert!(ended.stderr.contains("the after_run hook `./collect.sh` failed: exit code 1"), "{}", ended.stderr);
}

#[test]
fn a_failure_before_a_run_can_be_noted_and_without_hooks_there_is_nothing_to_count() {
    let lab = lab(&hooked("before_run: { request: POST /warm_up, on_failure: note }"));
    let ended = run(&lab);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let hook = &only(&lab)["facts"]["hooks"][0];
    assert_eq!(
        (hook["status"].as_u64(), hook["outcome"].as_str(), hook.get("exit_code")),
        (Some(404), Some("failed"), None)
    );
    assert!(hook["output"].as_str().unwrap().contains("there is nothing at this path"), "{hook}");
    assert!(ended.stdout.contains("hook_failed"), "{}", ended.stdout);
    lab.write("plan.yaml", &plan(EMBEDDED, "batch_size: 1", 1));
    lab.ok(&["run", "plan.yaml"]);
    let exported = lab.run(&["export", "--format", "json"]).json();
    let failed: Vec<&Value> = exported.as_array().unwrap().iter().map(|row| &row["hooks_failed"]).collect();
    assert!(failed.contains(&&json!(1)) && failed.contains(&&Value::Null), "{failed:?}");
    assert!(lab.runs().values().any(|run| run.json["facts"].get("hooks").is_none()));
}

#[test]
fn a_hook_that_does_not_end_is_killed_with_its_children() {
    let lab = lab(&hooked("before_run: { command: [./hang.sh], within: 400ms }"));
    program(&lab, "hang.sh", "echo waiting; sleep 600 & sleep 600");
    let ended = run(&lab);
    assert_eq!(ended.code, Some(6), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("the before_run hook `./hang.sh` failed: did not end within 400ms"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("waiting"), "{}", ended.stderr);
    wait_for("the end of the hook's processes", || left(&lab).is_empty().then_some(()));
    assert!(lab.runs().is_empty());
}

#[test]
fn a_sweep_that_is_stopped_ends_its_hook() {
    let lab = lab(&hooked("before_run: { command: [./hang.sh] }, after_run: { command: [./after.sh] }"));
    program(&lab, "hang.sh", "touch begun; sleep 600 & wait");
    program(&lab, "after.sh", "touch ended");
    let running = Running::start(lab.command(&["run", "plan.yaml"]).env(MARK, lab.path()));
    wait_for("the hook", || lab.path().join("begun").exists().then_some(()));
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(left(&lab).is_empty(), "{:?}", left(&lab));
    // The hooks at the end of the run were still called.
    assert!(lab.path().join("ended").exists() && lab.runs().is_empty());
}

#[test]
fn a_sweep_that_is_killed_leaves_no_hook() {
    let lab = lab(&hooked("before_run: { command: [./hang.sh] }"));
    program(&lab, "hang.sh", "touch begun; sleep 600 & wait");
    let running = Running::start(lab.command(&["run", "plan.yaml"]).env(MARK, lab.path()));
    wait_for("the hook", || lab.path().join("begun").exists().then_some(()));
    running.signal(Signal::KILL);
    running.end();
    wait_for("the end of the hook's processes", || left(&lab).is_empty().then_some(()));
}

#[test]
fn what_a_hook_left_running_outlives_it_until_the_plan_ends_it() {
    let lab = lab(&hooked("before_run: { command: [./begin.sh] }, after_run: { command: [./end.sh] }"));
    program(&lab, "begin.sh", "sleep 600 > /dev/null 2>&1 & echo $! > pid");
    program(&lab, "end.sh", "kill $(cat pid) && touch ended");
    let ended = run(&lab);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(lab.path().join("ended").exists(), "{}", ended.stderr);
    assert_eq!(only(&lab)["facts"]["hooks"][1]["outcome"], "ok");
}

#[test]
fn requests_carry_the_endpoint_s_key_and_no_record_holds_it() {
    let mock = Mock::start_with(&["--api-key-env", "MOCK_KEY"], |command| command.env("MOCK_KEY", "swordfish-key-1"));
    let endpoint = format!(
        "engine: mock, url: 'http://127.0.0.1:{}/v1', api_key: {{ secret: env:MOCK_KEY }}, hooks: {{ before_run: {{ request: POST /reset_prefix_cache?force=1 }}, \
         after_run: {{ command: [./tell.sh] }} }}",
        mock.port
    );
    let lab = lab(&plan(&endpoint, "batch_size: 1", 1));
    program(&lab, "tell.sh", "echo the key is $MOCK_KEY");
    let ended = Ended::from(lab.command(&["run", "plan.yaml"]).env("MOCK_KEY", "swordfish-key-1").output().unwrap());
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let json = only(&lab);
    assert_eq!(json["facts"]["hooks"][0]["status"], 200);
    assert_eq!(json["facts"]["hooks"][1]["output"], "the key is [secret]");
    assert!(!json.to_string().contains("swordfish"), "{json}");
    let log = mock.log(3);
    let asked = log.iter().find(|line| line["path"] == "/reset_prefix_cache?force=1").unwrap();
    assert_eq!(asked["status"], 200);
    // The hook ran after the server was found idle, and before the first request of the run.
    let first = log
        .iter()
        .filter(|line| line["request_id"] != "sweepline-probe")
        .map(|line| line["arrival_ns"].as_u64().unwrap())
        .min();
    assert!(asked["done_ns"].as_u64().unwrap() < first.unwrap(), "{log:#?}");
    let probed = |line: &&Value| line["request_id"] == "sweepline-probe" && line["path"] != asked["path"];
    let last_probe = log.iter().filter(probed).map(|line| line["done_ns"].as_u64().unwrap()).min();
    assert!(last_probe.unwrap() < asked["arrival_ns"].as_u64().unwrap(), "{log:#?}");
}

#[test]
fn a_reset_empties_the_prefix_cache_before_every_run() {
    let prefixes = "prefix_cache: 100000, prefix_block: 16";
    let text = |reset: &str| {
        let endpoint = format!("engine: mock, mock: {{ ttft: 5ms, itl: 1ms, {prefixes} }}{reset}");
        // Both batch sizes send the same texts.
        let text = plan(&endpoint, "batch_size: [1, 2]", 1);
        text.replace("output_tokens: 8 }", "output_tokens: 8, prefix: { tokens: 64, groups: 1 } }") + "nonce: off\n"
    };
    let lab = lab(&text(", reset: prefix_cache"));
    lab.ok(&["run", "plan.yaml"]);
    assert_eq!(lab.runs().len(), 2);
    for run in lab.runs().values() {
        let hooks = hooks(&run.json);
        assert_eq!(hooks, [("reset".to_owned(), "POST /reset_prefix_cache".to_owned(), "ok".to_owned())]);
        let answered = run.records.iter().filter(|record| record.row.outcome.is_ok());
        let first = answered.min_by_key(|record| record.row.sent_ns).unwrap();
        assert_eq!(first.row.cached_tokens, Some(0), "the run started warm");
    }
    // Without the hook, the second run hits the cache that the first one filled; these are
    // different runs.
    lab.write("plan.yaml", &text(""));
    lab.run(&["run", "plan.yaml"]);
    assert_eq!(lab.runs().len(), 4);
    let warm = lab.runs().into_values().filter(|run| run.json["facts"].get("hooks").is_none());
    let firsts: Vec<u32> = warm
        .map(|run| {
            let answered = run.records.iter().filter(|record| record.row.outcome.is_ok());
            answered.min_by_key(|record| record.row.sent_ns).unwrap().row.cached_tokens.unwrap()
        })
        .collect();
    assert!(firsts.iter().any(|cached| *cached > 0), "{firsts:?}");
}

#[test]
fn warm_and_cold_twins_begin_with_an_empty_cache() {
    let endpoint =
        "engine: mock, mock: { ttft: 5ms, itl: 1ms, prefix_cache: 100000, prefix_block: 16 }, reset: prefix_cache";
    let text = plan(endpoint, "batch_size: 1, cache: [warm, cold]", 2);
    let lab = lab(&text.replace("output_tokens: 8 }", "output_tokens: 8, prefix: { tokens: 64, groups: 1 } }"));
    lab.ok(&["run", "plan.yaml"]);
    assert_eq!(lab.runs().len(), 4);
    for run in lab.runs().values() {
        let mut records: Vec<_> = run.records.iter().collect();
        records.sort_by_key(|record| record.row.sent_ns);
        let mut cached = records.iter().map(|record| record.row.cached_tokens);
        assert_eq!(cached.next(), Some(Some(0)), "the run started warm");
        let is_cold = run.json["spec"]["scenario"]["cache"] == "cold";
        assert!(records.len() > 1 && cached.all(|cached| (cached == Some(0)) == is_cold), "{}", run.json["spec"]);
    }
}

#[test]
fn a_reset_that_fails_ends_the_attempt() {
    // The mock does not have this path.
    let mock = Mock::start(&[]);
    let endpoint = format!("engine: sglang, url: 'http://127.0.0.1:{}/v1', reset: prefix_cache", mock.port);
    let lab = lab(&plan(&endpoint, "batch_size: 1", 1));
    let ended = run(&lab);
    assert_eq!((ended.code, lab.runs().len()), (Some(6), 0), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("the reset of the prefix cache `POST /flush_cache` failed: HTTP 404"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("the run would measure a warm cache"), "{}", ended.stderr);
    assert!(mock.log_now().iter().all(|line| line["request_id"] == "sweepline-probe"));
}

#[test]
fn a_restart_starts_a_launched_server_for_every_run() {
    let launch = format!(
        "engine: mock, launch: {{ command: [{SWEEPLINE}, mock, --ttft, 5ms, --port, '{{{{ port }}}}'], port: auto }}, reset: restart"
    );
    let lab = lab(&plan(&launch, "batch_size: [1, 2]", 2));
    let preview = lab.ok(&["preview", "plan.yaml"]).stdout;
    assert!(preview.contains("4 starts of m"), "{preview}");
    let ended = run(&lab);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let starts = ended.stderr.lines().filter(|line| line.starts_with("m: starting ")).count();
    assert_eq!((starts, lab.runs().len()), (4, 4), "{}", ended.stderr);
    let logs: std::collections::BTreeSet<String> =
        lab.runs().values().map(|run| run.json["environment"]["server_start"]["log"].to_string()).collect();
    assert_eq!(logs.len(), 4, "{logs:?}");
    assert!(left(&lab).is_empty(), "{:?}", left(&lab));
}

#[test]
fn a_program_that_is_not_there_is_told_before_anything_is_sent() {
    let mock = Mock::start(&[]);
    let endpoint = format!(
        "engine: mock, url: 'http://127.0.0.1:{}/v1', hooks: {{ after_cell: {{ command: [./colect.sh] }} }}",
        mock.port
    );
    let lab = lab(&plan(&endpoint, "batch_size: 1", 1));
    let ended = run(&lab);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    let words = "endpoint `m`: the after_cell hook runs `./colect.sh`, which was not found at ";
    assert!(ended.stderr.contains(words) && ended.stderr.contains("correct `hooks.after_cell`"), "{}", ended.stderr);
    assert!(
        !lab.results().join("attempts").exists() || fs::read_dir(lab.results().join("attempts")).unwrap().count() == 0
    );
    assert!(mock.log_now().iter().all(|line| line["request_id"] == "sweepline-probe"));
}

#[test]
fn what_comes_before_a_run_is_a_part_of_it_and_what_comes_after_it_is_not() {
    let lab = lab(&hooked("before_run: { command: [./begin.sh, a] }, after_run: { command: [./begin.sh] }"));
    program(&lab, "begin.sh", "true");
    lab.ok(&["run", "plan.yaml"]);
    let is_done = |hooks: &str| {
        lab.write("plan.yaml", &hooked(hooks));
        lab.ok(&["preview", "plan.yaml"]).stdout.contains("nothing to do")
    };
    // Hooks after the run, the program's path, the time limit and the effect of failures do not change
    // the run.
    assert!(is_done("before_run: [{ command: [./begin.sh, a] }]"));
    assert!(is_done(
        "before_run: { command: [/elsewhere/begin.sh, a], within: 5s, on_failure: note }, after_run: { request: GET /x }"
    ));
    assert!(is_done("before_run: [{ request: GET /y, hash: false }, { command: [begin.sh, a] }]"));
    for other in [
        "before_run: { command: [./begin.sh, b] }",
        "before_run: { command: [./begin.sh, a], hash: false }",
        "before_cell: { command: [./begin.sh, a] }",
        "before_run: { command: [./begin.sh, a] }, after_run: { command: [./begin.sh], hash: true }",
    ] {
        assert!(!is_done(other), "{other}");
    }
    lab.write("plan.yaml", &hooked("before_run: [{ request: GET /y, hash: false }, { command: [./begin.sh, b] }]"));
    let why = lab.ok(&["why", "batch_size == 1", "--plan", "plan.yaml"]).stdout;
    assert!(why.contains("endpoint.hooks.before_run.0.command") && why.contains(r#"["begin.sh","a"]"#), "{why}");
}

#[test]
fn mistakes_of_hooks_are_told_at_their_place() {
    for (fields, words) in [
        (
            "hooks: { before_run: { request: reset } }",
            "`reset` is not a request: expected a method and an absolute path, like `POST /reset_prefix_cache`",
        ),
        ("hooks: { before_run: { request: reset } }", "write the method before the path: POST /reset"),
        ("hooks: { before_run: { request: post http://h/reset } }", "write POST /reset"),
        ("hooks: { before_run: { command: [] } }", "this before_run hook has no program: `command` is empty"),
        (
            "hooks: { before_run: [{}] }",
            "this before_run hook does nothing: it has neither a `request` nor a `command`",
        ),
        (
            "hooks: { after_run: { request: GET /x, command: [x] } }",
            "this after_run hook has both a `request` and a `command`",
        ),
        (
            "hooks: { after_cell: { command: [x, '{{ model.idd }}'] } }",
            "`model.idd` has no value here; did you mean `model.id`?",
        ),
        ("hooks: { after_cell: { command: [x, '{{ server.args }}'] } }", "a hook launches no server"),
        ("hooks: { before_run: { request: GET /x, within: 0s } }", "`within` must be above 0s, not 0s"),
        ("hooks: { before_run: { request: POST /x?api_key=hunter2 } }", "the path contains what looks like a secret"),
        (
            "hooks: { before_run: { command: [x, hf_abcdefghijklmnop] } }",
            "argument 1 of the command looks like a secret",
        ),
        ("hooks: { before_run: { request: GET /x, on_failure: stop } }", "`stop`"),
        ("hooks: { before_runs: { request: GET /x } }", "before_runs"),
        ("reset: restart", "`reset: restart` restarts the server, but endpoint `m` has no `launch`"),
    ] {
        let lab = lab(&plan(&format!("{EMBEDDED}, {fields}"), "batch_size: 1", 1));
        let ended = lab.run(&["check", "plan.yaml"]);
        let said = format!("{}{}", ended.stdout, ended.stderr).replace("help: ", "");
        let parts: Vec<&str> = words.split("; ").collect();
        assert!(ended.code == Some(2) && parts.iter().all(|part| said.contains(part)), "{fields}\n{words}\n{said}");
        assert!(said.contains("plan.yaml:4:"), "{fields}\n{said}");
    }
    let tgi = "engine: tgi, url: 'http://127.0.0.1:9/v1', reset: prefix_cache";
    let lab = lab(&plan(tgi, "batch_size: 1", 1));
    let ended = lab.run(&["check", "plan.yaml"]);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    for words in [
        "but no such request is known for `tgi` (only for vllm, sglang, mock)",
        "hooks: { before_run: { request: POST /PATH } }",
    ] {
        assert!(said.contains(words), "{said}");
    }
}
