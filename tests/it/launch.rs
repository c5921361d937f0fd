//! Tests servers that the plan starts: there are as few starts as the order allows, every failed
//! start has a message, and no process is left behind, whichever process is killed.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use lab::{Ended, Lab, Running, Server, wait_for};

/// The program, as a command in a plan.
const SWEEPLINE: &str = "sweepline";

/// Marks every process that a lab's sweeps start, because the variable is inherited.
const MARK: &str = "SWEEPLINE_TEST_LAB";

/// Returns a plan whose endpoint `m` has these additional fields; `axes` and `repeats` belong to its
/// only sweep.
fn plan(endpoint: &str, axes: &str, repeats: u32) -> String {
    format!(
        "\
sweepline: 1
name: launched
endpoints:
  m: {{ engine: mock, {endpoint} }}
models: {{ tiny: {{ id: mock }} }}
scenarios: {{ short: {{ base: B1, output_tokens: 8 }} }}
phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 300ms }}, drain: 10s }}
validity: {{ client_late: {{ suspect: 100%, invalid: 100% }} }}
sweeps:
  flags: {{ matrix: {{ {axes} }}, repeats: {repeats} }}
"
    )
}

/// Returns the mock as a launched server, with the flags of the cell.
fn mock() -> String {
    format!(
        "launch: {{ command: [{SWEEPLINE}, mock, --ttft, 5ms, --port, '{{{{ port }}}}', '{{{{ server.args }}}}'], port: auto }}"
    )
}

/// Returns a shell script as a launched server. `$P` is its port, and `serve` starts a mock.
fn script(lines: &str, rest: &str) -> String {
    let serve = format!("exec {SWEEPLINE} mock --ttft 5ms --port $P");
    let text = lines.replace("serve", &serve).replace('\'', "''");
    format!("launch: {{ command: [sh, -c, '{text}'], port: auto, host_env: {{ P: '{{{{ port }}}}' }}{rest} }}")
}

fn lab(plan: &str) -> Lab {
    let lab = Lab::new();
    lab.write("plan.yaml", plan);
    lab
}

fn run(lab: &Lab, args: &[&str]) -> Ended {
    let mut command = lab.command(&[&["run", "plan.yaml"], args].concat());
    Ended::from(command.env(MARK, lab.path()).output().unwrap())
}

/// Returns the live processes that the sweeps of a lab started.
fn left(lab: &Lab) -> Vec<String> {
    let wanted = format!("{MARK}={}", lab.path().display());
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let of = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
        let is_ours = of("environ").split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes());
        let is_zombie = String::from_utf8_lossy(&of("stat"))
            .rsplit(')')
            .next()
            .is_some_and(|rest| rest.trim_start().starts_with('Z'));
        if is_ours && !is_zombie {
            found.push(String::from_utf8_lossy(&of("cmdline")).replace('\0', " "));
        }
    }
    found
}

/// Returns the processes with this first argument that the sweeps of a lab started.
fn processes(lab: &Lab, argument: &str) -> Vec<i32> {
    let wanted = format!("{MARK}={}", lab.path().display());
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let ours = entries.filter_map(|entry| {
        let of = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
        let is_ours = of("environ").split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes());
        let words = of("cmdline");
        let is_meant = words.split(|byte| *byte == 0).nth(1) == Some(argument.as_bytes());
        (is_ours && is_meant).then(|| entry.file_name().to_str()?.parse().ok())?
    });
    ours.collect()
}

fn nothing_left(lab: &Lab) {
    let left = left(lab);
    assert!(left.is_empty(), "left behind: {left:#?}");
    let leases: Vec<_> = servers(lab).into_iter().filter(|name| name.ends_with(".json")).collect();
    assert!(leases.is_empty(), "{leases:?}");
}

