//! Tests undeclared common beginnings of prompts: recorded texts, traces, histories and classes that begin
//! alike, compared with the hits of a prefix cache.

use std::fmt::Write as _;

use serde_json::{Value, json};
use sweepline::rows::{Phase, RequestRow};

use lab::{Lab, Run, Running};

/// Returns a plan for an embedded mock whose cache holds everything, in blocks of the usual size. `rest`
/// contains scenarios and other differences.
fn plan(api: &str, nonce: &str, rest: &str) -> String {
    format!(
        "sweepline: 1\nname: shared\nseed: 5\nnonce: {nonce}\nmodels: {{ m: {{ id: tiny }} }}\nendpoints:\n  a: {{ engine: mock, api: {api}, \
         mock: {{ ttft: 1ms, itl: 1ms, prefix_cache: 1000000 }} }}\n\
         validity: {{ client_late: {{ suspect: 99%, invalid: 100% }}, unsteady: {{ suspect: 99% }} }}\n\
         phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 300ms, min_requests: 60, at_most: 60s }}, drain: 30s }}\n{rest}"
    )
}

/// Returns `count` meaningless words, different for each `key`.
fn words(key: usize, count: usize) -> String {
    const WORDS: [&str; 8] = ["river", "lantern", "quiet", "seven", "market", "under", "copper", "early"];
    (0..count).fold(String::new(), |text, at| text + WORDS[(key * 31 + at * (key % 5 + 3) + at / 7) % 8] + " ")
}

/// Returns a log of `count` records, each with `turns` questions after one of two system messages.
fn log(count: usize, turns: usize) -> String {
    let one = |k: usize| {
        let system = format!("You answer for desk {}. {}", k % 2, words(k % 2, 900));
        let mut messages = vec![json!({ "role": "system", "content": system })];
        for turn in 0..turns {
            let question = format!("Visitor {k} asks for {turn}: {}?", words(k + turn, 60));
            messages.push(json!({ "role": "user", "content": question }));
            messages.push(json!({ "role": "assistant", "content": words(7 * k + turn, 20) }));
        }
        json!({ "messages": messages }).to_string() + "\n"
    };
    (0..count).map(one).collect()
}

/// Returns two shares for the window's requests, in percent: the reusable share of the intended prompt
/// tokens, and the cached share of the server's prompt tokens.
fn shares(run: &Run) -> (f64, f64) {
    let rows = || {
        run.records.iter().map(|record| &record.row).filter(|row| row.phase == Phase::Measure && row.outcome.is_ok())
    };
    let sum = |of: fn(&RequestRow) -> Option<u32>| {
        rows().map(|row| f64::from(of(row).unwrap_or_else(|| panic!("unknown: {row:?}")))).sum::<f64>()
    };
    let declared = sum(|row| row.reusable_tokens) / sum(|row| Some(row.intended_prompt_tokens));
    (100.0 * declared, 100.0 * sum(|row| row.cached_tokens) / sum(|row| row.prompt_tokens))
}

fn shown(lab: &Lab, run: &Run) -> Value {
    lab.ok(&["show", run.json["id"].as_str().unwrap(), "--format", "json"]).json()
}

/// Returns the verdict's state for `warm_cache`, or why it was not checked.
fn warm_cache(shown: &Value) -> Option<String> {
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{shown}")).to_owned();
    let verdict = &shown["verdict"];
    let found = verdict["reasons"].as_array().unwrap().iter().find(|reason| reason["name"] == "warm_cache");
    found.map(|reason| text(&reason["state"])).or_else(|| verdict["not_checked"].get("warm_cache").map(text))
}

/// Asserts for each run of a plan that the declared share is within 2 points of the cached share, and
/// that the verdict reports nothing.
fn holds(lab: &Lab, plan: &str, least: f64) -> Vec<Run> {
    lab.write("plan.yaml", plan);
    let ended = lab.run(&["run", "plan.yaml"]);
    let runs: Vec<Run> = lab.runs().into_values().collect();
    assert!(!runs.is_empty(), "{}", ended.stderr);
    for run in &runs {
        let scenario = run.json["spec"]["labels"]["scenario"].as_str().unwrap();
        let (declared, cached) = shares(run);
        println!("{scenario}: {declared:.2} % declared, {cached:.2} % cached");
        assert!((declared - cached).abs() <= 2.0, "{scenario}: {declared:.2} % declared, {cached:.2} % cached");
        assert!(declared > least, "{scenario}: {declared:.2} %");
        let shown = shown(lab, run);
        assert_eq!(warm_cache(&shown), None, "{scenario}: {}", shown["verdict"]);
        let told = shown["metrics"]["declared_reuse"].as_f64().unwrap();
        assert!((100.0 * told - cached).abs() <= 2.0, "{scenario}: {told}, in the server's tokens");
        for row in run.records.iter().map(|record| &record.row) {
            assert!(row.reusable_tokens.is_none_or(|tokens| tokens <= row.intended_prompt_tokens), "{row:?}");
        }
    }
    runs
}

