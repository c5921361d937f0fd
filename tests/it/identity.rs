//! Tests which settings determine the id of a run and which do not, through `preview`, `why` and the
//! runs that `run` executes.

use std::collections::BTreeMap;

use serde_json::Value;

use lab::{Lab, Server};

/// A closed and an open cell with every field that a plan can set, one per line.
const PLAN: &str = r#"sweepline: 1
name: identity
seed: 3
endpoints:
  demo:
    engine: mock
    api: chat
    http:
      version: 2
      streams: 64
    hardware:
      gpu: H100
      gpus: 8
    server:
      version: "1.0"
      flags:
        max_num_seqs: 256
    mock:
      ttft: 1ms
      itl: 1ms
      slots: 4
      prefill: 0s/token
      prefix_cache: 4096
      prefix_block: 8
      load: 0
      jitter: 0%
      seed: 1
models:
  m:
    id: tiny
    precision: bf16
scenarios:
  s:
    base: D
    prompt_tokens: 40
    output_tokens: 4
    system_tokens: 20
    turns: 2
    think: 20ms
    context_limit: 4096
    context_cut: end
    prefix:
      share: 50%
      tokens: 16
      groups: 2
      order: uniform
    ignore_eos: true
    temperature: 0
    top_p: 1
    presence_penalty: 0
    frequency_penalty: 0
    stop: [END]
    extra:
      top_k: 5
      seed: 7
stream: true
nonce: on
phases:
  fill: 20ms
  stabilize: 20ms
  measure:
    for: 200ms
    min_requests: 2
    at_most: 1s
  drain:
    for: 2s
    mode: keep
between:
  cooldown: 0s
timeouts:
  connect: 5s
  request: 10s
  stall: 4s
connections: warm
sweeps:
  closed:
    repeats: 1
    matrix:
      endpoint: [demo]
      model: [m]
      scenario: [s]
      batch_size: [2]
  open:
    arrivals: poisson
    matrix:
      endpoint: [demo]
      model: [m]
      scenario: [s]
      qps: [20]
      batch_size: [3]
"#;

/// Returns the ids of a plan's runs in order, without orphans.
fn ids(lab: &Lab, plan: &str) -> Vec<String> {
    preview(lab, plan).iter().filter(|run| run["state"] != "orphan").map(|run| text(&run["id"])).collect()
}

fn preview(lab: &Lab, plan: &str) -> Vec<Value> {
    lab.ok(&["preview", plan, "--format", "json"]).json()["runs"].as_array().unwrap().clone()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}")).to_owned()
}

/// Returns `plan` with the only occurrence of `old` replaced.
fn edited(plan: &str, old: &str, new: &str) -> String {
    assert_eq!(plan.matches(old).count(), 1, "{old:?} must occur once");
    plan.replace(old, new)
}

/// Returns line and column, from 1, of the first byte of `part`.
fn position(text: &str, part: &str) -> String {
    let at = text.find(part).unwrap();
    let line_start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    format!("{}:{}", text[..at].matches('\n').count() + 1, at - line_start + 1)
}

