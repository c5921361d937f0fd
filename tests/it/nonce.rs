//! Tests the nonce: no attempt sends the prompts of another attempt, in any results folder, and a record
//! contains all inputs from which its bodies were generated.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};
use sweepline::plan::Api;
use sweepline::store::RunRecord;
use sweepline::workload::{BodyWriter, Generator, NonceKey, RequestShape};

use lab::mock::Mock;
use lab::sweeps::honest;
use lab::{Lab, Run, Running};

/// Bodies by attempt, in the order of requests. The key is `run id-attempt`, plus a counter if the same
/// attempt exists in another folder.
type Sent = BTreeMap<String, Vec<String>>;

/// Returns the measured requests that a server logged, in the order of arrival.
fn requests(mock: &mut Mock) -> Vec<Value> {
    mock.terminate();
    let mut lines = mock.log_now();
    lines.retain(|line| !line["n"].is_null() && line["request_id"] != "sweepline-probe");
    lines.sort_by_key(|line| line["n"].as_u64());
    lines
}

fn sent(requests: &[Value]) -> Sent {
    let mut sent = Sent::new();
    let mut last = BTreeMap::<String, (u64, usize)>::new();
    for line in requests {
        let (attempt, number) = line["request_id"].as_str().unwrap().rsplit_once('-').unwrap();
        let number: u64 = number.parse().unwrap();
        let (before, round) = last.entry(attempt.to_owned()).or_insert((0, 0));
        // With one connection, the requests of an attempt arrive in order, and the next attempt starts
        // with 0 again.
        *round += usize::from(number == 0);
        assert!(number == 0 || number == *before + 1, "{attempt}: {number} after {before}");
        *before = number;
        let body = line["request"].as_str().unwrap().to_owned();
        sent.entry(format!("{attempt} {round}")).or_default().push(body);
    }
    sent
}

/// Returns the role and text of each message of a body.
fn messages(body: &str) -> Vec<(String, String)> {
    let body: Value = serde_json::from_str(body).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    body["messages"].as_array().unwrap().iter().map(|one| (text(&one["role"]), text(&one["content"]))).collect()
}

/// Returns the nonce at the front of a body, and the texts after it.
fn cut(body: &str) -> (String, Vec<String>) {
    let mut texts: Vec<String> = messages(body).into_iter().map(|(_, text)| text).collect();
    let (nonce, rest) = texts[0].split_once("] ").unwrap_or_else(|| panic!("no nonce: {body}"));
    assert!(nonce.starts_with("[ref ") && nonce.len() == "[ref 482 773 194 205".len(), "{body}");
    let (nonce, rest) = (nonce.to_owned(), rest.to_owned());
    texts[0] = rest;
    (nonce, texts)
}

fn url(mock: &Mock) -> String {
    format!("http://127.0.0.1:{}/v1", mock.port)
}

fn runs_of(lab: &Lab, folder: &str) -> BTreeMap<String, RunRecord> {
    let folders = std::fs::read_dir(lab.path().join(folder).join("runs")).unwrap();
    let records = folders.map(|entry| RunRecord::read(&entry.unwrap().path()).unwrap());
    records.map(|record| (record.id.clone(), record)).collect()
}

