//! Cases of the commands that measure, or start something that does.

use std::os::unix::fs::PermissionsExt;

use lab::sweeps::Talking;
use lab::{Lab, Server};

use super::cases::Effect::{Ends, Omits, Prints, Writes};
use super::cases::{Case, Prepared, case, page};
use super::plans;

const RUN: &[Case] = &[
    case("run plan.yaml", "--set sweeps.second.repeats=2", Prints("4 runs to do")),
    case("run inside/plan.yaml", "--allow-outside", Prints("2 runs to do")),
    case("run plan.yaml", "--frozen old.lock", Prints("old.lock")).ends(2),
    case("run plan.yaml", "--only endpoint=='a'", Prints("1 run to do")),
    case("run plan.yaml", "--skip endpoint=='a'", Prints("1 run to do")),
    case("run plan.yaml", "--part a", Prints("1 run to do")),
    case("run plan.yaml --only sweep=='first'", "--force", Prints("forced")),
    case("run empty.yaml", "--redo invalid", Prints("its verdict is invalid")).ends(3),
    case("run plan.yaml --dry-run --set phases.measure=60s", "--jobs 2", Prints("time                about 2m")),
    case("run plan.yaml", "--workers 2", Writes("results/runs/*/run.json", "\"workers\": [")),
    case("run dead.yaml", "--fail-fast", Prints("1 left to do")).ends(6),
    case("run plan.yaml --set slo.ttft.p50=1ms", "--gate", Prints("gate: 4 failed")).ends(4),
    case("run plan.yaml", "--markdown found.md", Writes("found.md", "<!-- written by sweepline run --markdown -->")),
    case("run plan.yaml", "--metrics-addr 0", Prints("metrics: http://127.0.0.1:")),
    case("run plan.yaml", "--events events.jsonl", Writes("events.jsonl", "\"event\":\"stage_started\"")),
    case("run plan.yaml", "--dry-run", Prints("to do               2 runs")),
    case(
        "run plan.yaml --set \"endpoints.a={ engine: mock, hooks: { before_run: { command: ['true'] } } }\"",
        "--no-exec",
        Prints("--no-exec: 1 command would be executed on this machine: `true` (before_run hook of a)"),
    )
    .ends(2),
    case("run plan.yaml", "--explain", Prints("counting: the rules for requests")),
    case("run plan.yaml --only sweep=='first'", "--results new", Writes("new/runs", "")),
    case("run plan.yaml", "--verbose", Prints("a: 127.0.0.1:")),
    case("run plan.yaml", "--quiet", Omits("runs to do")),
    case("run plan.yaml", "--progress json", Prints("\"event\":\"committed\"")),
    case("run plan.yaml", "--progress-every 1ms", Prints("about 1s left")),
    case("run plan.yaml", "--color always", Prints("\u{1b}[")),
];

const SEARCH: &[Case] = &[
    case("search --plan-only", "--slo \"ttft p90 70ms\"", Writes("search.yaml", "slo: { ttft: { p90: 70ms } }")),
    case(
        "search --plan-only --slo \"ttft p50 90ms\" --model x",
        "--url http://127.0.0.1:9/v1",
        Writes("search.yaml", "url: http://127.0.0.1:9/v1"),
    ),
    case("search --plan-only --slo \"ttft p50 90ms\"", "--model x", Writes("search.yaml", "id: x")),
    case(
        "search --plan-only --slo \"ttft p50 90ms\" --model x --url {dead}",
        "--engine vllm",
        Writes("search.yaml", "engine: vllm"),
    ),
    case(
        "search --plan-only --slo \"ttft p50 90ms\" --model x --url {dead}",
        "--api completions",
        Writes("search.yaml", "api: completions"),
    ),
    case(
        "search --plan-only --slo \"ttft p50 90ms\" --model x --url {dead}",
        "--api-key-env HOME",
        Writes("search.yaml", "{ secret: env:HOME }"),
    ),
    case("search --plan-only --slo \"ttft p50 90ms\"", "--of batch-size", Writes("search.yaml", "batch_size: { from")),
    case("search --plan-only --slo \"ttft p50 90ms\"", "--from 3", Writes("search.yaml", "from: 3,")),
    case("search --plan-only --slo \"ttft p50 90ms\"", "--to 30", Writes("search.yaml", "to: 30,")),
    case("search --plan-only --slo \"ttft p50 90ms\"", "--within 20%", Writes("search.yaml", "within: 20%")),
    case("search --plan-only --slo \"ttft p50 90ms\"", "--measure 7s", Writes("search.yaml", "for: 7s,")),
    case("search --plan-only --slo \"ttft p50 90ms\"", "--confirm 8m", Writes("search.yaml", "confirm: 8m")),
    case("search --plan-only --slo \"ttft p50 90ms\"", "--name mine", Writes("search.yaml", "name: mine")),
    case("search --plan-only --slo \"ttft p50 90ms\"", "--output new.yaml", Writes("new.yaml", "p50: 90ms")),
    case("search --plan-only --slo \"ttft p50 90ms\" -o taken", "--force", Writes("taken", "p50: 90ms")),
    case("search --slo \"ttft p50 1ms\" --of batch-size --measure 1s", "--plan-only", Omits("run to do")),
    case("search --slo \"ttft p50 1ms\" --of batch-size --measure 1s", "--results new", Writes("new/runs", "")),
    case(
        "search --slo \"ttft p50 1ms\" --of batch-size --measure 1s",
        "--progress json",
        Prints("\"event\":\"committed\""),
    ),
    case("search --slo \"ttft p50 1ms\" --of batch-size --measure 1s", "--quiet", Omits("run to do")),
    case(
        "search --slo \"ttft p50 1ms\" --of batch-size --measure 1s --results leased",
        "--no-exec",
        Prints("--no-exec: 1 command would be executed on this machine: `true` (stop of gone)"),
    )
    .ends(2),
];