fn servers(lab: &Lab) -> Vec<String> {
    let entries = fs::read_dir(lab.results().join("servers")).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

/// Waits until a run of a sweep has started.
fn begun(lab: &Lab, running: &mut Running) {
    let attempts = lab.results().join("attempts");
    let is_begun = || {
        let mut entries = fs::read_dir(&attempts).into_iter().flatten().flatten();
        entries.any(|entry| entry.path().join("journal.arrow").exists())
    };
    wait_for("a run", || {
        assert!(!running.has_ended(), "the sweep has ended");
        is_begun().then_some(())
    });
}

fn starts(ended: &Ended) -> usize {
    ended.stderr.lines().filter(|line| line.starts_with("m: starting ")).count()
}

fn ids(lab: &Lab) -> Vec<String> {
    lab.runs().into_keys().collect()
}

#[test]
fn a_server_starts_once_for_all_runs_that_need_it_and_ends_with_them() {
    let lab = lab(&plan(&mock(), "batch_size: [1, 2], server: [{ slots: 2 }, { slots: 8, itl: 2ms }]", 2));
    let preview = lab.ok(&["preview", "plan.yaml"]).stdout;
    assert!(preview.contains("2 starts of m: not yet measured"), "{preview}");
    let ended = run(&lab, &[]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert_eq!((starts(&ended), lab.runs().len()), (2, 8), "{}", ended.stderr);
    nothing_left(&lab);
    for run in lab.runs().values() {
        let spec = &run.json["spec"]["endpoint"];
        let slots = spec["server"]["flags.slots"].as_f64().unwrap();
        let command: Vec<&str> =
            spec["launch"]["command"].as_array().unwrap().iter().map(|part| part.as_str().unwrap()).collect();
        let at = command.iter().position(|part| *part == "--slots").unwrap();
        assert_eq!((command[at + 1].parse(), command[5]), (Ok(slots), "{{ port }}"));
        let start = &run.json["environment"]["server_start"];
        assert!(start["ready_ns"].as_u64().unwrap() > 0);
        assert!(lab.results().join(start["log"].as_str().unwrap()).is_file(), "{start}");
    }
    let again = run(&lab, &[]);
    assert!(again.stderr.contains("nothing to do") && starts(&again) == 0, "{}", again.stderr);
    // A third setting causes only its own server to be started, and the preview shows how long that
    // takes.
    lab.write("plan.yaml", &plan(&mock(), "batch_size: [1, 2], server: [{ slots: 2 }, { slots: 4 }]", 2));
    let preview = lab.ok(&["preview", "plan.yaml"]).stdout;
    assert!(preview.contains("1 start of m: about ") && preview.contains("as in 2 earlier starts"), "{preview}");
    let ended = run(&lab, &[]);
    assert_eq!((ended.code, starts(&ended), lab.runs().len()), (Some(0), 1, 12), "{}", ended.stderr);
}

#[test]
fn a_flag_is_a_column_and_can_be_compared() {
    let axes = "batch_size: 2, server.slots: [1, 4]";
    let compared = plan(&mock(), axes, 3).replace(
        "repeats: 3 }",
        "repeats: 3, compare: { by: server.slots, baseline: 4, metrics: [output_throughput] } }",
    );
    let lab = lab(&compared);
    let preview = lab.ok(&["preview", "plan.yaml"]).stdout;
    let flat = preview.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("2 would be enough without the rounds of comparisons"), "{preview}");
    let ended = run(&lab, &[]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    // The rounds are AB and BA, so a server that the next run also needs keeps running.
    assert!((3..=6).contains(&starts(&ended)), "{}", ended.stderr);
    let table = lab.ok(&["export", "plan.yaml", "--format", "csv"]).stdout;
    let header = table.lines().next().unwrap();
    assert!(header.split(',').any(|column| column == "server.slots"), "{header}");
    let compared = lab.run(&["compare", "plan.yaml"]);
    assert!(compared.stdout.contains("server.slots"), "{}{}", compared.stdout, compared.stderr);
    let only = lab.ok(&["export", "plan.yaml", "--only", "server.slots == 4", "--format", "csv"]).stdout;
    assert_eq!(only.lines().count(), 4, "{only}");
    nothing_left(&lab);
}

#[test]
fn a_program_that_is_not_there_is_named_before_anything_is_sent() {
    let lab =
        lab(&plan("launch: { command: [no-such-server-here, serve, '{{ port }}'], port: auto }", "batch_size: 1", 1));
    let ended = run(&lab, &[]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    let words = "endpoint `m`: cannot start `no-such-server-here`: program not found in PATH; install it, or correct `launch.command`";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    assert!(servers(&lab).is_empty());
}

#[test]
fn a_server_that_ends_at_once_is_started_again_and_then_its_runs_are_given_up() {
    let endpoint = script("echo CUDA out of memory; exit 3; : $P", "") + ", retries: { runs: 1 }";
    let lab = lab(&plan(&endpoint, "batch_size: [1, 2]", 1));
    let ended = run(&lab, &[]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let twice =
        "m: not started again, because it ended twice in the same way: the server ended with exit code 3 after ";
    assert!(ended.stderr.contains(twice), "{}", ended.stderr);
    let again = "m: to be restarted (1 of 1): the server ended with exit code 3 after ";
    assert!(ended.stderr.contains(again) && ended.stderr.contains("\n  CUDA out of memory\n"), "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("given up: server did not start: ").count(), 2, "{}", ended.stderr);
    assert_eq!(servers(&lab).len(), 2, "one log for each reported start: {:?}", servers(&lab));
    let told = "; its last line: CUDA out of memory";
    // The list at the end cuts long reasons, and this one contains how long the server ran.
    assert!(
        ended.stderr.contains(told) && ended.stdout.contains("; its last line: CUDA out of"),
        "{}{}",
        ended.stderr,
        ended.stdout
    );
    assert!(lab.runs().is_empty());
    nothing_left(&lab);
    let preview = lab.ok(&["preview", "plan.yaml"]).stdout;
    assert!(preview.contains("2 given up"), "{preview}");
    // A failed start is not retried automatically, and shows nothing about the load.
    assert_eq!(run(&lab, &[]).code, Some(3));
    let curves = lab.ok(&["curves", "plan.yaml"]).stdout;
    assert!(curves.contains("load not measured") && !curves.contains("misses"), "{curves}");
    // A different server makes a different run.
    lab.write("plan.yaml", &plan(&mock(), "batch_size: [1, 2]", 1));
    assert_eq!(run(&lab, &[]).code, Some(0));
}

#[test]
fn the_last_words_of_a_server_are_quoted_however_much_it_printed_before() {
    let endpoint = script("seq 1 300000; echo CUDA out of memory; exit 3; : $P", "") + ", retries: { runs: 1 }";
    let lab = lab(&plan(&endpoint, "batch_size: 1", 1));
    let ended = run(&lab, &[]);
    let quoted = ended.stderr.matches("\n  CUDA out of memory\n").count();
    assert!(ended.code == Some(3) && quoted == 2, "both ends quote the last line: {}", ended.stderr);
}

#[test]
fn a_server_that_is_never_ready_ends_with_6_and_its_last_words() {
    let endpoint = script("echo loading shard 1 of 90; exec sleep 1000; : $P", "") + ", ready: { within: 1s }";
    let lab = lab(&plan(&endpoint, "batch_size: 1", 1));
    let ended = run(&lab, &[]);
    assert_eq!(ended.code, Some(6), "{}", ended.stderr);
    assert!(ended.stderr.contains("m: not ready within 1s: "), "{}", ended.stderr);
    assert!(ended.stderr.contains("\n  loading shard 1 of 90"), "{}", ended.stderr);
    nothing_left(&lab);
}

#[test]
fn a_server_that_hangs_when_it_is_to_stop_is_killed() {
    let endpoint = script("trap \"\" TERM INT; serve & wait; sleep 1000", ", stop: { within: 300ms }");
    let lab = lab(&plan(&endpoint, "batch_size: 1", 1));
    let ended = run(&lab, &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    nothing_left(&lab);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let port = server.url().trim_end_matches("/v1").rsplit(':').next().unwrap().to_owned();
    let endpoint = format!("launch: {{ command: [{SWEEPLINE}, mock, --port, '{{{{ port }}}}'], port: {port} }}");
    lab.write("plan.yaml", &plan(&endpoint, "batch_size: 1", 1));
    let ended = run(&lab, &[]);
    assert_eq!(ended.code, Some(6), "{}", ended.stderr);
    let words =
        format!("m: port {port} is taken: another process listens on 127.0.0.1:{port}; stop it, or write `port: auto`");
    assert!(ended.stderr.contains(&words), "{}", ended.stderr);
    assert!(lab.runs().is_empty());
}

#[test]
fn a_child_that_escapes_from_its_group_is_ended_too() {
    let endpoint = script("setsid sh -c \"trap '' TERM; sleep 1000\" & serve", ", stop: { within: 300ms }");
    let lab = lab(&plan(&endpoint, "batch_size: 1", 1));
    assert_eq!(run(&lab, &[]).code, Some(0));
    nothing_left(&lab);
}

#[test]
fn much_output_is_a_log_of_some_megabytes() {
    let size = if lab::is_whole() { "1G" } else { "100M" };
    let lines = format!("echo first line; head -c {size} /dev/zero | tr \"\\0\" x; echo; echo last line; serve");
    let lab = lab(&plan(&script(&lines, ""), "batch_size: 1", 1));
    let ended = run(&lab, &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let folder = lab.results().join("servers");
    let texts: Vec<String> = servers(&lab).iter().map(|name| fs::read_to_string(folder.join(name)).unwrap()).collect();
    assert!(texts.iter().map(String::len).sum::<usize>() < 16 << 20);
    assert!(
        texts.iter().any(|text| text.starts_with("first line\n"))
            && texts.iter().any(|text| text.contains("\nlast line\n"))
    );
}

#[test]
fn a_server_that_dies_under_a_run_is_started_again_and_the_run_measured_again() {
    // The first server exits while it is measured; all others keep running.
    let lines = "if [ -e died ]; then serve; fi; (serve) & until [ -e measuring ]; do sleep 0.01; done; touch died; echo out of memory; kill -9 $!; exit 1";
    let text = plan(&script(lines, ""), "batch_size: 2", 1).replace("for: 300ms", "for: 2s");
    let lab = lab(&text);
    let mut command = lab.command(&["run", "plan.yaml"]);
    let mut running = Running::start(command.env(MARK, lab.path()));
    begun(&lab, &mut running);
    lab.write("measuring", "");
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let spoiled = "spoiled, to be retried (1 of 3): the server ended with exit code 1; its last lines (log: ";
    assert!(ended.stderr.contains(spoiled) && ended.stderr.contains("\n  out of memory\n"), "{}", ended.stderr);
    assert_eq!(lab.runs().len(), 1);
    nothing_left(&lab);
}

#[test]
fn a_path_that_the_server_does_not_have_is_no_readiness() {
    let lab = lab(&plan(&(mock() + ", ready: { path: /healthy, within: 60s }"), "batch_size: 1", 1));
    let ended = run(&lab, &[]);
    assert_eq!(ended.code, Some(2), "the user must fix it: {}", ended.stderr);
    assert!(
        ended.stderr.contains(
            "returns HTTP 404 for /healthy but lists its models: the path does not exist; correct `ready.path`"
        ),
        "{}",
        ended.stderr
    );
    nothing_left(&lab);
}

#[test]
fn a_command_that_hands_the_server_over_is_ended_by_its_stop() {
    let start = format!("setsid {SWEEPLINE} mock --ttft 5ms --port $P > /dev/null & echo $! > server.pid");
    let rest = ", stop: { command: [sh, -c, 'kill $(cat server.pid); echo $NAME > stopped'], within: 5s }, env: { NAME: '{{ endpoint.name }}' }";
    let lab = lab(&plan(&script(&start, rest), "batch_size: 1", 1));
    let ended = run(&lab, &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(lab.path().join("stopped")).unwrap(), "m\n");
    nothing_left(&lab);
}

/// Returns a plan with a run that is long enough to be killed in the middle.
fn long_plan(rest: &str) -> String {
    plan(&(mock() + rest), "batch_size: [1, 2], server.slots: [2, 4]", 1).replace("for: 300ms", "for: 700ms")
}

#[test]
fn a_killed_sweep_leaves_no_server_and_goes_on() {
    let whole = lab(&long_plan(""));
    assert_eq!(run(&whole, &[]).code, Some(0));
    let lab = lab(&long_plan(""));
    for committed in 0..4 {
        let mut command = lab.command(&["run", "plan.yaml"]);
        let mut running = Running::start(command.env(MARK, lab.path()));
        let is_far = || lab.runs().len() >= committed && lab.results().join("servers").is_dir() && left(&lab).len() > 2;
        wait_for("a server", || (is_far() || running.has_ended()).then_some(()));
        running.signal(Signal::KILL);
        wait_for("the end of the server", || left(&lab).is_empty().then_some(()));
    }
    let ended = run(&lab, &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ids(&lab), ids(&whole));
    nothing_left(&lab);
}

#[test]
fn what_a_killed_supervisor_left_the_next_sweep_ends() {
    let stop = ", stop: { command: [sh, -c, 'echo $KEY >> stopped'], within: 2s }, env: { KEY: { secret: 'env:BENCH_KEY' } } }";
    let endpoint = mock().strip_suffix(" }").unwrap().to_owned() + stop;
    let lab = lab(&plan(&endpoint, "batch_size: 1", 1).replace("for: 300ms", "for: 20s"));
    let mut command = lab.command(&["run", "plan.yaml"]);
    let mut running = Running::start(command.env(MARK, lab.path()).env("BENCH_KEY", "hunter2-hunter2"));
    begun(&lab, &mut running);
    let lease: serde_json::Value = {
        let name = servers(&lab).into_iter().find(|name| name.ends_with(".lease.json")).unwrap();
        let text = fs::read_to_string(lab.results().join("servers").join(name)).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
        serde_json::from_str(&text).unwrap()
    };
    // The supervisor is killed first, because it would stop the server when the sweep exits. The sweep, which
    // would notice that, is stopped meanwhile.
    running.signal(Signal::STOP);
    let supervisor = rustix::process::Pid::from_raw(lease["supervisor"].as_i64().unwrap() as i32).unwrap();
    rustix::process::kill_process(supervisor, Signal::KILL).unwrap();
    running.signal(Signal::KILL);
    drop(running);
    assert_eq!(left(&lab).len(), 1, "{:?}", left(&lab));
    assert!(!lab.path().join("stopped").exists());
    lab.write("plan.yaml", &plan(&endpoint, "batch_size: 1", 1));
    let mut command = lab.command(&["run", "plan.yaml"]);
    let ended = Ended::from(command.env(MARK, lab.path()).env("BENCH_KEY", "hunter2-hunter2").output().unwrap());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("endpoint `m`: ended the server that a killed sweep left running"),
        "{}",
        ended.stderr
    );
    // Called once for the server that was left behind, and once for the new one.
    assert_eq!(fs::read_to_string(lab.path().join("stopped")).unwrap(), "hunter2-hunter2\nhunter2-hunter2\n");
    nothing_left(&lab);
    assert!(!holds(&lab.results(), "hunter2"), "a secret was written");
}

/// Whether any file below a folder contains a text.
fn holds(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).unwrap().flatten().any(|entry| match entry.file_type().unwrap().is_dir() {
        true => holds(&entry.path(), text),
        false => fs::read(entry.path()).unwrap().windows(text.len()).any(|part| part == text.as_bytes()),
    })
}

#[test]
fn ctrl_c_ends_the_server() {
    let lab = lab(&plan(&mock(), "batch_size: 1", 1).replace("for: 300ms", "for: 60s"));
    let mut command = lab.command(&["run", "plan.yaml"]);
    let mut running = Running::start(command.env(MARK, lab.path()));
    begun(&lab, &mut running);
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    nothing_left(&lab);
}

#[test]
fn secrets_reach_the_server_and_no_file() {
    let endpoint = script("echo key $KEY; serve", ", env: { KEY: { secret: 'env:BENCH_KEY' } }");
    let lab = lab(&plan(&endpoint, "batch_size: 1", 1));
    let ended = run(&lab, &[]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("environment variable BENCH_KEY is not set, but `env` of `launch` refers to it"),
        "{}",
        ended.stderr
    );
    let mut command = lab.command(&["run", "plan.yaml"]);
    let ended = Ended::from(command.env("BENCH_KEY", "hunter2-hunter2").output().unwrap());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!holds(&lab.results(), "hunter2"), "a secret was written");
    assert!(holds(&lab.results(), "key [secret]"));
}

#[test]
fn cells_fill_hardware_and_facts() {
    let rest = ", hardware: { gpu: X, gpus: '{{ server.slots }}', price_per_hour: '{{ server.slots * 3 }}' }, server: { tensor_parallel: '{{ server.slots }}' }";
    let lab = lab(&plan(&(mock() + rest), "batch_size: 2, server.slots: [1, 4]", 1));
    assert_eq!(run(&lab, &[]).code, Some(0));
    for run in lab.runs().values() {
        let spec = &run.json["spec"]["endpoint"];
        let slots = spec["server"]["flags.slots"].as_f64();
        assert_eq!((spec["gpus"].as_f64(), spec["server"]["tensor_parallel"].as_f64()), (slots, slots));
    }
    let table = lab
        .ok(&[
            "export",
            "plan.yaml",
            "--columns",
            "server.slots,cost_per_million_output_tokens,output_throughput_tokens_per_s",
            "--format",
            "csv",
        ])
        .stdout;
    for line in table.lines().skip(1) {
        let figures: Vec<f64> = line.split(',').map(|text| text.parse().unwrap()).collect();
        let cost = figures[0] * 3.0 / (figures[2] * 3600.0) * 1e6;
        assert!((figures[1] / cost - 1.0).abs() < 1e-6, "{table}");
    }
}

#[test]
fn two_servers_of_one_host_take_turns_and_two_resources_do_not() {
    let two = |rest: &str| {
        let other = format!("other: {{ engine: mock, {}{rest} }}\nmodels:", mock());
        plan(&mock(), "endpoint: [m, other], batch_size: 1", 2).replace("models:", &format!("  {other}"))
    };
    let lab = lab(&two(""));
    let ended = run(&lab, &["--jobs", "4"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // At most one server is up at a time; the next one starts after the runs of the previous one.
    let lines: Vec<&str> =
        ended.stderr.lines().filter(|line| line.contains(": starting ") || line.ends_with(" · valid")).collect();
    assert!(lines.len() >= 4 && lines[0].contains("starting") && !lines[1].contains("starting"), "{lines:#?}");
    nothing_left(&lab);
    let apart = self::lab(&two(", resource: elsewhere"));
    assert_eq!(run(&apart, &["--jobs", "4"]).code, Some(0));
    nothing_left(&apart);
}

#[test]
fn long_waits_end_when_the_user_wants_it() {
    let endpoint = script("exec sleep 1000; : $P", "") + ", ready: { within: 10m }";
    let lab = lab(&plan(&endpoint, "batch_size: 1", 1));
    let mut command = lab.command(&["run", "plan.yaml"]);
    let running = Running::start(command.env(MARK, lab.path()));
    wait_for("the server", || left(&lab).iter().any(|process| process.contains("sleep 1000")).then_some(()));
    running.signal(Signal::INT);
    let began = std::time::Instant::now();
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(began.elapsed() < Duration::from_secs(60));
    nothing_left(&lab);
}

#[test]
fn what_a_launched_server_leaves_dead_holds_nothing_up() {
    // The shell exits on TERM before its child, which then becomes an orphan of the supervisor.
    let slow_to_stop = script("serve & wait", ", stop: { within: 60s }").replace("exec ", "");
    let lab = lab(&plan(&slow_to_stop, "batch_size: 1", 1));
    let began = Instant::now();
    let ended = run(&lab, &[]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    nothing_left(&lab);
}

#[test]
fn a_server_whose_supervisor_is_killed_is_ended_before_another_is_started() {
    let text = plan(&mock(), "batch_size: 1", 1).replace("for: 300ms", "for: 2s");
    let lab = lab(&text);
    let mut command = lab.command(&["run", "plan.yaml"]);
    let mut running = Running::start(command.env(MARK, lab.path()));
    begun(&lab, &mut running);
    let supervisors: Vec<i32> = processes(&lab, "supervise");
    let servers_before = processes(&lab, "mock");
    assert_eq!((supervisors.len(), servers_before.len()), (1, 1));
    rustix::process::kill_process(rustix::process::Pid::from_raw(supervisors[0]).unwrap(), Signal::KILL).unwrap();
    let again = wait_for("another server", || {
        let now = processes(&lab, "mock");
        assert!(now.len() <= 1, "two servers at once: {now:?}");
        now.first().filter(|pid| !servers_before.contains(pid)).copied()
    });
    assert!(again > 0);
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(
        ended.stderr.contains("the server ended because its supervisor, a process of sweepline, was killed"),
        "{}",
        ended.stderr
    );
    nothing_left(&lab);
}

#[test]
fn a_signal_to_all_processes_of_a_job_interrupts_the_run_and_spoils_nothing() {
    let lab = lab(&plan(&mock(), "batch_size: 1", 1).replace("for: 300ms", "for: 20s"));
    let mut command = lab.command(&["run", "plan.yaml"]);
    let mut running = Running::start(command.env(MARK, lab.path()));
    begun(&lab, &mut running);
    // A cluster that preempts a job sends a signal to all its processes; in this test, the sweep is
    // the last to notice.
    for process in [processes(&lab, "supervise"), processes(&lab, "mock")].concat() {
        rustix::process::kill_process(rustix::process::Pid::from_raw(process).unwrap(), Signal::TERM).unwrap();
    }
    wait_for("the end of the server", || processes(&lab, "mock").is_empty().then_some(()));
    running.signal(Signal::TERM);
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{}{}", ended.stdout, ended.stderr);
    let attempts: Vec<_> =
        fs::read_dir(lab.results().join("attempts")).unwrap().map(|one| one.unwrap().path()).collect();
    assert_eq!(attempts.len(), 1, "{attempts:?}");
    let attempt: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(attempts[0].join("attempt.json")).unwrap()).unwrap();
    assert!(attempt["spoiled"].is_null() && attempt["failure"] == "interrupted", "{attempt:#}");
    nothing_left(&lab);
}

#[test]
fn keys_in_plain_words_and_one_server_under_two_names_are_mistakes() {
    let key = "sk-0123456789abcdef0123";
    let launched =
        |rest: &str| format!("launch: {{ command: [vllm, serve, '{{{{ server.args }}}}'], port: 8123{rest} }}");
    let plans = [
        (
            plan(
                &(launched("")
                    + &format!(", hooks: {{ before_run: {{ command: [curl, -H, 'Authorization: Bearer {key}'] }} }}")),
                "qps: 1",
                1,
            ),
            "E027",
        ),
        (plan(&launched(&format!(", stop: {{ command: [stop, --token={key}] }}")), "qps: 1", 1), "E027"),
        (
            plan(
                &launched("").replace("vllm, serve", &format!("sh, -c, 'VLLM_API_KEY={key} vllm serve'")),
                "qps: 1",
                1,
            ),
            "E027",
        ),
        (plan(&launched(""), &format!("qps: 1, server.api_key: [{key}]"), 1), "E027"),
        (
            plan(&launched(""), "qps: 1", 1)
                .replace("models:", "  twin: { engine: mock, url: 'http://localhost:8123/v1' }\nmodels:"),
            "E025",
        ),
    ];
    for (text, code) in plans {
        let lab = lab(&text);
        let checked = lab.run(&["check", "plan.yaml"]);
        assert!(
            checked.code == Some(2) && checked.stderr.contains(code),
            "{text}\n{}{}",
            checked.stdout,
            checked.stderr
        );
    }
}

#[test]
fn how_long_a_server_takes_to_start_is_a_result_with_repeats() {
    let slow = script("sleep 0.4; serve --slots $S", ", env: { S: '{{ server.slots }}' }");
    let starts_only = "flags: { measure: start, matrix: { server.slots: [1, 2] }, repeats: 2, compare: { by: server.slots, baseline: 1, metrics: [start_ready] } }";
    let text = plan(&slow, "batch_size: 1", 1).replace("flags: { matrix: { batch_size: 1 }, repeats: 1 }", starts_only);
    let lab = lab(&text);
    let preview = lab.ok(&["preview", "plan.yaml"]).stdout;
    assert!(preview.contains("4 starts of m"), "{preview}");
    let words = preview.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("4 server starts, not yet measured"), "{preview}");
    let ended = run(&lab, &[]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert_eq!((starts(&ended), lab.runs().len()), (4, 4), "{}", ended.stderr);
    let shown = lab.ok(&["show", &ids(&lab)[0]]).stdout;
    assert!(
        shown.contains(" · start · ") && shown.contains("server start, ") && shown.contains(" from storage"),
        "{shown}"
    );
    assert!(!shown.contains("B1") && !shown.contains("TTFT"), "a start has no load: {shown}");
    assert!(ended.stderr.contains("m · start · server.slots 2 · repeat 1 · ready after "), "{}", ended.stderr);
    let columns =
        "server.slots,repeat,start_ready_ms,start_first_answer_ms,ttft_p50_ms,output_throughput_tokens_per_s,verdict";
    let table = lab.ok(&["export", "plan.yaml", "--columns", columns, "--format", "csv"]).stdout;
    for line in table.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let (ready, first): (f64, f64) = (cells[2].parse().unwrap(), cells[3].parse().unwrap());
        assert!((400.0..60_000.0).contains(&ready) && first > ready, "{table}");
        // The only request after that is not a load.
        assert_eq!((cells[4], cells[5], cells[6]), ("", "", "valid"), "{table}");
    }
    assert!(ended.stdout.contains("ready ") && ended.stdout.contains("first response "), "{}", ended.stdout);
    let compared = lab.run(&["compare", "plan.yaml"]);
    assert!(compared.stdout.contains("start until ready"), "{}{}", compared.stdout, compared.stderr);
    assert!(compared.stdout.contains(" · start"), "{}", compared.stdout);
    for shown in [&ended.stdout, &compared.stdout] {
        assert!(!shown.contains("B1") && !shown.contains("batch 1"), "a start has no load:\n{shown}");
    }
    nothing_left(&lab);
}

#[test]
fn a_launched_server_of_another_version_is_compared_once_it_is_up() {
    let launch = format!(
        "launch: {{ command: [sh, -c, 'exec {SWEEPLINE} mock --ttft 5ms --version-says $(cat version) --port {{{{ port }}}} \"$@\"', \
         sh, '{{{{ server.args }}}}'], port: auto }}"
    );
    let text = plan(&launch, "batch_size: [1, 2], server.slots: [2, 8]", 1);
    let lab = lab(&text);
    lab.write("version", "0.11.0");
    let some = run(&lab, &["--only", "batch_size == 1"]);
    assert_eq!((some.code, lab.runs().len()), (Some(0), 2), "{}{}", some.stdout, some.stderr);
    let versions = || -> Vec<String> {
        let version = |run: &lab::Run| run.json["environment"]["fingerprint"]["version"].as_str().unwrap().to_owned();
        lab.runs().values().map(version).collect()
    };
    assert_eq!(versions(), ["0.11.0", "0.11.0"]);

    // The server is started with one setting for a new run; the results of the other setting came from
    // the same release, which is no longer installed.
    lab.write("version", "0.12.0");
    let more = run(&lab, &["--only", "batch_size == 1 or server.slots == 2"]);
    assert_eq!(more.code, Some(0), "{}{}", more.stdout, more.stderr);
    let told = "m: the server reports version 0.12.0 instead of 0.11.0; 2 runs are measured again (environment: match)";
    assert!(more.stderr.contains(told), "{}", more.stderr);
    assert_eq!(versions(), ["0.12.0", "0.12.0", "0.12.0"]);
    assert_eq!(starts(&more), 3, "{}", more.stderr);

    // If the plan pins its servers, nothing is measured on a different one.
    lab.write("version", "0.13.0");
    lab.write("plan.yaml", &format!("environment: pin\n{text}"));
    let pinned = run(&lab, &[]);
    assert_eq!(pinned.code, Some(2), "{}{}", pinned.stdout, pinned.stderr);
    let told = "endpoint `m` reports version 0.13.0, but its results were measured on 0.12.0, and the plan sets `environment: pin`";
    assert!(pinned.stderr.contains(told), "{}", pinned.stderr);
    assert_eq!(versions(), ["0.12.0", "0.12.0", "0.12.0"]);
    nothing_left(&lab);
}

/// The variation between the rounds of one launch does not contain that between launches.
#[test]
fn a_comparison_speaks_of_these_launches_unless_each_round_has_its_own() {
    for (reset, is_of_these) in [("", true), (", reset: restart", false)] {
        let lab = lab(&plan(&format!("{}{reset}", mock()), "server.slots: [4, 8], batch_size: 1", 2));
        lab.ok(&["run", "plan.yaml"]);
        let by = ["compare", "plan.yaml", "--by", "server.slots", "--baseline", "4"];
        let family = lab.ok(&[&by[..], &["--format", "json"]].concat()).json()["families"][0].clone();
        assert_eq!(family["claims"][0]["of_these_launches"], is_of_these, "{family:#}");
        let launches = if is_of_these { 1 } else { 2 };
        let counted = &family["cells"][0]["launches"];
        assert_eq!([&counted["baseline"], &counted["arm"]], [launches, launches], "{family:#}");
        let text = lab.ok(&by).stdout;
        assert_eq!(text.contains("in these launches"), is_of_these, "{text}");
    }
}
