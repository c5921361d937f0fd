//! Tests `engine: { workers }`: the load of several processes equals that of one.

use std::collections::{BTreeMap, BTreeSet};

use rustix::process::Signal;
use serde_json::{Value, json};
use sweepline::rows::{Phase, RequestRow, Table, read_texts};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

use lab::{Ended, Lab, Run, Running, Server, wait_for};

const PLAN: &str = "\
sweepline: 1
name: shares
seed: 9
nonce: off
ENGINE
endpoints: { a: { url: URL, engine: mock } }
models: { m: { id: tiny } }
scenarios:
  s: { base: B1, output_tokens: 8 }
  talk: { base: D, turns: 3, prompt_tokens: 20, output_tokens: 4, history: scripted }
  visits: { base: D, turns: 3, prompt_tokens: 20, output_tokens: 4, sessions: open, think: 20ms }
  mixed: { mix: [{ scenario: s, share: 1 }, { scenario: talk, share: 1 }] }
phases: { fill: 200ms, stabilize: 100ms, measure: 700ms, drain: 30s }
# Several processes on a busy machine are late, which is not what is asked here.
validity: { client_late: { suspect: 100%, invalid: 100% }, unsteady: { suspect: 99% } }
sweeps:
";

fn plan(server: &Server, engine: &str, sweeps: &str) -> String {
    PLAN.replace("URL", &server.url()).replace("ENGINE", engine) + sweeps
}

/// Returns the facts of a run's workers.
fn workers(run: &Run) -> Vec<Value> {
    run.json["facts"]["workers"].as_array().cloned().unwrap_or_default()
}

fn measured(ended: &Ended) {
    // Exit code 3 means that a busy machine made runs invalid.
    assert!(matches!(ended.code, Some(0 | 3)), "{ended:?}");
}

const ALL: &str = "  \
  closed: { matrix: { endpoint: [a], model: [m], scenario: [s, talk, mixed], batch_size: [8] } }
  open: { matrix: { endpoint: [a], model: [m], scenario: [s, visits], qps: [60] } }
";

/// Returns the runs of this test's plan, measured with this many workers.
fn runs(workers: u32) -> BTreeMap<String, Run> {
    let lab = Lab::new();
    let server = Server::start(&lab, &["--slots", "64", "--seed", "4"]);
    lab.write("plan.yaml", &plan(&server, "", ALL));
    measured(&lab.run(&["run", "plan.yaml", "--workers", &workers.to_string()]));
    lab.runs()
}

/// Asserts that each worker's share has exactly its own request numbers, without gaps.
fn is_covered(name: &str, run: &Run, count: usize) {
    let numbers: BTreeSet<u64> = run.records.iter().map(|record| record.row.request).collect();
    assert_eq!(numbers.len(), run.records.len(), "{name}: a request was recorded twice");
    for share in 0..count as u64 {
        let own: Vec<u64> = numbers.iter().copied().filter(|number| number % count as u64 == share).collect();
        assert!(
            own.iter().copied().eq((0..own.len() as u64).map(|local| local * count as u64 + share)),
            "{name}: {own:?}"
        );
        let told = workers(run).get(share as usize).map(|worker| worker["requests"].as_u64().unwrap());
        assert!(count == 1 || told == Some(own.len() as u64), "{name}: {told:?}");
    }
}