const PROBE: &[Case] = &[
    case("probe plan.yaml", "--set \"endpoints.a={ url: '{url}' }\"", Prints("a: ready")),
    case("probe inside/plan.yaml", "--allow-outside", Prints("a: embedded")),
    case("probe plan.yaml", "--format json", Prints("\"state\": \"embedded\"")),
    case(
        "probe plan.yaml --set \"endpoints.a={ url: '{url}', api_key: { secret: { command: [echo, key], valid: 1h } } }\"",
        "--no-exec",
        Prints("--no-exec: 1 command would be executed on this machine: `echo key` (secret of a)"),
    )
    .ends(2),
];

/// Calibrations measure this machine, so they take their time, and some cases show several flags at once.
const CALIBRATE: &[Case] = &[
    case("calibrate plan.yaml --no-search --for 100ms", "--set sweeps.first.matrix.batch_size=3", Prints("batch 3")),
    case("calibrate inside/plan.yaml --no-search --for 100ms", "--allow-outside", Prints("batch 1")),
    case(
        "calibrate --no-search --for 100ms",
        "--batch-size 3 --prompt-tokens 70 --output-tokens 4 --ttft 3ms --itl 2ms",
        Prints("batch 3 · 70 → 4 tokens · TTFT 3ms, ITL 2ms"),
    ),
    case("calibrate --no-search --for 100ms", "--qps 90 --output-tokens 4", Prints("90 qps")),
    case("calibrate --no-search --within 1s --batch-size 2 --output-tokens 4", "--for 100ms", Prints("calibration\n")),
    case("calibrate --no-search --for 100ms --batch-size 2 --output-tokens 4", "--within 1ms", Ends).ends(2),
    case(
        "calibrate --for 100ms --within 300ms --batch-size 2 --output-tokens 4 --format json",
        "--no-search",
        Prints("\"searches\": []"),
    ),
    case(
        "calibrate --no-search --for 100ms --batch-size 2 --output-tokens 4",
        "--format json",
        Prints("\"calibration\": {"),
    ),
    case(
        "calibrate --no-search --for 100ms --batch-size 2 --output-tokens 4",
        "--results new",
        Writes("new/calibrations", ""),
    ),
    case(
        "calibrate --no-search --for 100ms --batch-size 2 --output-tokens 4",
        "--verbose",
        Prints("events/s: TTFT error"),
    ),
    case("calibrate --no-search --for 100ms --batch-size 2 --output-tokens 4", "--quiet", Omits("saved as")),
];

/// Each of these cases comes after `SUBMITTED`. The two jobs of the first sweep have ended, and the other one waits.
const CLUSTER: &[Case] = &[
    case("submit plan.yaml --dry-run", "--on slurm", Prints("#!/bin/bash")),
    case("submit plan.yaml --on kubernetes", "--dry-run", Prints("# kubectl apply -f plan.yaml")),
    case("submit plan.yaml --on slurm --dry-run", "--set name=kestrel", Prints("kestrel")),
    case("submit inside/plan.yaml --on slurm --dry-run", "--allow-outside", Prints("#!/bin/bash")),
    case("submit plan.yaml --on kubernetes", "--results new", Writes("new/submit/0001/job-2.yaml", "kind: Job")),
    case("submit plan.yaml --on kubernetes", "--format json", Prints("\"elements\": [")),
    case("status plan.yaml --results there", "--set sweeps.first.repeats=2", Prints("0 of 2")).ends(6),
    case("status inside/plan.yaml", "--allow-outside", Prints("not submitted")).ends(6),
    case("status plan.yaml --results there", "--advance", Prints("a: second  queued")).ends(6),
    case("status plan.yaml", "--results there", Prints("COMPLETED")).ends(6),
    case("status plan.yaml --results there", "--format json", Prints("\"queue\": \"COMPLETED\"")).ends(6),
    case("cancel plan.yaml", "--results there", Omits("contains no submission")),
    case("cancel plan.yaml --results there", "--format json", Prints("\"cancelled\": [")),
];

const SUBMITTED: &str = "submit plan.yaml --on kubernetes --results there";