#[test]
fn what_is_only_said_or_read_names_nothing() {
    let lab = Lab::new();
    lab.write("plan.yaml", PLAN);
    let named = ids(&lab, "plan.yaml");
    assert_eq!(named.len(), 2);
    let changes = [
        ("comments", format!("# first\n{}# last\n", PLAN.replace("seed: 3\n", "seed: 3   # of all\n"))),
        ("name", edited(PLAN, "name: identity", "name: another")),
        (
            "hypothesis and notes",
            edited(PLAN, "seed: 3\n", "seed: 3\nhypothesis: It rains.\nnotes: |\n  Two\n  lines.\n"),
        ),
        (
            "sweep's hypothesis and notes",
            edited(PLAN, "    repeats: 1\n", "    repeats: 1\n    hypothesis: A.\n    notes: B.\n"),
        ),
        ("slo", edited(PLAN, "seed: 3\n", "seed: 3\nslo: { ttft: { p99: 500ms }, cost_per_million: 2.50 }\n")),
        ("goodput", edited(PLAN, "seed: 3\n", "seed: 3\ngoodput: { ttft: 500ms, tpot: 50ms }\n")),
        ("validity", edited(PLAN, "seed: 3\n", "seed: 3\nvalidity: { client_late: { suspect: 2%, invalid: 20% } }\n")),
        ("environment", edited(PLAN, "seed: 3\n", "seed: 3\nenvironment: ignore\n")),
        (
            "prices, bandwidth, interconnect",
            edited(
                PLAN,
                "      gpus: 8\n",
                "      gpus: 8\n      price_per_hour: 31.20\n      memory_bandwidth: 3.35TB/s\n      interconnect: nvlink\n",
            ),
        ),
        ("resource", edited(PLAN, "    api: chat\n", "    api: chat\n    resource: node-a\n")),
        ("parameters", edited(PLAN, "    id: tiny\n", "    id: tiny\n    parameters: 70.6e9\n")),
        ("description", edited(PLAN, "    base: D\n", "    base: D\n    description: Talk.\n")),
        ("name of the model", PLAN.replace("  m:\n", "  llama:\n").replace("[m]", "[llama]")),
        ("name of the scenario", PLAN.replace("  s:\n", "  talk:\n").replace("[s]", "[talk]")),
        ("name of the sweep", edited(PLAN, "  closed:\n", "  shut:\n")),
        ("how the generator is built", edited(PLAN, "seed: 3\n", "seed: 3\nengine: { threads: 2, timer: spin }\n")),
        ("and for one sweep", edited(PLAN, "    repeats: 1\n", "    repeats: 1\n    engine: { threads: 2 }\n")),
        ("the default of connections left out", edited(PLAN, "connections: warm\n", "")),
        ("anchor and alias", edited(&edited(PLAN, "ttft: 1ms", "ttft: &short 1ms"), "itl: 1ms", "itl: *short")),
        ("another spelling", edited(PLAN, "fill: 20ms", "fill: 0.02s")),
        ("a default left out", edited(PLAN, "    arrivals: poisson\n", "")),
        ("a model that nothing uses", edited(PLAN, "  m:\n", "  unused: { id: x }\n  m:\n")),
    ];
    for (what, plan) in changes {
        lab.write("changed.yaml", &plan);
        assert_eq!(ids(&lab, "changed.yaml"), named, "{what}");
    }
    let elsewhere = lab.ok(&["preview", "plan.yaml", "--format", "json", "--results", "other/folder"]).json();
    let elsewhere: Vec<String> = elsewhere["runs"].as_array().unwrap().iter().map(|run| text(&run["id"])).collect();
    assert_eq!(elsewhere, named, "another results folder");
}

#[test]
fn neither_order_nor_notation_names_anything() {
    let lab = Lab::new();
    lab.write("plan.yaml", PLAN);
    let value: Value = serde_yaml::from_str(PLAN).unwrap();
    lab.write("plan.toml", &toml::to_string(&value).unwrap());
    lab.write("turned.yaml", &serde_json::to_string(&turned(&value)).unwrap());
    let sorted = |plan: &str| {
        let mut ids = ids(&lab, plan);
        ids.sort();
        ids
    };
    assert_eq!(ids(&lab, "plan.toml"), ids(&lab, "plan.yaml"), "TOML");
    // The order of sweeps and axes determines only the order of runs, not the set of runs.
    assert_eq!(sorted("turned.yaml"), sorted("plan.yaml"), "keys reversed");
}

/// Returns the value with the keys of every table in reverse order.
fn turned(value: &Value) -> Value {
    match value {
        Value::Object(table) => table.iter().rev().map(|(key, value)| (key.clone(), turned(value))).collect(),
        other => other.clone(),
    }
}

const URL_PLAN: &str = "sweepline: 1
name: url
endpoints:
  demo:
    url: URL
    engine: vllm
    api: chat
models: { m: { id: tiny } }
scenarios: { s: { base: B1, output_tokens: 4 } }
phases: { fill: 20ms, stabilize: 20ms, measure: 200ms, drain: 2s }
sweeps:
  one: { matrix: { endpoint: [demo], model: [m], scenario: [s], batch_size: [2] } }
";