#[test]
fn two_and_seven_workers_send_the_requests_of_one() {
    let one = runs(1);
    assert_eq!(one.len(), 5);
    assert!(one.values().all(|run| workers(run).is_empty()));
    for count in [2, 7] {
        let several = runs(count);
        assert!(one.keys().eq(several.keys()), "run ids do not depend on the number of workers");
        for (name, whole) in &one {
            let shared = &several[name];
            assert_eq!(workers(shared).len(), count as usize);
            is_covered(name, shared, count as usize);
            let talks = whole.records[0].row.conversation.is_some();
            let open = whole.json["facts"]["open_loop"] == true;
            // A request's number determines its content, except where conversations diverge.
            let key = |run: &Run| -> BTreeMap<(u64, u32), Value> {
                let of = |row: &RequestRow| match (row.conversation, row.turn) {
                    (Some(conversation), Some(turn)) => (conversation, turn),
                    _ => (row.request, u32::MAX),
                };
                let what = |row: &RequestRow| {
                    let at = (open && row.turn.is_none_or(|turn| turn == 0)).then_some(row.scheduled_ns);
                    json!([at, row.class, row.text_digest, row.prompt_tokens, row.requested_tokens])
                };
                let good = run.records.iter().map(|record| &record.row).filter(|row| row.outcome.is_ok());
                good.map(|row| (of(row), what(row))).collect()
            };
            let (here, there) = (key(whole), key(shared));
            let both = here.iter().filter(|(key, what)| there.get(key).is_some_and(|other| other == *what)).count();
            let common = here.keys().filter(|key| there.contains_key(key)).count();
            assert_eq!(both, common, "{name}: equal numbers mean equal requests");
            assert!(common > 20, "{name}: {common} requests in common");
            if open && !talks {
                // The schedule up to the end of the window is the same, request by request.
                let end = whole.window("measure_end_ns");
                assert_eq!(shared.window("measure_end_ns"), end);
                let due = |run: &Run| -> BTreeMap<u64, u64> {
                    let rows = run.records.iter().map(|record| &record.row);
                    rows.filter(|row| row.scheduled_ns < end).map(|row| (row.request, row.scheduled_ns)).collect()
                };
                assert_eq!(due(whole), due(shared), "{name}");
            }
        }
    }
}

const OPEN: &str = "  open: { matrix: { endpoint: [a], model: [m], scenario: [s], qps: [60] } }\n";

/// Returns the child processes of a process.
fn children(of: u32) -> Vec<i32> {
    let folders = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let numbers = folders.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let parent = |pid: i32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let is_worker =
        |pid: &i32| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.ends_with(b"\0worker\0"));
    let mut found: Vec<i32> = numbers.filter(|pid| parent(*pid) == Some(of)).filter(is_worker).collect();
    found.sort_unstable();
    found
}