/// A stand-in for kubectl: it keeps the names of jobs, of which the first two end at once.
const KUBECTL: &str = r#"#!/bin/sh
cd "$(dirname "$0")" || exit 1
complete='{ "conditions": [{ "type": "Complete", "status": "True" }] }'
case $1 in
  apply)
    name=$(sed -n 's/^  name: //p' "$3" | head -n 1)
    case $(head -n 5 "$3") in *"kind: Job"*) ;; *) exit 0 ;; esac
    case $name in *-2) echo '{}' ;; *) echo "$complete" ;; esac > "$name.job"
    ;;
  get)
    comma=
    printf '{"items":['
    for job in *.job; do
      [ -e "$job" ] || continue
      printf '%s{"metadata":{"name":"%s"},"status":%s}' "$comma" "${job%.job}" "$(cat "$job")"
      comma=,
    done
    printf ']}'
    ;;
esac
"#;

/// The plan that is submitted, except for the head and the endpoints.
const PARTS: &str = "models: { m: { id: tiny } }
scenarios: { s: { prompt_tokens: 20, output_tokens: 2 } }
phases: { fill: 0s, stabilize: 0s, measure: 200ms, drain: 1s }
sweeps:
  first: { matrix: { endpoint: [a, b], model: [m], scenario: [s], batch_size: [1] } }
  second: { after: first, matrix: { endpoint: [a], model: [m], scenario: [s], batch_size: [2] } }
";

/// A plan whose first sweep fails because its server does not respond.
const DEAD: &str = "sweepline: 1
name: dead
endpoints:
  a: { engine: mock }
  dead: { url: 'URL', ready: { within: 0s } }
models: { m: { id: tiny } }
scenarios: { s: { prompt_tokens: 20, output_tokens: 2 } }
phases: { fill: 0s, stabilize: 0s, measure: 200ms, drain: 1s }
sweeps:
  first: { matrix: { endpoint: [dead], model: [m], scenario: [s], batch_size: [1] } }
  second: { after: first, matrix: { endpoint: [a], model: [m], scenario: [s], batch_size: [1] } }
";

/// The cases of this file.
pub const CASES: &[&[Case]] = &[RUN, SEARCH, PROBE, CALIBRATE, CLUSTER];

/// Returns the record of a server that an earlier sweep on this machine left running.
fn lease() -> serde_json::Value {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    serde_json::json!({
        "endpoint": "gone", "host": host, "boot": "earlier", "supervisor": 1, "supervisor_started": 0, "server": 1,
        "mark": "gone", "command": ["true"], "stop": ["true"], "stop_within_ms": 10, "folder": ".", "env": {},
        "secret_references": {},
    })
}

#[test]
fn flags_change_what_is_run() {
    let mut prepared = plans::prepared();
    let server = Server::start(&prepared.lab, &["--model", "tiny"]);
    prepared.lab.write("leased/servers/gone.lease.json", &lease().to_string());
    prepared.lab.write("dead.yaml", &DEAD.replace("URL", &super::dead_address()));
    prepared.values.push(("url", server.url()));
    prepared.values.push(("dead", super::dead_address()));
    for cases in [RUN, SEARCH, PROBE] {
        prepared.show(cases);
    }
}

#[test]
fn flags_change_what_is_calibrated() {
    let prepared = Prepared { new_lab: Lab::real_time, ..plans::prepared() };
    prepared.show(CALIBRATE);
}

#[test]
fn flags_change_what_a_cluster_does() {
    let lab = Lab::new();
    let launch = "launch: { command: [serve, '{{ port }}'], port: auto }";
    let server = format!("{{ engine: mock, {launch}, resources: {{ kubernetes: {{ image: i, claim: c }} }} }}");
    let site = format!("endpoints:\n  a: {server}\n  b: {server}\n");
    lab.write("site.yaml", &site);
    lab.write("plan.yaml", &format!("sweepline: 1\nname: parts\n{site}{PARTS}"));
    lab.write("inside/plan.yaml", &format!("sweepline: 1\nname: parts\nuse: [../site.yaml]\n{PARTS}"));
    let kubectl = lab.write("bin/kubectl", KUBECTL);
    std::fs::set_permissions(&kubectl, std::fs::Permissions::from_mode(0o755)).unwrap();
    let prepared = Prepared { first: Some(SUBMITTED), programs: Some("bin"), ..Prepared::new(lab) };
    prepared.show(CLUSTER);
}

#[test]
fn a_running_sweep_serves_metrics() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let endpoints = format!("endpoints: {{ a: {{ url: '{}' }}, b: {{ engine: mock }} }}\n", server.url());
    lab.write("plan.yaml", &format!("sweepline: 1\nname: long\n{endpoints}{}", PARTS.replace("200ms", "60s")));
    let stderr = lab.path().join("stderr");
    let mut command = lab.command(&["run", "plan.yaml", "--metrics-addr", "0"]);
    let sweep = Talking::start(&mut command, stderr.clone());
    sweep.wait_to_say("[1/3]");
    let text = std::fs::read_to_string(&stderr).unwrap();
    let address = text.lines().find_map(|line| line.split_once("metrics: ")).unwrap().1;
    let metrics = page(address).unwrap();
    assert!(metrics.contains("sweepline_"), "{metrics}");
}