#[test]
fn an_address_and_a_key_name_nothing_but_engine_and_dialect_do() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let plan = URL_PLAN.replace("URL", &server.url());
    lab.write("plan.yaml", &plan);
    let named = ids(&lab, "plan.yaml");
    for other in ["http://127.0.0.1:1/v1", "http://localhost:1/v1", "https://example.org/base/v1"] {
        lab.write("moved.yaml", &plan.replace(&server.url(), other));
        assert_eq!(ids(&lab, "moved.yaml"), named, "{other}");
    }
    let quiet = [
        "api_key: { secret: env:KEY }",
        "insecure_tls: true",
        "retries: { runs: 0 }",
        "http: 1.1",
        "near: true",
        "host: gw.example",
        "proxy: http://127.0.0.1:1",
        "socket: a.sock",
    ];
    for line in quiet {
        lab.write("more.yaml", &edited(&plan, "    api: chat\n", &format!("    api: chat\n    {line}\n")));
        assert_eq!(ids(&lab, "more.yaml"), named, "{line}");
    }
    // The results themselves do not matter here, only that they exist.
    lab.run(&["run", "plan.yaml"]);
    assert_eq!(lab.runs().len(), 1);
    let changes = [
        ("endpoint.engine", "engine: ", "vllm", "sglang"),
        ("endpoint.api", "api: ", "chat", "completions"),
        ("load.batch_size", "batch_size: [", "2", "5"),
        ("phases.measure.for", "measure: ", "200ms", "300ms"),
    ];
    for (field, before, old, new) in changes {
        assert_why_names(&lab, &plan, field, (before, old, new), (old, new));
    }
    assert_why_names(&lab, &plan, "scenario.reuse", ("base: ", "B1", "A1"), ("none", "same_prompt"));
    let opened = edited(&plan, "batch_size: [2]", "qps: [20]");
    lab.write("open.yaml", &opened);
    let id = ids(&lab, "open.yaml").remove(0);
    assert_ne!(id, named[0]);
    let why = lab.ok(&["why", &id, "--plan", "open.yaml"]).stdout;
    let place = position(&opened, "matrix");
    assert!(why.contains(&format!("load.pattern: closed → open (open.yaml:{place})")), "{why}");
}

/// Changes one value of a committed plan; asserts that each new run is reported as that change, at its place.
/// In the plain suite, `preview` reports most of the changes; `why` says the same in more detail.
fn assert_why_names(lab: &Lab, plan: &str, field: &str, (before, old, new): (&str, &str, &str), shown: (&str, &str)) {
    let changed = edited(plan, &format!("{before}{old}"), &format!("{before}{new}"));
    lab.write("changed.yaml", &changed);
    let mut at = changed.find(&format!("{before}{new}")).unwrap();
    at += before.len();
    let marked = format!("{}\u{0}{}", &changed[..at], &changed[at..]);
    let place = format!("changed.yaml:{}", position(&marked, "\u{0}"));
    let sentence = format!("{field}: {} → {} ({place})", shown.0, shown.1);
    let mut new_runs = preview(lab, "changed.yaml");
    new_runs.retain(|run| run["state"] == "new");
    assert!(!new_runs.is_empty(), "{field}: another id");
    for run in new_runs {
        let reason = text(&run["reason"]);
        assert_eq!(reason, format!("changed from the nearest result: {sentence}"), "{field}: nothing else changed");
        if !lab::is_whole() && !field.starts_with("load") {
            continue;
        }
        let id = text(&run["id"]);
        let why = lab.ok(&["why", &id, "--plan", "changed.yaml", "--format", "json"]).json();
        let [change] = &why["changed"].as_array().unwrap()[..] else { panic!("{field}: only it changed: {why}") };
        assert_eq!(text(&change["field"]), field, "{why}");
        assert_eq!((text(&change["old"]), text(&change["new"])), (shown.0.to_owned(), shown.1.to_owned()), "{field}");
        assert_eq!(text(&change["place"]), place, "{field}");
        let told_text = lab.ok(&["why", &id[..12], "--plan", "changed.yaml"]).stdout;
        assert!(told_text.contains(&sentence), "{sentence}: {told_text}");
    }
}