fn is_running(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// Waits until a sweep with two workers sends requests, and returns the workers.
fn under_way(server: &Server, sweep: &Running) -> Vec<i32> {
    wait_for("requests of the workers", || Some(()).filter(|()| server.requests() > 20));
    let found = children(sweep.id());
    assert_eq!(found.len(), 2);
    found
}

/// A plan with one run that takes long enough to be disturbed; it is always the same run.
fn long(server: &Server) -> String {
    plan(server, "engine: { workers: 2 }", OPEN).replace("measure: 700ms", "measure: 3s")
}

#[test]
fn a_worker_that_is_killed_costs_one_attempt() {
    let lab = Lab::new();
    let server = Server::start(&lab, &["--slots", "64"]);
    lab.write("plan.yaml", &long(&server));
    let sweep = lab.start(&["run", "plan.yaml"]);
    let victim = under_way(&server, &sweep)[1];
    rustix::process::kill_process(rustix::process::Pid::from_raw(victim).unwrap(), Signal::KILL).unwrap();
    let ended = sweep.end();
    measured(&ended);
    let run = lab.only_run();
    assert_eq!(run.json["attempt"], 2, "{}", ended.stderr);
    is_covered("the second attempt", &run, 2);
    let attempts = std::fs::read_dir(lab.results().join("attempts")).unwrap();
    let failed =
        attempts.map(|attempt| attempt.unwrap().path().join("attempt.json")).find(|file| file.exists()).unwrap();
    let told: Value = serde_json::from_slice(&std::fs::read(failed).unwrap()).unwrap();
    assert_eq!(told["spoiled"]["cause"], "worker_lost");
    let detail = told["spoiled"]["detail"].as_str().unwrap();
    assert!(detail.starts_with("worker 2 on ") && detail.contains("signal: 9"), "{detail}");
    assert!(ended.stderr.contains("worker 2 on "), "{}", ended.stderr);
}

#[test]
fn no_worker_outlives_its_coordinator() {
    let lab = Lab::new();
    let server = Server::start(&lab, &["--slots", "64"]);
    lab.write("plan.yaml", &long(&server));
    for signal in [Signal::KILL, Signal::INT] {
        let sweep = lab.start(&["run", "plan.yaml"]);
        let before = server.requests();
        wait_for("further requests", || Some(()).filter(|()| server.requests() > before + 20));
        let workers = children(sweep.id());
        assert_eq!(workers.len(), 2);
        sweep.signal(signal);
        if signal == Signal::INT {
            assert_eq!(sweep.end().code, Some(130));
        }
        wait_for("the end of the workers", || Some(()).filter(|()| !workers.iter().any(|pid| is_running(*pid))));
        assert!(lab.runs().is_empty(), "a partial run is not committed");
    }
    measured(&lab.run(&["run", "plan.yaml"]));
    is_covered("the run", &lab.only_run(), 2);
}

/// Runs two workers; `change` is prepended to the command of the second.
fn changed(change: &str) -> (Lab, Ended) {
    let lab = Lab::measured_time();
    let server = Server::start(&lab, &["--slots", "64"]);
    let own = "sweepline";
    let engine = format!("engine: {{ workers: {{ count: 2, start: [\"{own}\", \"env {change} {own}\"] }} }}");
    lab.write("plan.yaml", &plan(&server, &engine, OPEN));
    let ended = lab.run(&["run", "plan.yaml"]);
    (lab, ended)
}

/// Returns the state and the text of a reason in the verdict of the only run.
fn reason(lab: &Lab, name: &str) -> Option<(String, String)> {
    let id = lab.runs().into_keys().next().unwrap();
    let shown = lab.run(&["show", &id, "--format", "json"]).json();
    let reasons = shown["verdict"]["reasons"].as_array().unwrap().clone();
    let found = reasons.into_iter().find(|reason| reason["name"] == name)?;
    Some((found["state"].as_str()?.to_owned(), found["text"].as_str()?.to_owned()))
}

#[test]
fn a_worker_with_another_clock_is_corrected_and_an_uncertain_one_is_named() {
    let (lab, ended) = changed("SWEEPLINE_WORKER_CLOCK_AHEAD_NS=7000000000");
    measured(&ended);
    let run = lab.only_run();
    is_covered("with another clock", &run, 2);
    let clock = &workers(&run)[1]["clock"];
    let (offset, uncertainty) = (clock["offset_ns"].as_i64().unwrap(), clock["uncertainty_ns"].as_u64().unwrap());
    assert!(offset.abs_diff(7_000_000_000) <= uncertainty, "{clock}");
    assert!(run.records.iter().all(|record| record.row.ended_ns.unwrap_or(0) < 40_000_000_000));

    let (lab, ended) = changed("SWEEPLINE_WORKER_ANSWERS_AFTER_MS=40");
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let (state, text) = reason(&lab, "worker_skewed").unwrap();
    assert_eq!(state, "invalid");
    assert!(text.starts_with("worker 2 (") && text.contains("its clock is known only to within 2"), "{text}");
}

#[test]
fn a_worker_that_starts_late_is_named() {
    let (lab, ended) = changed("SWEEPLINE_WORKER_STARTS_LATE_MS=150");
    measured(&ended);
    let (state, text) = reason(&lab, "worker_skewed").unwrap();
    let late = text.split_once("it started ").and_then(|(_, rest)| rest.split_once(" ms after the others"));
    let late: u64 = late.and_then(|(ms, _)| ms.parse().ok()).unwrap_or_else(|| panic!("{text}"));
    assert!(text.starts_with("worker 2 (") && late >= 150, "{text}");
    assert_eq!(state, if late > 300 { "invalid" } else { "suspect" });
    is_covered("with a late start", &lab.only_run(), 2);
}

#[test]
fn a_worker_of_another_version_is_refused_by_name() {
    let (lab, ended) = changed("SWEEPLINE_WORKER_VERSION=0.0.7");
    assert!(lab.runs().is_empty());
    let own = env!("CARGO_PKG_VERSION");
    let told = format!("runs sweepline 0.0.7, but this is {own}: install the same version there");
    assert!(ended.stderr.contains("worker 2 on ") && ended.stderr.contains(&told), "{ended:?}");

    let (lab, ended) = changed("SWEEPLINE_WORKER_VERSION= sh -c 'echo Permission denied >&2; exit 9' #");
    assert!(lab.runs().is_empty());
    assert!(ended.stderr.contains("Permission denied"), "{ended:?}");
}

#[test]
fn what_workers_cannot_send_together_is_refused_at_its_place() {
    let lab = Lab::new();
    let base = PLAN.replace("URL", "http://127.0.0.1:9/v1").replace("ENGINE", "engine: { workers: 3 }");
    let refused = |sweep: &str, phases: &str| {
        let text = base.replace("measure: 700ms", phases) + sweep;
        lab.write("plan.yaml", &text);
        let ended = lab.run(&["check", "plan.yaml"]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("3 workers cannot share the load of sweep `x`"), "{}", ended.stderr);
        ended.stderr
    };
    let cell = "endpoint: [a], model: [m]";
    let window = "measure: 700ms";
    let told = refused(&format!("  x: {{ matrix: {{ {cell}, scenario: [s], qps: [5], batch_size: [4] }} }}\n"), window);
    assert!(told.contains("remove the cap"), "{told}");
    let told = refused(&format!("  x: {{ matrix: {{ {cell}, scenario: [talk], qps: [5] }} }}\n"), window);
    assert!(told.contains("sessions: open"), "{told}");
    let counts = "measure: { for: 700ms, min_requests: 9 }";
    let told = refused(&format!("  x: {{ matrix: {{ {cell}, scenario: [s], batch_size: [4] }} }}\n"), counts);
    assert!(told.contains("write a longer window"), "{told}");
    // In an open loop, the end of the window is known in advance.
    lab.write(
        "plan.yaml",
        &(base.replace(window, counts) + &format!("  x: {{ matrix: {{ {cell}, scenario: [s], qps: [5] }} }}\n")),
    );
    lab.ok(&["check", "plan.yaml"]);
    let (one, all) = ("engine: { workers: { count: 3, start: [a, b] } }", "engine: { workers: 3 }");
    lab.write("plan.yaml", &(base.replace(all, one) + OPEN));
    let ended = lab.run(&["check", "plan.yaml"]);
    assert!(ended.stderr.contains("`start` has 2 commands for 3 workers"), "{ended:?}");
    for (start, is_right) in [("srun -N1 sweepline", false), ("srun -u sweepline", true), ("srun --unbuffered s", true)]
    {
        let by_srun = format!("engine: {{ workers: {{ count: 3, start: [{start}] }} }}");
        lab.write("plan.yaml", &(base.replace(all, &by_srun) + OPEN));
        let ended = lab.run(&["check", "plan.yaml"]);
        assert_eq!(ended.stderr.contains("write srun --unbuffered"), !is_right, "{start}: {ended:?}");
    }
}

/// A scenario with prompts whose lengths vary widely, and one output token.
const LENGTHS: &str = "lengths: { prompt: { lognormal: { median: 200, sigma: 1, min: 16, max: 4000 } }, output: 1 }";

/// Returns the 95 % interval of the 99th percentile of the time to first token, from binomial ranks, in
/// nanoseconds.
fn p99(workers: u32) -> [u64; 2] {
    let lab = Lab::new();
    let server = Server::start(&lab, &["--slots", "512", "--prefill", "0.1ms/token"]);
    let text = plan(&server, "", "  open: { matrix: { endpoint: [a], model: [m], scenario: [s], qps: [200] } }\n");
    let text = text.replace("measure: 700ms", "measure: 3s").replace("output_tokens: 8", LENGTHS);
    lab.write("plan.yaml", &text);
    measured(&lab.run(&["run", "plan.yaml", "--workers", &workers.to_string()]));
    let run = lab.only_run();
    let rows = run.records.iter().map(|record| &record.row).filter(|row| row.phase == Phase::Measure);
    let mut ttft: Vec<u64> = rows.filter_map(|row| Some(row.first_token_ns? - row.sent_ns?)).collect();
    ttft.sort_unstable();
    let (n, spread) = (ttft.len() as f64, 1.96 * (0.99 * 0.01 * ttft.len() as f64).sqrt());
    let at = |rank: f64| ttft[(rank.round() as usize).clamp(1, ttft.len()) - 1];
    [at(0.99 * n - spread), at(0.99 * n + spread + 1.0)]
}

#[test]
fn four_workers_measure_the_tail_that_one_measures() {
    let ([low, high], [from, to]) = (p99(1), p99(4));
    // On a busy machine, the mock itself is slower at times.
    if lab::is_whole() {
        assert!(low <= to && from <= high, "one: {low} to {high} ns, four: {from} to {to} ns");
    }
    assert!(low > 20_000_000, "prompts of hundreds of tokens take long: {low}");
}

/// Writes a tokenizer that maps each byte to a token.
fn bytewise(lab: &Lab) {
    let mut alphabet: Vec<char> = ByteLevel::alphabet().into_iter().collect();
    alphabet.sort_unstable();
    let vocab: BTreeMap<String, usize> = alphabet.iter().map(ToString::to_string).zip(0..).collect();
    let bytes = json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true });
    let model = json!({ "type": "BPE", "vocab": vocab, "merges": [] });
    let all = json!({ "version": "1.0", "added_tokens": [], "pre_tokenizer": bytes, "decoder": bytes, "model": model });
    lab.write("model/tokenizer.json", &all.to_string());
    let template = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}";
    lab.write("model/chat_template.jinja", template);
    lab.write("model/tokenizer_config.json", "{}");
}