/// Runs two nights into two folders. Returns `None` if the client stalled or was late in one of the
/// nights.
fn two_nights() -> Option<(Lab, Mock)> {
    let lab = Lab::new();
    // Every second run is slowed down; in the second night, these are the runs that were not slowed down in
    // the first. Differences between the nights thus have both signs, and the noise of a busy machine
    // cannot make them look like a systematic difference. Including the first probe, requests 1 to 81 are
    // the first night.
    let slowed = "slow:2@22-41,62-81,83-102,123-142";
    let flags = ["--ttft", "1ms", "--prefill", "0.05ms/token", "--prefix-cache", "10000000"];
    let mock = Mock::start(&[&flags[..], &["--no-cached-tokens", "--fault", slowed]].concat());
    let plan = format!(
        "sweepline: 1
name: nights
endpoints: {{ a: {{ url: \"{}\", engine: mock }} }}
models: {{ m: {{ id: tiny }} }}
scenarios: {{ s: {{ prompt_tokens: 400, output_tokens: 2 }} }}
validity: {{ client_late: {{ suspect: 100%, invalid: 100% }} }}
phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 50ms, min_requests: 20, at_most: 60s }}, drain: 60s }}
sweeps: {{ load: {{ matrix: {{ endpoint: a, model: m, scenario: s, batch_size: 1 }}, repeats: 4 }} }}
",
        url(&mock)
    );
    lab.write("plan.yaml", &plan);
    for night in ["first", "second"] {
        let ended = lab.run(&["run", "plan.yaml", "-q", "--results", night]);
        honest(&ended);
    }
    Some((lab, mock))
}

/// Measures one night, then another. Nights that the machine spoiled are repeated from the start,
/// because slowed requests are chosen by number.
#[test]
fn a_second_night_meets_nothing_of_the_first() {
    let (lab, mut mock) = (0..8).find_map(|_| two_nights()).expect("two nights without a stalled client");
    let compare =
        ["compare", "plan.yaml", "--results", "second", "--against", "first", "--metrics", "ttft_p50", "--gate"];
    let gate = lab.run(&compare);
    assert_eq!(gate.code, Some(0), "{}{}", gate.stdout, gate.stderr);
    assert!(gate.stdout.contains("no difference shown") && !gate.stdout.contains("faster"), "{}", gate.stdout);
    let answer = lab.ok(&[&compare[..], &["--format", "json"]].concat()).json();
    let test = &answer["families"][0]["cells"][0]["tests"][0];
    assert_eq!(
        (&test["metric"], &test["outcome"], &test["rounds"]),
        (&json!("ttft_p50"), &json!("not_shown"), &json!(4))
    );
    assert_eq!(answer["regressions"], 0);

    let [first, second] = ["first", "second"].map(|night| runs_of(&lab, night));
    assert!(first.keys().eq(second.keys()) && first.len() == 4);
    let seeds: BTreeSet<String> =
        first.values().chain(second.values()).map(|run| run.nonce_seed.unwrap().to_string()).collect();
    assert_eq!(seeds.len(), 8, "each attempt has its own nonce seed");
    for (id, run) in &first {
        assert_eq!((run.attempt, second[id].attempt), (1, 1));
        assert_eq!(run.generator_digest, second[id].generator_digest);
    }
    // No part of any prompt was in the cache, so the responses do not report cached tokens.
    let requests = requests(&mut mock);
    assert!(requests.iter().all(|line| line["cached_tokens"] == 0));
    let sent = sent(&requests);
    assert_eq!(sent.len(), 8);
    let bodies: BTreeSet<&String> = sent.values().flatten().collect();
    assert_eq!(bodies.len(), requests.len(), "no body was sent twice");
    for attempt in sent.keys().filter_map(|attempt| attempt.strip_suffix(" 1")) {
        let of = |night| sent[&format!("{attempt} {night}")].iter().map(|body| cut(body));
        assert_eq!(of(1).len().min(of(2).len()), 20);
        for ((one, texts), (other, others)) in of(1).zip(of(2)) {
            assert_ne!(one, other);
            assert_eq!(texts, others, "after the nonce, the texts of both nights are equal");
        }
    }
}

/// Returns a small plan for one server.
fn small(mock: &Mock, rest: &str) -> String {
    format!(
        "sweepline: 1
name: small
endpoints: {{ a: {{ url: \"{}\", engine: mock }} }}
models: {{ m: {{ id: tiny }} }}
validity: {{ client_late: {{ suspect: 100%, invalid: 100% }} }}
phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 20ms, min_requests: 12, at_most: 60s }}, drain: 60s }}
{rest}",
        url(mock)
    )
}