#[test]
fn each_hashed_field_makes_another_run_and_why_points_at_it() {
    let lab = Lab::new();
    lab.write("plan.yaml", PLAN);
    // The results themselves do not matter here, only that they exist.
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_eq!(lab.runs().len(), 2, "{}", ended.stderr);
    // The field, the text before the value, the old and the new value; if `why` shows the values
    // differently, also that form.
    let plain = [
        ("seed", "name: identity\nseed: ", "3", "4"),
        ("endpoint.api", "api: ", "chat", "completions"),
        ("endpoint.gpu", "gpu: ", "H100", "A100"),
        ("endpoint.gpus", "gpus: ", "8", "4"),
        ("endpoint.http.streams", "streams: ", "64", "32"),
        ("endpoint.server.flags.max_num_seqs", "max_num_seqs: ", "256", "128"),
        ("endpoint.mock.ttft", "ttft: ", "1ms", "2ms"),
        ("endpoint.mock.itl", "itl: ", "1ms", "2ms"),
        ("endpoint.mock.slots", "slots: ", "4", "5"),
        ("endpoint.mock.prefill", "prefill: ", "0s/token", "1ms/token"),
        ("endpoint.mock.prefix_cache", "prefix_cache: ", "4096", "8192"),
        ("endpoint.mock.prefix_block", "prefix_block: ", "8", "32"),
        ("endpoint.mock.load", "load: ", "0", "0.5"),
        ("endpoint.mock.jitter", "jitter: ", "0%", "10%"),
        ("endpoint.mock.seed", "jitter: 0%\n      seed: ", "1", "2"),
        ("model.id", "id: ", "tiny", "small"),
        ("model.precision", "precision: ", "bf16", "fp8"),
        ("scenario.prompt_tokens", "prompt_tokens: ", "40", "41"),
        ("scenario.output_tokens", "output_tokens: ", "4", "5"),
        ("scenario.system_tokens", "system_tokens: ", "20", "30"),
        ("scenario.turns", "turns: ", "2", "3"),
        ("scenario.think", "think: ", "20ms", "30ms"),
        ("scenario.context_limit", "context_limit: ", "4096", "8192"),
        ("scenario.context_cut", "context_cut: ", "end", "oldest_turns"),
        ("scenario.prefix.share", "share: ", "50%", "60%"),
        ("scenario.prefix.tokens", "share: 50%\n      tokens: ", "16", "32"),
        ("scenario.prefix.groups", "groups: ", "2", "3"),
        ("scenario.prefix.order", "order: ", "uniform", "zipf"),
        ("shaping.ignore_eos", "ignore_eos: ", "true", "false"),
        ("shaping.temperature", "temperature: ", "0", "0.7"),
        ("shaping.top_p", "top_p: ", "1", "0.9"),
        ("shaping.presence_penalty", "presence_penalty: ", "0", "0.1"),
        ("shaping.frequency_penalty", "frequency_penalty: ", "0", "0.2"),
        ("shaping.extra.top_k", "top_k: ", "5", "6"),
        ("shaping.extra.seed", "top_k: 5\n      seed: ", "7", "8"),
        ("shaping.stream", "stream: ", "true", "false"),
        ("phases.fill", "fill: ", "20ms", "30ms"),
        ("phases.stabilize", "stabilize: ", "20ms", "30ms"),
        ("phases.measure.for", "measure:\n    for: ", "200ms", "300ms"),
        ("phases.measure.min_requests", "min_requests: ", "2", "3"),
        ("phases.measure.at_most", "at_most: ", "1s", "2s"),
        ("phases.drain.for", "drain:\n    for: ", "2s", "3s"),
        ("phases.drain.mode", "mode: ", "keep", "stop"),
        ("between.cooldown", "cooldown: ", "0s", "1s"),
        ("timeouts.connect", "connect: ", "5s", "6s"),
        ("timeouts.request", "request: ", "10s", "20s"),
        ("timeouts.stall", "stall: ", "4s", "3s"),
        ("connections", "connections: ", "warm", "cold"),
        ("load.batch_size", "scenario: [s]\n      batch_size: [", "2", "4"),
        ("load.qps", "qps: [", "20", "30"),
        ("load.cap", "qps: [20]\n      batch_size: [", "3", "4"),
        ("load.arrivals", "arrivals: ", "poisson", "constant"),
    ];
    let mut seen: Vec<&str> = Vec::new();
    for (field, before, old, new) in plain {
        assert_why_names(&lab, PLAN, field, (before, old, new), (old, new));
        seen.push(field);
    }
    let shown = [
        ("endpoint.server.version", ("version: ", "\"1.0\"", "\"1.1\""), ("1.0", "1.1")),
        ("shaping.nonce", ("nonce: ", "on", "off"), ("true", "false")),
        ("shaping.nonce", ("nonce: ", "on", "run"), ("true", "run")),
        ("shaping.stop", ("", "stop: [END]", "stop: [STOP]"), ("[\"END\"]", "[\"STOP\"]")),
    ];
    for (field, change, shown) in shown {
        assert_why_names(&lab, PLAN, field, change, shown);
        seen.push(field);
    }
    let cold = PLAN.replace("    turns: 2\n", "    turns: 2\n    cache: cold\n");
    assert_ne!(ids(&lab, "plan.yaml"), {
        lab.write("cold.yaml", &cold);
        ids(&lab, "cold.yaml")
    });
    lab.write("warm.yaml", &cold.replace("cache: cold", "cache: warm"));
    assert_eq!(ids(&lab, "plan.yaml"), ids(&lab, "warm.yaml"), "warm is the default");
    lab.write("one.yaml", &edited(PLAN, "      version: 2\n      streams: 64\n", "      version: 1.1\n"));
    assert_ne!(ids(&lab, "plan.yaml"), ids(&lab, "one.yaml"), "endpoint.http");
    // Each entry of the identity is in one of the lists, is tested elsewhere in this file, or is
    // listed here with a reason.
    let elsewhere = [
        "hash",
        "measurement",
        "endpoint.name",
        "endpoint.engine",
        "endpoint.http",
        "load.pattern",
        "repeat",
        "scenario.reuse",
    ];
    let all: BTreeMap<String, ()> = ids(&lab, "plan.yaml")
        .iter()
        .flat_map(|id| {
            let why = lab.ok(&["why", id, "--plan", "plan.yaml", "--format", "json"]).json();
            why["identity"].as_object().unwrap().keys().cloned().map(|key| (key, ())).collect::<Vec<_>>()
        })
        .collect();
    for field in all.keys() {
        assert!(seen.contains(&field.as_str()) || elsewhere.contains(&field.as_str()), "{field} has no test");
    }
    assert_why_tells_names_patterns_and_repeats(&lab);
}

