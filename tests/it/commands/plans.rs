//! Cases of the commands that read and write plans.

use lab::{Lab, Server};

use super::cases::Effect::{Ends, Omits, Prints, Writes};
use super::cases::{Case, Prepared, case};

/// Two servers, in a part that other plans can use too.
const SITE: &str = "endpoints:
  a: { engine: mock, mock: { ttft: 2ms, itl: 1ms } }
  b: { engine: mock, mock: { ttft: 2ms, itl: 1ms } }
";

/// The rest of the plan.
const REST: &str = "models: { m: { id: tiny } }
scenarios: { s: { prompt_tokens: 20, output_tokens: 2 } }
phases: { fill: 0s, stabilize: 0s, measure: 200ms, drain: 1s }
sweeps:
  first: { matrix: { endpoint: [a, b], model: [m], scenario: [s], batch_size: [1] } }
  second: { matrix: { endpoint: [a, b], model: [m], scenario: [s], qps: [50] } }
";

/// Returns a folder with plans. The first sweep of `plan.yaml` has results, and the only run of `empty.yaml` is
/// invalid because its window has no request.
pub fn prepared() -> Prepared {
    let lab = Lab::new();
    let plan = |name: &str, rest: &str| format!("sweepline: 1\nname: {name}\n{SITE}{rest}");
    lab.write("site.yaml", SITE);
    lab.write("plan.yaml", &plan("cases", REST));
    lab.write("inside/plan.yaml", &format!("sweepline: 1\nname: cases\nuse: [../site.yaml]\n{REST}"));
    lab.write("edited.yaml", &plan("cases", &REST.replace("batch_size: [1]", "batch_size: [4]")));
    let (phases, _) = REST.split_once("sweeps:").unwrap();
    let idle = "sweeps: { idle: { matrix: { endpoint: [a], model: [m], scenario: [s], qps: [0.01] } } }\n";
    lab.write("empty.yaml", &plan("empty", &format!("{}{idle}", phases.replace("200ms", "10ms"))));
    lab.write("broken.yaml", "sweepline: 1\nname: broken\nendpoints: {}\nmodels: {}\nsweeps: {}\ntypo: 1\n");
    lab.write("taken", "Mine.\n");
    lab.ok(&["run", "plan.yaml", "-q", "--only", "sweep == 'first'"]);
    assert_eq!(lab.run(&["run", "empty.yaml", "-q"]).code, Some(3), "its run is invalid");
    lab.ok(&["freeze", "plan.yaml", "--set", "seed=6", "-o", "old.lock"]);
    Prepared::new(lab)
}

const CHECK: &[Case] = &[
    case("check plan.yaml", "--strict", Ends).ends(2),
    case("check plan.yaml", "--set typo=1", Prints("unknown key `typo`")).ends(2),
    case("check inside/plan.yaml", "--allow-outside", Prints("inside/plan.yaml: ok")),
    case("check plan.yaml", "--format json", Prints("\"diagnostics\": [")),
    case("check plan.yaml --set sweeps.first.matrix.batch_size=5000", "--results measured", Prints("M018")),
    case("check plan.yaml", "--color always", Prints("\u{1b}[")),
    case("explain M001", "", Prints("M001: the warm-up is too short")),
];

const PREVIEW: &[Case] = &[
    case("preview plan.yaml", "--set sweeps.first.repeats=3", Prints("6 new")),
    case("preview inside/plan.yaml", "--allow-outside", Prints("in all: 2 new, 2 cached")),
    case("preview plan.yaml", "--frozen old.lock", Prints("old.lock")).ends(2),
    case("preview plan.yaml", "--only sweep=='first'", Omits("second")),
    case("preview plan.yaml", "--skip sweep=='second'", Omits("second")),
    case("preview plan.yaml", "--force", Prints("forced")),
    case("preview empty.yaml", "--redo invalid", Prints("its verdict is invalid")),
    case("preview plan.yaml", "--all", Prints("state   run       sweep")),
    case("preview plan.yaml", "--probe", Prints("a: embedded")),
    case("preview plan.yaml", "--exit-code", Ends).ends(10),
    case("preview plan.yaml --set phases.measure=60s", "--jobs 2", Prints("time                about 2m")),
    case("preview plan.yaml", "--format json", Prints("\"totals\": {")),
    case("preview plan.yaml", "--results nowhere", Prints("in all: 4 new")),
];