/// Rebuilds the bodies of a run from its `run.json` alone.
fn made_again(record: &RunRecord, requests: u64) -> Vec<String> {
    let spec = &record.spec;
    let key = NonceKey::new(record.nonce_seed.unwrap()).under(spec.shaping.nonce, None);
    let generator = Generator::new(&spec.scenario, spec.seed, spec.repeat, key);
    let shape = RequestShape {
        model: spec.model.id.clone(),
        api: Api::Chat,
        stream: spec.shaping.stream,
        ignore_eos: spec.shaping.ignore_eos,
        conversation: false,
        fields: spec.shaping.fields.clone(),
        extra: spec.shaping.extra.clone(),
    };
    let bodies = BodyWriter::new(shape);
    let body = |k| String::from_utf8(bodies.write(&[], &generator.request(k))).unwrap();
    (0..requests).map(body).collect()
}

#[test]
fn forced_reruns_and_deleted_folders_send_new_bodies_which_can_be_made_again() {
    for nonce in ["on", "run"] {
        let lab = Lab::new();
        let mut mock = Mock::start(&[]);
        let rest = "sweeps: { s: { matrix: { endpoint: a, model: m, scenario: [B1, C], batch_size: 1 } } }\n";
        lab.write("plan.yaml", &small(&mock, &format!("nonce: {nonce}\n{rest}")));
        let mut kept = Vec::new();
        for (round, force) in [(0, false), (1, true), (2, false)] {
            if round == 2 {
                // There is no trace of earlier results, so attempts start with 1 again.
                std::fs::remove_dir_all(lab.results()).unwrap();
            }
            let more = if force { &["--force"][..] } else { &[] };
            honest(&lab.run(&[&["run", "plan.yaml", "-q"], more].concat()));
            kept.extend(runs_of(&lab, "results").into_values());
        }
        assert_eq!(kept.iter().map(|run| run.attempt).collect::<Vec<_>>(), [1, 1, 2, 2, 1, 1]);
        let sent = sent(&requests(&mut mock));
        assert_eq!(sent.len(), 6);
        let all: Vec<&String> = sent.values().flatten().collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "no body was sent twice");
        let nonces = |bodies: &[String]| -> BTreeSet<String> { bodies.iter().map(|body| cut(body).0).collect() };
        for (attempt, bodies) in &sent {
            let own = nonces(bodies);
            let others = sent.iter().filter(|(other, _)| *other != attempt);
            assert!(others.map(|(_, bodies)| nonces(bodies)).all(|other| own.is_disjoint(&other)), "{attempt}");
        }
        // The same bytes can be reproduced from the record alone.
        for record in &kept {
            let again = made_again(record, 12);
            assert!(sent.values().any(|bodies| bodies.len() >= 12 && bodies[..12] == again[..]), "{}", again[0]);
        }
    }
}

fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))).unwrap()
}

#[test]
fn attempts_that_are_no_runs_keep_their_bits_and_a_finished_one_carries_them() {
    let lab = Lab::new();
    let mut mock = Mock::start(&[]);
    let rest = "sweeps: { s: { matrix: { endpoint: a, model: m, scenario: B1, batch_size: 1 } } }\n";
    lab.write("plan.yaml", &small(&mock, rest));
    let killed_at = |point: &str| {
        let mut command = lab.command(&["run", "plan.yaml", "-q"]);
        let ended = Running::start(command.env("SWEEPLINE_FAILPOINT", point)).end();
        assert_eq!(ended.code, None, "not killed at {point}: {}", ended.stderr);
        let left = std::fs::read_dir(lab.results().join("attempts")).unwrap();
        let mut left: Vec<_> = left.map(|entry| entry.unwrap().path()).collect();
        left.sort();
        left.pop().unwrap()
    };
    let failed = json_of(&killed_at("before_seal").join("attempt.json"));
    let whole = killed_at("before_rename");
    let sealed = json_of(&whole.join("run.json"));
    assert_eq!(json_of(&whole.join("attempt.json"))["nonce_seed"], sealed["nonce_seed"]);
    honest(&lab.run(&["run", "plan.yaml", "-q"]));
    let run = lab.only_run();
    assert_eq!((&run.json["attempt"], &run.json["nonce_seed"]), (&json!(2), &sealed["nonce_seed"]));
    let seed = |record: &Value| record["nonce_seed"].as_str().unwrap().to_owned();
    assert_ne!(seed(&failed), seed(&run.json));
    assert!([&failed, &run.json].iter().all(|record| seed(record).len() == 32));
    // A record from before the seed existed is still readable.
    let mut old = run.json.clone();
    old.as_object_mut().unwrap().remove("nonce_seed");
    assert_eq!(serde_json::from_value::<RunRecord>(old).unwrap().nonce_seed, None);
    assert_eq!(sent(&requests(&mut mock)).len(), 2, "complete runs were not measured again");
}