fn assert_why_tells_names_patterns_and_repeats(lab: &Lab) {
    let change = |plan: &str, field: &str| -> Vec<Value> {
        lab.write("changed.yaml", plan);
        let new: Vec<Value> = preview(lab, "changed.yaml").into_iter().filter(|run| run["state"] == "new").collect();
        let find = |run: &Value| {
            let why = lab.ok(&["why", &text(&run["id"]), "--plan", "changed.yaml", "--format", "json"]).json();
            why["changed"].as_array().unwrap().iter().find(|change| change["field"] == field).cloned()
        };
        new.iter().filter_map(find).collect()
    };
    let renamed = PLAN.replace("  demo:\n", "  other:\n").replace("[demo]", "[other]");
    let told = change(&renamed, "endpoint.name");
    assert_eq!(told.len(), 2, "both runs have a new name of the endpoint");
    assert!(told.iter().all(|told| told["old"] == "demo" && told["new"] == "other"));
    assert_eq!(told[0]["place"], format!("changed.yaml:{}", position(&renamed, "other]")));
    let repeated = edited(PLAN, "repeats: 1", "repeats: 2");
    let told = change(&repeated, "repeat");
    assert_eq!(told.len(), 1, "only the second repeat is new");
    assert_eq!((&told[0]["old"], &told[0]["new"]), (&Value::from("0"), &Value::from("1")));
    assert_eq!(told[0]["place"], format!("changed.yaml:{}", position(&repeated, "2\n    matrix")));
    let added = edited(PLAN, "        max_num_seqs: 256\n", "        max_num_seqs: 256\n        chunked: true\n");
    let told = change(&added, "endpoint.server.flags.chunked");
    assert_eq!(told.len(), 2);
    assert_eq!((&told[0]["old"], &told[0]["new"]), (&Value::Null, &Value::from("true")));
}

const EDITED: &str = "sweepline: 1
name: edited
endpoints: { demo: { engine: mock, mock: { ttft: 1ms, itl: 1ms } } }
models: { m: { id: tiny } }
scenarios: { s: { base: B1, output_tokens: 4 } }
phases: { fill: 20ms, stabilize: 20ms, measure: 200ms, drain: 2s }
sweeps:
  rates:
    matrix: { endpoint: [demo], model: [m], scenario: [s], qps: [30, 40, 50] }
";

/// Returns values that distinguish a file from its replacement: file id, time of the last change, content.
fn fingerprints(lab: &Lab) -> BTreeMap<String, (u64, i64, Vec<u8>)> {
    use std::os::unix::fs::MetadataExt;
    let print = |run: &lab::Run| {
        let file = run.dir.join("run.json");
        let metadata = std::fs::metadata(&file).unwrap();
        (metadata.ino(), metadata.mtime_nsec(), std::fs::read(&file).unwrap())
    };
    lab.runs().iter().map(|(id, run)| (id.clone(), print(run))).collect()
}