/// Returns all prompts, keyed by run and by request, or by conversation and turn.
fn prompts(lab: &Lab) -> BTreeMap<(String, u64, Option<u32>), String> {
    let of = |(name, run): (String, Run)| {
        let texts = read_texts(&run.dir.join(Table::Texts.file())).unwrap();
        texts.into_iter().map(move |row| {
            let number = row.conversation.unwrap_or(row.request);
            ((name.clone(), number, row.turn), row.prompt)
        })
    };
    lab.runs().into_iter().flat_map(of).collect()
}

#[test]
fn a_worker_needs_none_of_the_files_of_the_plan() {
    let own = "sweepline";
    let measured_by = |engine: &str| {
        let lab = Lab::new();
        let server = Server::start(&lab, &["--slots", "64"]);
        bytewise(&lab);
        let said = |k: usize| json!({ "conversations": [{ "from": "human", "value": format!("Question {k}?") }, { "from": "gpt", "value": "Yes." }] });
        lab.write("talks.json", &Value::Array((0..50).map(said).collect()).to_string());
        let line = |k: usize| {
            format!("{{\"timestamp\": {}, \"input_length\": 40, \"output_length\": 3, \"hash_ids\": [{k}]}}\n", 15 * k)
        };
        lab.write("trace.jsonl", &(0..200).map(line).collect::<String>());
        let sweeps = "  \
  texts: { matrix: { endpoint: [a], model: [m], scenario: [texts], batch_size: [4] } }
  again: { matrix: { endpoint: [a], model: [m], scenario: [again] } }
";
        let scenarios =
            "scenarios:\n  texts: { data: { file: talks.json } }\n  again: { trace: { file: trace.jsonl } }\n";
        let text = plan(&server, engine, sweeps)
            .replace("scenarios:\n", scenarios)
            .replace("id: tiny", "id: tiny, tokenizer: model");
        lab.write("plan.yaml", &(text + "record: { text: true }\n"));
        measured(&lab.run(&["run", "plan.yaml"]));
        let counts = lab.runs().into_values().map(|run| run.json["facts"]["prompt_count"].clone());
        assert!(counts.into_iter().all(|count| count == "tokenizer"));
        prompts(&lab)
    };
    let elsewhere = format!("engine: {{ workers: {{ count: 2, start: [\"env -C / {own}\"] }} }}");
    let (here, there) = (measured_by(""), measured_by(&elsewhere));
    let common: Vec<_> = here.iter().filter_map(|(key, prompt)| Some((key, prompt, there.get(key)?))).collect();
    assert!(common.len() > 60, "{} of {} and {}", common.len(), here.len(), there.len());
    for (key, prompt, other) in common {
        assert_eq!(prompt, other, "{key:?}");
    }
    assert!(
        here.values().any(|prompt| prompt.contains("Question 7?"))
            && there.values().any(|prompt| prompt.contains("Question 7?"))
    );
}