/// Conversations from a log. All but the last start with the same system message, and some with the
/// same question.
const LOG: &str = r#"[
{"conversations": [{"from": "system", "value": "You are the clerk of a small hotel by the sea, kind and brief, and you know the house, its rooms and its kitchen well."}, {"from": "human", "value": "When is breakfast?"}, {"from": "gpt", "value": "From seven to ten."}]},
{"conversations": [{"from": "system", "value": "You are the clerk of a small hotel by the sea, kind and brief, and you know the house, its rooms and its kitchen well."}, {"from": "human", "value": "Is there a boat to the island?"}, {"from": "gpt", "value": "At nine and at two."}]},
{"conversations": [{"from": "human", "value": "What does a room with a view of the harbour cost?"}, {"from": "gpt", "value": "Ninety a night."}]}
]"#;

#[test]
fn one_nonce_for_a_run_leaves_what_recorded_texts_share() {
    let lab = Lab::new();
    // With blocks of one token, every leading token that two prompts share is detected.
    let mut mock = Mock::start(&["--prefix-cache", "10000000", "--prefix-block", "1"]);
    lab.write("log.json", LOG);
    let rest = "scenarios:
  own: { output_tokens: 2, nonce: on }
  plain: { output_tokens: 2, nonce: run }
  docs: { base: plain, prompt_tokens: 40, prefix: { tokens: 64, groups: 2 } }
  talk: { base: D, output_tokens: 2, turns: 2, history: scripted, nonce: run }
  log: { data: { file: log.json, order: file }, output_tokens: 2, nonce: run }
  mixed: { mix: [{ scenario: log, share: 1 }, { scenario: plain, share: 1 }] }
sweeps:
  s: { matrix: { endpoint: a, model: m, scenario: [own, plain, docs, talk, log, mixed], batch_size: 1 } }
";
    lab.write("plan.yaml", &small(&mock, rest));
    honest(&lab.run(&["run", "plan.yaml", "-q"]));
    let sent = sent(&requests(&mut mock));
    let runs = lab.runs();
    assert_eq!((sent.len(), runs.len()), (6, 6));
    let scenario = |run: &Run| run.json["spec"]["labels"]["scenario"].as_str().unwrap().to_owned();
    let of = |name: &str| {
        let run = runs.values().find(|run| scenario(run) == name).unwrap_or_else(|| panic!("no run of {name}"));
        (run, &sent[&format!("{}-1 1", &run.json["id"].as_str().unwrap()[..16])])
    };
    let mut heads = BTreeSet::new();
    for name in ["plain", "docs", "talk", "log", "mixed"] {
        let (run, bodies) = of(name);
        assert_eq!(run.json["spec"]["shaping"]["nonce"], "run", "{name}");
        let own: BTreeSet<String> = bodies.iter().map(|body| cut(body).0).collect();
        assert_eq!(own.len(), 1, "{name}: one nonce for all requests of all classes");
        assert!(bodies.iter().all(|body| body.matches("[ref ").count() == 1), "{name}: only at the front");
        heads.extend(own);
    }
    assert_eq!(heads.len(), 5, "each run has its own nonce");

    // The prose after the nonce equals the prose after per-request nonces.
    let ((_, one), (own, each)) = (of("plain"), of("own"));
    assert_eq!(own.json["spec"]["shaping"]["nonce"], true);
    assert!(one.iter().zip(each).all(|(one, each)| cut(one).1 == cut(each).1 && cut(one).0 != cut(each).0));
    // The common beginning of the log's records follows the nonce verbatim in every request.
    let (_, bodies) = of("log");
    let clerks = |body: &&String| cut(body).1[0].starts_with("You are the clerk of a small hotel by the sea");
    assert_eq!(bodies.iter().filter(clerks).count(), bodies.len() - bodies.len() / 3);

    // All requests except the first share the nonce, as the rows state, so no server's cache is warmer
    // than declared.
    for name in ["plain", "docs", "talk"] {
        let (run, _) = of(name);
        assert_eq!(run.records[0].row.reusable_tokens, Some(0));
        assert!(run.records[1..].iter().all(|record| record.row.reusable_tokens >= Some(10)), "{name}");
        let verdict =
            lab.ok(&["show", &run.json["id"].as_str().unwrap()[..16], "--plan", "plan.yaml", "--format", "json"]);
        let reasons = verdict.json()["verdict"]["reasons"].to_string();
        assert!(!reasons.contains("warm_cache"), "{name}: {reasons}");
    }
    // The records are repeated, unchanged the second time.
    let (run, _) = of("log");
    for record in &run.records[3..] {
        assert_eq!(record.row.reusable_tokens, Some(record.row.intended_prompt_tokens));
    }
}