const GRAPH: &[Case] = &[
    case("graph plan.yaml", "--format text", Prints("probe     probe a")),
    case("graph plan.yaml --format text", "--results nowhere", Omits("done")),
    case("graph plan.yaml", "--set sweeps.first.matrix.batch_size=7", Prints("batch_size=7")),
    case("graph inside/plan.yaml", "--allow-outside", Prints("digraph sweepline {")),
    case("freeze plan.yaml", "--set seed=6", Prints("seed: 6")),
    case("freeze inside/plan.yaml", "--allow-outside", Prints("name: cases")),
    case("freeze plan.yaml", "--output plan.lock", Writes("plan.lock", "name: cases")),
    case("freeze plan.yaml -o taken", "--force", Writes("taken", "name: cases")),
    case("diff plan.yaml", "--set sweeps.first.matrix.batch_size=7", Prints("1 → 7")),
    case("diff plan.yaml inside/plan.yaml", "--allow-outside", Prints("4 kept")),
    case("diff plan.yaml edited.yaml --set phases.measure=60s", "--jobs 2", Prints("(about 1m00s)")),
    case("diff plan.yaml edited.yaml", "--format markdown", Prints("| ")),
    case("diff plan.yaml edited.yaml", "--results nowhere", Omits("are estimated from earlier results")),
    case("diff plan.yaml edited.yaml", "--explain", Prints("counting: the rules for requests")),
];

const NEW: &[Case] = &[
    case("new --model x", "--url {locked}", Prints("requires an API key")).ends(2),
    case("new --url {url}", "--model other", Prints("id: other")),
    case("new --url {dead} --model x", "--engine vllm", Prints("engine: vllm")),
    case("new --url {dead} --model x", "--api completions", Prints("api: completions")),
    case("new --url {locked}", "--api-key-env HOME", Prints("{ secret: env:HOME }")),
    case("new", "--batch-size 3,5", Prints("batch_size: [3, 5]")),
    case("new", "--qps 7", Prints("qps: [7]")),
    case("new", "--name mine", Prints("name: mine")),
    case("new", "--output new.yaml", Writes("new.yaml", "name: first-look")),
    case("new -o taken", "--force", Writes("taken", "name: first-look")),
];

const IMPORT: &[Case] = &[
    case("import bench.sh", "--output new.yaml", Writes("new.yaml", "m-random-1024-128")),
    case("import bench.sh -o taken", "--force", Writes("taken", "m-random-1024-128")),
    case("import bench.sh", "--format guidellm", Prints("guidellm")).ends(2),
    case("import bench.sh", "--strict", Prints("so no plan is written")).ends(2),
    case("import bench.sh", "--quick", Prints("quick: true")),
    case("import params.json", "--model a/b", Prints("id: a/b")),
    case("import bench.sh", "--url http://h:1/v1", Prints("url: http://h:1/v1")),
    case("import master.yaml", "--entry b-h100", Prints("name: b-h100")),
];

const OTHER: &[Case] = &[
    case("schema", "", Prints("\"title\": \"sweepline plan\"")),
    case("completions bash", "", Prints("complete -F _sweepline")),
    case("man", "", Prints(".TH sweepline 1")),
    case("man", "--output pages", Writes("pages/sweepline-run.1", ".TH")),
];

/// The cases of this file.
pub const CASES: &[&[Case]] = &[CHECK, PREVIEW, GRAPH, NEW, IMPORT, OTHER];

/// Returns an entry of a master file of InferenceX for a machine of its own.
fn entry(name: &str) -> String {
    format!(
        "{name}-h100:\n  image: vllm/vllm-openai:v0.21.0\n  model: m/{name}\n  model-prefix: m\n  runner: {name}-h100\n  \
         precision: fp8\n  framework: vllm\n  multinode: false\n  scenarios:\n    fixed-seq-len:\n    - isl: 1024\n      \
         osl: 1024\n      search-space:\n      - {{ tp: 8, conc-start: 4, conc-end: 16 }}\n"
    )
}

#[test]
fn flags_change_what_becomes_of_a_plan() {
    let mut prepared = prepared();
    let lab = &prepared.lab;
    let bench = "vllm bench serve --model m --request-rate 5 --num-prompts 300 --use-beam-search\n";
    lab.write("bench.sh", bench);
    lab.write("params.json", include_str!("../../import/named_params.json"));
    lab.write("master.yaml", &format!("{}{}", entry("a"), entry("b")));
    let calibration = ["--batch-size", "2", "--output-tokens", "3", "--no-search", "--for", "100ms"];
    lab.ok(&[&["calibrate", "-q", "--results", "measured"], &calibration[..]].concat());
    let other = Lab::new();
    let (open, locked) = (Server::start(lab, &["--model", "tiny"]), Server::start(&other, &["--api-key-env", "HOME"]));
    prepared.values.push(("url", open.url()));
    prepared.values.push(("locked", locked.url()));
    prepared.values.push(("dead", super::dead_address()));
    for cases in CASES {
        prepared.show(cases);
    }
}
