//! Checks the code blocks in README.md and docs/. Each is a command, a plan, or listed here with its check.
//! Outputs are reproduced, or their words are compared with the program's texts.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::docs_plans::{is_plan, keys_of_a_plan};
use super::docs_words::strange;
use lab::pages::Figures::{Exact, Vary};
use lab::pages::{Block, Figures, block, blocks, missing};
use lab::root;
use lab::sweeps::honest;
use lab::{Ended, Lab, Server};

/// A page and the beginning of a block on it.
type Name = (&'static str, &'static str);

/// A function that reproduces outputs, and the blocks with these outputs.
type Printed = (fn() -> String, &'static [(Name, Figures)]);

const PRINTED: [Printed; 9] = [
    (an_edit, &[(("README.md", "new     1 run "), Exact), (("README.md", "192 requests · "), Vary)]),
    (
        a_first_plan,
        &[
            (("docs/START.md", "--url http://127.0.0.1:8000: "), Exact),
            (("docs/START.md", "endpoints:\n  mock:\n    url: "), Exact),
            (("docs/START.md", "first-look (first.yaml) against "), Exact),
            (("docs/START.md", "02:33:40 first-look: "), Vary),
        ],
    ),
    (
        a_comparison,
        &[
            (("README.md", "metric                    old "), Vary),
            (("docs/ANSWERS.md", "endpoint scenario load "), Vary),
            (("docs/ANSWERS.md", "`new` against `old`: "), Vary),
            (("docs/DECISIONS.md", "<!-- sweepline:begin "), Vary),
        ],
    ),
    (a_cluster, &[(("docs/CLUSTERS.md", "$ sweepline submit "), Vary)]),
    (an_import, &[(("docs/COMING_FROM.md", "import: 23 settings "), Vary)]),
    (an_axis_of_another_tool, &[(("docs/DIAGNOSTICS.md", "error[E012]: "), Exact)]),
    (a_key_twice, &[(("docs/DIAGNOSTICS.md", "{ \"diagnostics\": "), Exact)]),
    (a_frozen_plan, &[(("docs/PLAN.md", "phases:\n  measure:\n    for: 20s"), Exact)]),
    (an_entry_of_a_data_set, &[(("docs/DATASETS.md", "{\"id\":\"a\","), Exact)]),
];

/// The check of a block that is not reproduced here.
enum Held {
    /// A test in this module reads the page.
    In(&'static str),
    /// The output takes minutes to produce, so only its words are checked, not its figures.
    Measured,
    /// The block does not come from sweepline.
    Foreign,
}

use Held::{Foreign, In, Measured};

/// Blocks that are checked elsewhere or not at all.
const LISTED: [(Name, Held); 25] = [
    (("README.md", "14:43:05 quickstart: "), In("readme")),
    (("README.md", "seen: requests wait "), In("readme")),
    (("docs/COMING_FROM.md", "vllm bench serve --model "), In("import_pages")),
    (("docs/COMING_FROM.md", "vllm bench sweep serve "), In("import_pages")),
    (("docs/COMING_FROM.md", "aiperf profile "), In("import_pages")),
    (("docs/COMING_FROM.md", "load: { type: constant"), In("import_pages")),
    (("docs/COMING_FROM.md", "python3 -m sglang.bench_serving "), In("import_docs")),
    (("docs/COMING_FROM.md", "guidellm run "), In("import_docs")),
    (("docs/COMING_FROM.md", "genai-bench benchmark "), In("import_docs")),
    (("docs/COMING_FROM.md", "export OPENAI_API_BASE="), In("import_docs")),
    (("docs/COMMANDS.md", "results/runs/<id>/run.json"), In("docs_layouts")),
    (("docs/SHARING.md", "runs/<id>.json"), In("docs_layouts")),
    (("docs/TELEMETRY.md", "select at_ns / 1e9 "), In("readers")),
    (("docs/SHARING.md", "error: s3://bench/x ignores "), In("sharing")),
    // These outputs took six and seven minutes to produce, or need another server.
    (("docs/RELEASE.md", "over runs: "), Measured),
    (("docs/RELEASE.md", "`candidate` against "), Measured),
    (("docs/SIZE.md", "to serve 500 requests/s "), Measured),
    (("docs/SEARCH.md", "limit: openai · "), Measured),
    // A formula, and editor and Prometheus settings.
    (("docs/CAPACITY.md", "tensor_parallel × memory_bandwidth"), Foreign),
    (("docs/COMMANDS.md", "# yaml-language-server: "), Foreign),
    (("docs/COMMANDS.md", "{ \"yaml.schemas\": "), Foreign),
    (("docs/COMMANDS.md", "vim.lsp.config("), Foreign),
    (("docs/COMMANDS.md", "#:schema "), Foreign),
    (("docs/DIAGNOSTICS.md", "{ \"label\": "), Foreign),
    (("docs/LIVE.md", "scrape_configs:"), Foreign),
];

/// The beginnings of command blocks; `docs` checks sweepline's commands.
const COMMANDS: [&str; 9] =
    ["sweepline ", "cargo ", "git ", "tail ", "for ", "host-a$ ", "ssh ", "SWEEPLINE_", "OTEL_"];

fn is_commands(block: &Block) -> bool {
    let first = block.lines.iter().find(|line| !line.is_empty() && !line.starts_with('#'));
    block.language == "sh" || first.is_some_and(|first| COMMANDS.iter().any(|begin| first.starts_with(begin)))
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap()
}

#[test]
fn every_block_is_a_command_a_plan_or_listed() {
    let keys = keys_of_a_plan(&Lab::new());
    let printed = PRINTED.iter().flat_map(|(_, outputs)| outputs.iter().map(|(name, _)| *name));
    let names: Vec<Name> = printed.chain(LISTED.iter().map(|(name, _)| *name)).collect();
    // Each entry identifies exactly one block.
    names.iter().for_each(|(page, begin)| drop(block(page, begin)));
    let is_known =
        |block: &Block| is_commands(block) || is_plan(block, &keys) || names.iter().any(|name| block.is(*name));
    let unknown: Vec<String> = blocks().iter().filter(|block| !is_known(block)).map(Block::place).collect();
    assert!(unknown.is_empty(), "not checked; list them in this file:\n{}", unknown.join("\n"));
    for ((page, _), held) in &LISTED {
        if let In(module) = held {
            assert!(
                read(&format!("tests/it/{module}.rs")).contains(page.trim_start_matches("docs/")),
                "{module}: {page}"
            );
        }
    }
}

#[test]
fn a_shell_reads_every_block_of_commands() {
    let lab = Lab::new();
    let mut wrong = Vec::new();
    for block in blocks().iter().filter(|block| is_commands(block)) {
        lab.write("block.sh", &(block.lines.join("\n") + "\n"));
        let output = Command::new("sh").args(["-n", "block.sh"]).current_dir(lab.path()).output().unwrap();
        if !output.status.success() {
            wrong.push(format!("{}: {}", block.place(), String::from_utf8_lossy(&output.stderr)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_output_of_the_docs_is_printed_again() {
    let printed = std::thread::scope(|scope| {
        let started: Vec<_> = PRINTED.iter().map(|(print, outputs)| (scope.spawn(print), outputs)).collect();
        let ended = started.into_iter().map(|(output, outputs)| (output.join().expect("printed"), outputs));
        ended.collect::<Vec<_>>()
    });
    let mut wrong = Vec::new();
    for (output, outputs) in &printed {
        for ((page, begin), figures) in outputs.iter() {
            let block = block(page, begin);
            let mut lines = missing(&block, output, *figures);
            lines.retain(|line| !(depends_on_the_machine(line) && strange(line).is_empty()));
            if !lines.is_empty() {
                wrong.push(format!("{}\nhas\n{}\nwhich is not in\n{output}", block.place(), lines.join("\n")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Outputs that take minutes to produce contain only words from the program's texts.
#[test]
fn the_words_of_measured_outputs_are_printed() {
    let mut wrong = Vec::new();
    for ((page, begin), _) in LISTED.iter().filter(|(_, held)| matches!(held, Measured)) {
        for line in &block(page, begin).lines {
            wrong.extend(strange(line).into_iter().map(|pair| format!("{page}: {line}: `{pair}` is not printed")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether this line may be missing from the output on a quiet or a busy machine, so that only its words are
/// checked.
fn depends_on_the_machine(line: &str) -> bool {
    ["note: ", "excluded: ", "`new` against `old`: 4 better, "].iter().any(|begin| line.starts_with(begin))
}

/// Prints the preview of a changed rate, and a run that is too short for its objective.
fn an_edit() -> String {
    const FILE: &str = "plans/quickstart.yaml";
    let (lab, plan) = (Lab::new(), read(FILE));
    let id = |plan: &str| {
        lab.write(FILE, plan);
        let preview =
            lab.ok(&["preview", FILE, "--only", "endpoint == 'lean' and qps == 60", "--format", "json"]).json();
        preview["runs"][0]["id"].as_str().unwrap()[..8].to_owned()
    };
    let edited = plan.replace("qps: [25, 50]", "qps: [25, 60]");
    let (whole, short) = (id(&edited), id(&edited.replace("measure: 3s", "measure: 400ms")));
    lab.write(FILE, &plan.replace("measure: 3s", "measure: 400ms"));
    let run = ["run", FILE, "--only", "endpoint == 'lean' and qps == 50", "--set", "slo={ ttft: { p99: 500ms } }"];
    let run = lab.run(&run);
    lab.write(FILE, &edited.replace("measure: 3s", "measure: 400ms"));
    let preview = lab.ok(&["preview", FILE, "--only", "endpoint == 'lean' and qps == 60"]).stdout;
    run.stderr + &preview.replace(&short, &whole)
}

/// Prints a first plan, its preview and its run.
fn a_first_plan() -> String {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let url = server.url().trim_end_matches("/v1").to_owned();
    let new = lab.ok(&["new", "--url", &url, "-o", "first.yaml"]).stderr;
    let plan = std::fs::read_to_string(lab.path().join("first.yaml")).unwrap();
    let preview = wide(&lab, &["preview", "first.yaml"]);
    let mut short = plan.replace("output_tokens: 256", "output_tokens: 16");
    for (long, brief) in [("fill: 30s", "20ms"), ("stabilize: 60s", "20ms"), ("measure: 120s", "400ms")] {
        assert!(short.contains(long), "{long}: {short}");
        short = short.replace(long, &format!("{}: {brief}", long.split(':').next().unwrap()));
    }
    lab.write("first.yaml", &short);
    let run = lab.run(&["run", "first.yaml"]);
    honest(&run);
    let text = [new, plan, preview, run.stderr, run.stdout].join("\n");
    text.replace(&url, "http://127.0.0.1:8000")
}

/// Prints the table of a sweep of two servers, their comparison and a decision. The servers are ten times as
/// fast as those in docs/ANSWERS.md and differ more.
fn a_comparison() -> String {
    let lab = Lab::new();
    let mut plan = block("docs/ANSWERS.md", "sweepline: 1\nname: engines").lines.join("\n");
    for (long, brief) in [
        ("ttft: 200ms, itl: 20ms", "ttft: 40ms, itl: 5ms, jitter: 20%"),
        ("ttft: 180ms, itl: 20ms", "ttft: 20ms, itl: 5ms, jitter: 20%"),
        ("fill: 200ms, stabilize: 200ms, measure: 2s", "fill: 20ms, stabilize: 50ms, measure: 400ms"),
        ("repeats: 5", "repeats: 4"),
    ] {
        assert!(plan.contains(long), "{long}: {plan}");
        plan = plan.replace(long, brief);
    }
    let quiet = "validity: { client_late: { suspect: 100%, invalid: 100% }, unsteady: { suspect: 100% } }";
    lab.write("engines.yaml", &format!("{plan}\n{quiet}\n"));
    let run = lab.run(&["run", "engines.yaml"]);
    honest(&run);
    let reason = ["--because", "Faster."];
    lab.ok(&[&["decide", "engines.yaml", "--accept", "endpoint == 'new'"], &reason[..]].concat());
    let record = std::fs::read_to_string(lab.path().join("engines.decision.md")).unwrap();
    [run.stdout, without_advice(&wide(&lab, &["compare", "engines.yaml"])), record].join("\n")
}

/// Returns a comparison on one line, without the number of repeats that noisy results would need.
fn without_advice(comparison: &str) -> String {
    let words = comparison.split_whitespace().collect::<Vec<_>>().join(" ");
    let part = |part: &str| match part.split_once(" repeats would detect 5 %") {
        Some((number, rest)) if number.parse::<u32>().is_ok() => rest.to_owned(),
        _ => format!("; {part}"),
    };
    words.split("; ").map(part).collect()
}

/// Prints the outputs for a plan on a two-node Slurm cluster whose programs are scripts.
fn a_cluster() -> String {
    let lab = Lab::new();
    let queue = "1|0|RUNNING|None|n1\\n1|1|RUNNING|None|n2\\n2|0|PENDING|Dependency|\\n";
    for (program, script) in [
        ("sbatch", "echo >> \"$0.jobs\"; wc -l < \"$0.jobs\"".to_owned()),
        ("squeue", format!("printf '{queue}'")),
        ("scancel", String::new()),
    ] {
        let file = lab.write(&format!("bin/{program}"), &format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let endpoint = "engine: mock, mock: { ttft: 1ms, itl: 1ms }, resources: { cpus: 4 }";
    lab.write(
        "plan.yaml",
        &format!(
            "sweepline: 1
name: two nodes
endpoints: {{ a: {{ {endpoint} }}, b: {{ {endpoint} }} }}
models: {{ m: {{ id: tiny }} }}
scenarios: {{ s: {{ base: B1, output_tokens: 4 }} }}
phases: {{ fill: 20ms, stabilize: 20ms, measure: 200ms, drain: 2s }}
sweeps:
  first: {{ matrix: {{ endpoint: [a, b], scenario: s, batch_size: [1, 2] }} }}
  second: {{ after: first, matrix: {{ endpoint: a, scenario: s, batch_size: 4 }} }}
"
        ),
    );
    let path = format!("{}:{}", lab.path().join("bin").display(), lab::path_with_program().display());
    let call = |args: &[&str]| {
        let ended = Ended::from(lab.command(args).env("PATH", &path).output().unwrap());
        format!("{}{}", ended.stdout, ended.stderr)
    };
    let submitted = call(&["submit", "plan.yaml", "--on", "slurm"]);
    honest(&lab.run(&["run", "plan.yaml", "--only", "batch_size == 1", "-q"]));
    [submitted, call(&["status", "plan.yaml"]), call(&["cancel", "plan.yaml"])].join("\n")
}

/// Prints the settings that an import does not map.
fn an_import() -> String {
    let lab = Lab::new();
    let rates = "--request-rate 5 --num-prompts 600";
    lab.write(
        "bench.sh",
        &format!(
            "MODEL=m\n\n# A rate\nvllm bench serve --model $MODEL --use-beam-search --lora-modules a b {rates}\n\n\n\
             vllm bench serve --model $MODEL --request-rate inf --num-prompts 100\n"
        ),
    );
    lab.ok(&["import", "bench.sh", "-o", "plan.yaml"]).stderr
}

/// Returns a plan whose sweep has these lines.
fn nightly(lines: &str) -> String {
    format!(
        "sweepline: 1\nname: nightly\nendpoints:\n  vllm: {{ url: http://127.0.0.1:8000/v1, engine: vllm }}\nmodels:\n  \
         llama: {{ id: tiny }}\nscenarios:\n  short: {{ base: B1 }}\nsweeps:\n  rates:\n{lines}"
    )
}

fn an_axis_of_another_tool() -> String {
    let lab = Lab::new();
    lab.write("plans/nightly.yaml", &nightly("    matrix:\n      rps: [1, 2, 4]\n"));
    let ended = lab.run(&["check", "plans/nightly.yaml"]);
    ended.stdout + &ended.stderr
}

fn a_key_twice() -> String {
    let lab = Lab::new();
    let lines = format!("    matrix:\n      qps: [1]\n\n    repeats: 3\n{}    repeats: 3\n", "\n".repeat(6));
    lab.write("plans/nightly.yaml", &nightly(&lines));
    lab.run(&["check", "--format", "json", "plans/nightly.yaml"]).stdout
}

fn a_frozen_plan() -> String {
    let lab = Lab::new();
    lab.write(
        "plan.yaml",
        "sweepline: 1\nname: set\nendpoints: { demo: { engine: mock } }\nmodels: { m: { id: small } }\n\
         vars: { measure: 120s }\nsweeps: { load: { matrix: { batch_size: [1, 64] } } }\n\nphases:\n  \
         measure: \"{{ measure }}\"\n",
    );
    lab.ok(&["freeze", "plan.yaml", "--set", "vars.measure=20s"]).stdout
}

fn an_entry_of_a_data_set() -> String {
    let lab = Lab::new();
    let entry = |id: &str, time: &str| {
        format!("{{\"id\":\"{id}\",\"messages\":[{{\"role\":\"user\",\"content\":\"Hi.\"}}],\"n\":4,\"t\":{time}}}\n")
    };
    lab.write("log.jsonl", &(entry("first", "1.0") + &entry("a", "1.25")));
    let map = "id=id,messages=messages,output_tokens=n,time=t";
    lab.ok(&["dataset", "convert", "log.jsonl", "--as", "columns", "--map", map, "-o", "out.jsonl"]);
    std::fs::read_to_string(lab.path().join("out.jsonl")).unwrap()
}

/// Returns the output of a command on a screen of 100 columns, as in the docs.
fn wide(lab: &Lab, args: &[&str]) -> String {
    let ended = Ended::from(lab.command(args).env("COLUMNS", "100").output().unwrap());
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    ended.stdout
}