#[test]
fn a_scenario_or_an_axis_says_how_far_it_reaches_and_no_other_run_changes() {
    let lab = Lab::new();
    let plan = |nonce: &str, scenario: &str, axis: &str| {
        format!(
            "sweepline: 1
name: reach
{nonce}
endpoints: {{ demo: {{ engine: mock }} }}
models: {{ m: {{ id: tiny }} }}
scenarios:
  s: {{ output_tokens: 4{scenario} }}
  t: {{ mix: [{{ scenario: s, share: 1 }}, {{ scenario: B1, share: 1 }}] }}
sweeps: {{ all: {{ matrix: {{ scenario: [s, t], batch_size: 1{axis} }} }} }}
"
        )
    };
    let ids = |nonce: &str, scenario: &str, axis: &str| -> Vec<String> {
        lab.write("plan.yaml", &plan(nonce, scenario, axis));
        let runs = lab.ok(&["preview", "plan.yaml", "--format", "json"]).json();
        runs["runs"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
    };
    let usual = ids("", "", "");
    for (nonce, scenario, axis) in [
        ("nonce: on", "", ""),
        ("nonce: true", "", ""),
        ("nonce: off", "", ", nonce: on"),
        ("nonce: run", "", ", nonce: on"),
        ("", ", nonce: on", ""),
        ("", "", ", nonce: [on]"),
    ] {
        let found = ids(nonce, scenario, axis);
        assert_eq!(found[0], usual[0], "{nonce} {scenario} {axis}");
        assert_eq!(found[1], usual[1], "{nonce} {scenario} {axis}");
    }
    let run = ids("nonce: run", "", "");
    let off = ids("nonce: off", "", "");
    assert_eq!(usual.iter().chain(&run).chain(&off).collect::<BTreeSet<_>>().len(), 6);
    assert_eq!(ids("", ", nonce: run", "")[0], run[0]);
    assert_eq!(ids("nonce: off", "", ", nonce: run"), run);
    // Setting it for one class of the mix also changes the run.
    let one_class = ids("", ", nonce: run", "");
    assert!(!usual.contains(&one_class[1]) && !run.contains(&one_class[1]));
    let both: BTreeSet<String> = ids("", "", ", nonce: [on, run, off]").into_iter().collect();
    assert_eq!(both, usual.iter().chain(&run).chain(&off).cloned().collect());

    // The frozen plan and `diff` show the setting.
    lab.write("usual.yaml", &plan("", "", ""));
    lab.write("plan.yaml", &plan("", ", nonce: run", ""));
    let frozen = lab.ok(&["freeze", "plan.yaml"]).stdout;
    assert!(frozen.contains("nonce: run") && frozen.contains("nonce: \"on\""), "{frozen}");
    let diff = lab.ok(&["diff", "usual.yaml", "plan.yaml"]).stdout;
    assert!(diff.contains("scenarios.s.nonce: on → run"), "{diff}");
    for wrong in ["", ", nonce: once", ", nonce: [on, once]"] {
        let (scenario, axis) = if wrong.contains('[') { ("", wrong) } else { (wrong, "") };
        lab.write("wrong.yaml", &plan(if wrong.is_empty() { "nonce: once" } else { "" }, scenario, axis));
        let ended = lab.run(&["check", "wrong.yaml"]);
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains("`on`, `run` or `off`"), "{}", ended.stderr);
    }
}