#[test]
fn a_log_whose_records_share_a_system_prompt_is_valid_without_nonces_of_their_own() {
    let lab = Lab::new();
    lab.write("log.jsonl", &log(500, 1));
    // Requests are sent one after the other, because two that start together share a prefix by our
    // count although a server computes both.
    let rest = "scenarios: { log: { data: { file: log.jsonl }, output_tokens: 4 } }\n\
                sweeps: { s: { matrix: { scenario: [log], batch_size: [1] } } }\n";
    for (api, nonce) in [("chat", "off"), ("completions", "off"), ("chat", "run")] {
        let lab = Lab::new();
        lab.write("log.jsonl", &log(500, 1));
        holds(&lab, &plan(api, nonce, rest), 60.0);
    }
    // With a nonce for each request, the same records share nothing.
    lab.write("plan.yaml", &plan("chat", "on", rest));
    lab.run(&["run", "plan.yaml"]);
    assert_eq!(shares(&lab.only_run()), (0.0, 0.0));
}

#[test]
fn what_is_shared_may_count_otherwise_than_the_rest() {
    let lab = Lab::new();
    // Our count assumes four letters per token; on this server every word is one token, however long.
    let (short, long) = (["a b c d e f g h"; 160].join(" "), "incomprehensibly");
    let question = |at: usize| format!("{at} {}", [long; 48].repeat(1 + at % 5).join(" "));
    let line = |at: usize| {
        let messages = json!([{ "role": "system", "content": short }, { "role": "user", "content": question(at) }]);
        json!({ "messages": messages, "output_tokens": 2 }).to_string()
    };
    lab.write("log.jsonl", &(0..400).map(|at| line(at) + "\n").collect::<String>());
    let rest = "scenarios: { log: { data: { file: log.jsonl } } }\n\
                sweeps: { s: { matrix: { scenario: [log], batch_size: [1] } } }\n";
    lab.write("plan.yaml", &plan("chat", "run", rest));
    lab.run(&["run", "plan.yaml"]);
    let run = lab.only_run();
    let (own, cached) = shares(&run);
    assert!(
        cached > own + 10.0,
        "{own:.1} % by our count, {cached:.1} % by the server's: the texts are designed for this"
    );
    let shown = shown(&lab, &run);
    assert_eq!(warm_cache(&shown), None, "{}", shown["verdict"]);
    let told = 100.0 * shown["metrics"]["declared_reuse"].as_f64().unwrap();
    assert!((told - cached).abs() <= 2.0, "{told:.1} % declared, {cached:.1} % cached");
}

#[test]
fn a_data_set_that_comes_again_is_known_then() {
    let lab = Lab::new();
    lab.write("log.jsonl", &log(25, 1));
    let rest = "scenarios: { log: { data: { file: log.jsonl, order: file }, output_tokens: 4 } }\n\
                sweeps: { s: { matrix: { scenario: [log], batch_size: [1] } } }\n";
    let runs = holds(&lab, &plan("chat", "off", rest), 70.0);
    let rows = || runs[0].records.iter().map(|record| &record.row);
    assert!(rows().count() > 50);
    for row in rows() {
        let whole = row.reusable_tokens == Some(row.intended_prompt_tokens);
        assert_eq!(whole, row.request >= 25, "{row:?}");
    }
}

#[test]
fn conversations_with_real_and_with_scripted_histories_share_what_they_open_with() {
    // Each plan uses a separate server, because without a nonce the second one would hit texts that the
    // first one left in the cache.
    for history in ["real", "scripted"] {
        let lab = Lab::new();
        lab.write("log.jsonl", &log(40, 4));
        let rest = format!(
            "scenarios: {{ talk: {{ base: D, data: {{ file: log.jsonl }}, history: {history}, output_tokens: 20 }} }}\n\
             sweeps: {{ s: {{ matrix: {{ scenario: [talk], batch_size: [1] }} }} }}\n"
        );
        let run = holds(&lab, &plan("chat", "off", &rest), 70.0).remove(0);
        let firsts = run.records.iter().map(|record| &record.row).filter(|row| row.turn == Some(0));
        let known = firsts.filter(|row| row.reusable_tokens.unwrap() > 300).count();
        assert!(known > 5, "{known} conversations start like an earlier one");
    }
}

#[test]
fn classes_of_a_mix_share_what_both_send() {
    let lab = Lab::new();
    lab.write("log.jsonl", &log(300, 1));
    lab.write("talks.jsonl", &log(30, 3));
    // Two classes come from one log, one class has conversations with the same opening, and two draw the
    // same texts.
    let rest = "scenarios:\n  brief: { data: { file: log.jsonl }, output_tokens: 2 }\n  longer: { base: brief, output_tokens: 8 }\n  \
                talks: { base: D, data: { file: talks.jsonl }, output_tokens: 8 }\n  \
                mixed: { mix: [{ scenario: brief, share: 1 }, { scenario: longer, share: 1 }, { scenario: talks, share: 2 }] }\n  \
                one: { base: B1, prompt_tokens: 300, output_tokens: 2 }\n  other: { base: one, temperature: 0.5 }\n  \
                twins: { mix: [{ scenario: one, share: 1 }, { scenario: other, share: 1 }] }\n\
                sweeps: { s: { matrix: { scenario: [mixed, twins], batch_size: [1] } } }\n";
    holds(&lab, &plan("chat", "off", rest), 35.0);
}