fn states(lab: &Lab, plan: &str) -> BTreeMap<String, (String, String)> {
    let entry = |run: &Value| (text(&run["id"])[..16].to_owned(), (text(&run["state"]), text(&run["reason"])));
    preview(lab, plan).iter().map(entry).collect()
}

#[test]
fn an_edited_value_runs_alone() {
    let lab = Lab::new();
    lab.write("plan.yaml", EDITED);
    let before = states(&lab, "plan.yaml");
    assert!(before.values().all(|(state, reason)| state == "new" && reason == "never committed"), "{before:?}");
    lab.run(&["run", "plan.yaml"]);
    let old = fingerprints(&lab);
    assert_eq!(old.len(), 3);
    assert!(
        states(&lab, "plan.yaml")
            .values()
            .all(|(state, reason)| state == "cached" && reason.starts_with("committed 2"))
    );

    let changed = edited(EDITED, "50", "60");
    lab.write("plan.yaml", &changed);
    let now = states(&lab, "plan.yaml");
    let count = |wanted: &str| now.values().filter(|(state, _)| state == wanted).count();
    assert_eq!((count("new"), count("cached"), count("orphan")), (1, 2, 1), "{now:?}");
    let (new, (_, reason)) = now.iter().find(|(_, (state, _))| state == "new").unwrap();
    let place = format!("plan.yaml:{}", position(&changed, "60]"));
    assert_eq!(reason, &format!("changed from the nearest result: load.qps: 50 → 60 ({place})"));

    let ended = lab.run(&["run", "plan.yaml"]);
    assert!(ended.stderr.contains("1 run to do (2 are already done)"), "{}", ended.stderr);
    let after = fingerprints(&lab);
    assert_eq!(after.len(), 4, "the old result remains");
    assert!(after.contains_key(new));
    assert!(old.iter().all(|(id, print)| after[id] == *print), "existing results are untouched");
    assert_eq!(lab.run(&["run", "plan.yaml"]).stderr.matches("started").count(), 0);
    let orphan = now.iter().find(|(_, (state, _))| state == "orphan").unwrap().0;
    let why = lab.ok(&["why", orphan, "--plan", "plan.yaml"]);
    assert!(why.stdout.starts_with("orphan: "), "{}", why.stdout);
}

#[test]
fn corrupt_and_forced_runs_are_redone() {
    let lab = Lab::new();
    lab.write("plan.yaml", EDITED);
    lab.run(&["run", "plan.yaml"]);
    let old = fingerprints(&lab);
    let ids: Vec<&String> = old.keys().collect();
    let run = |id: &str| lab.results().join("runs").join(id);
    std::fs::write(run(ids[0]).join("requests.parquet"), b"short").unwrap();
    std::fs::write(run(ids[1]).join("run.json"), b"{").unwrap();
    std::fs::remove_file(run(ids[2]).join("run.json")).unwrap();
    let now = states(&lab, "plan.yaml");
    for (id, words) in
        [(ids[0], "requests.parquet has 5 bytes"), (ids[1], "run.json is damaged"), (ids[2], "run.json is missing")]
    {
        let (state, reason) = &now[id];
        assert_eq!(state, "redo", "{now:?}");
        assert!(reason.starts_with("corrupt: ") && reason.contains(words), "{reason}");
        let why = lab.ok(&["why", id, "--plan", "plan.yaml"]).stdout;
        assert!(why.contains(&format!("redo: {reason}")), "{why}");
    }
    lab.run(&["run", "plan.yaml"]);
    lab.ok(&["verify"]);
    let mended = fingerprints(&lab);
    assert_eq!(mended.len(), 3);
    let superseded = std::fs::read_dir(lab.results().join("superseded")).unwrap().count();
    assert_eq!(superseded, 3, "damaged results are set aside");

    let ended = lab.run(&["run", "plan.yaml", "--force", "--only", "qps == 40"]);
    assert!(ended.stderr.contains(": forced"), "{}", ended.stderr);
    let forced = fingerprints(&lab);
    let changed: Vec<&String> = mended.keys().filter(|id| mended[*id] != forced[*id]).collect();
    assert_eq!(changed.len(), 1, "only the selected run was repeated");
    let again = &lab.runs()[changed[0]].json;
    assert_eq!(again["spec"]["load"]["open"]["qps"], 40, "{}", again["spec"]["load"]);
}