#[test]
fn cold_prompts_need_a_nonce_for_each_request() {
    let lab = Lab::new();
    let check = |nonce: &str, scenario: &str, axes: &str| {
        lab.write(
            "plan.yaml",
            &format!(
                "sweepline: 1\nname: cold\n{nonce}\nendpoints: {{ demo: {{ engine: mock }} }}\nmodels: {{ m: {{ id: tiny }} }}\n\
                 scenarios: {{ base: {{ base: C }}, s: {{ base: base{scenario} }}, \
                 t: {{ mix: [{{ scenario: s, share: 1 }}, {{ scenario: B1, share: 1 }}] }} }}\n\
                 sweeps: {{ all: {{ matrix: {{ scenario: [s, t], batch_size: 1{axes} }} }} }}\n"
            ),
        );
        lab.run(&["check", "plan.yaml"])
    };
    for (nonce, scenario, axes) in [
        ("nonce: run", ", cache: cold", ""),
        ("nonce: off", ", cache: cold", ""),
        ("", ", cache: cold, nonce: run", ""),
        ("nonce: run", "", ", cache: [warm, cold]"),
        ("", ", nonce: run", ", cache: [warm, cold]"),
        ("", "", ", cache: cold, nonce: [on, run]"),
        ("", ", cache: cold", ", nonce: [on, run]"),
    ] {
        let ended = check(nonce, scenario, axes);
        let said = &ended.stderr;
        assert_eq!(ended.code, Some(2), "{nonce} {scenario} {axes}: {said}");
        assert!(said.contains("`cache: cold`") && said.contains("needs `nonce: on`"), "{said}");
        assert!(said.contains("= help: write `nonce: on`"), "{said}");
    }
    for (nonce, scenario, axes) in [
        ("", ", cache: cold", ""),
        ("nonce: run", ", cache: cold, nonce: on", ""),
        ("nonce: off", ", cache: cold", ", nonce: on"),
        ("nonce: run", ", nonce: on", ", cache: { value: cold, when: { scenario: s } }"),
    ] {
        let ended = check(nonce, scenario, axes);
        assert_eq!(ended.code, Some(0), "{nonce} {scenario} {axes}: {}", ended.stderr);
    }
    // Contradictions that appear only in the cells are found by the expansion.
    let more = ", cache: [warm, cold] }, extend: [{ when: { cache: cold }, with: { nonce: run } }";
    lab.write(
        "plan.yaml",
        &format!(
            "sweepline: 1\nname: cold\nendpoints: {{ demo: {{ engine: mock }} }}\nmodels: {{ m: {{ id: tiny }} }}\n\
             sweeps: {{ all: {{ matrix: {{ scenario: [C], batch_size: 1{more}] }} }}\n"
        ),
    );
    let ended = lab.run(&["preview", "plan.yaml"]);
    assert_eq!(ended.code, Some(2), "{}{}", ended.stdout, ended.stderr);
    assert!(
        ended.stderr.contains("`cache: cold` needs `nonce: on`, but this cell has `nonce: run`"),
        "{}",
        ended.stderr
    );
}