#[test]
fn a_trace_whose_texts_begin_alike_declares_it() {
    let lab = Lab::new();
    // Blocks have names. Only the blocks before a block matter, not its position.
    let lines = (0..60u64).fold(String::new(), |mut lines, at| {
        let blocks = if at % 2 == 0 { vec![1, 2, 100 + at] } else { vec![2, 1, 100 + at] };
        let input = 512 * 3 - 100;
        writeln!(
            lines,
            "{{\"timestamp\": {}, \"input_length\": {input}, \"output_length\": 2, \"hash_ids\": {blocks:?}}}",
            at * 80
        )
        .unwrap();
        lines
    });
    lab.write("trace.jsonl", &lines);
    let whole = plan(
        "chat",
        "off",
        "scenarios: { replay: { trace: { file: trace.jsonl } } }\nsweeps: { s: { matrix: { scenario: [replay] } } }\n",
    );
    let whole = whole.replace("measure: { for: 300ms, min_requests: 60, at_most: 60s }", "measure: 1800ms");
    let runs = holds(&lab, &whole, 60.0);
    let of =
        |request: u64| runs[0].records.iter().find(|record| record.row.request == request).unwrap().row.reusable_tokens;
    // The second request has the same blocks as the first one, all at different positions.
    assert!(of(1).unwrap() < 8, "{:?}", of(1));
    assert!(of(2).unwrap() >= 1024 - 1024 / 128, "{:?}", of(2));
}

#[test]
fn beyond_the_bound_nothing_is_declared_and_nothing_judged() {
    let lab = Lab::new();
    lab.write("log.jsonl", &log(500, 1));
    let rest = "scenarios: { log: { data: { file: log.jsonl }, output_tokens: 4 } }\n\
                sweeps: { s: { matrix: { scenario: [log], batch_size: [1] } } }\n";
    lab.write("plan.yaml", &plan("chat", "off", rest));
    // Pages of the tree take at least 48 KiB, so only a few prompts fit.
    Running::start(lab.command(&["run", "plan.yaml"]).env("SWEEPLINE_PREFIX_TREE_BYTES", "49500")).end();
    let run = lab.only_run();
    let unknown =
        run.records.iter().filter(|record| record.row.sent_ns.is_some() && record.row.reusable_tokens.is_none());
    assert!(unknown.count() > 20);
    let shown = shown(&lab, &run);
    let why = warm_cache(&shown).unwrap_or_else(|| panic!("{}", shown["verdict"]));
    assert!(why.contains("64 MiB"), "{why}");
    assert!(shown["metrics"]["declared_reuse"].is_null(), "{}", shown["metrics"]["declared_reuse"]);
    let exported = lab.ok(&["export", "plan.yaml", "--rows", "requests", "--format", "json"]).json();
    assert!(
        exported.as_array().unwrap().iter().any(|row| row["reusable_tokens"].is_null() && !row["sent_ns"].is_null())
    );
}

/// Removes from a committed run everything that earlier versions did not record.
fn age(run: &Run) {
    let mut json = run.json.clone();
    assert_eq!(json["facts"]["reuse_count"], "sent");
    json["facts"].as_object_mut().unwrap().remove("reuse_count");
    run.put_old_record(json);
}

#[test]
fn rows_of_older_versions_are_read_as_unknown_where_they_may_be_wrong() {
    let lab = Lab::new();
    lab.write("log.jsonl", &log(100, 1));
    let scenarios = "scenarios:\n  log: { data: { file: log.jsonl }, output_tokens: 4 }\n  asked: { base: C, output_tokens: 4 }\n  \
                     classes: { mix: [{ scenario: log, share: 1 }, { scenario: B1, share: 1 }] }\n\
                     sweeps: { s: { matrix: { scenario: [log, asked, classes], batch_size: [1] } } }\n";
    for nonce in ["off", "on"] {
        let lab = Lab::new();
        lab.write("log.jsonl", &log(100, 1));
        lab.write("plan.yaml", &plan("chat", nonce, scenarios));
        lab.run(&["run", "plan.yaml"]);
        for run in lab.runs().values() {
            age(run);
            let scenario = run.json["spec"]["labels"]["scenario"].as_str().unwrap();
            let shown = shown(&lab, run);
            let is_unknown = nonce == "off" && scenario != "asked";
            assert_eq!(shown["metrics"]["declared_reuse"].is_null(), is_unknown, "{nonce} {scenario}");
            let why = warm_cache(&shown).unwrap_or_default();
            assert_eq!(why.contains("version that measured this run"), is_unknown, "{nonce} {scenario}: {why}");
        }
        let rows = lab.ok(&["export", "plan.yaml", "--rows", "requests", "--format", "json"]).json();
        for row in rows.as_array().unwrap().iter().filter(|row| !row["sent_ns"].is_null()) {
            assert_eq!(row["reusable_tokens"].is_null(), nonce == "off" && row["scenario"] != "asked", "{row}");
        }
    }
}
