//! Tests that anonymous profiles are replayed: requests have the lengths, arrival times and shared
//! prefixes of the profile.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};
use sweepline::rows::RequestRow;

use lab::{Lab, Run};

/// Returns a trace in Mooncake's format, with 12 s at 25 and then at 75 requests per second. Half of the
/// requests share nothing, 40 % are in groups of eight that share two blocks, and 10 % start with the same
/// three blocks.
fn trace() -> String {
    (0..600u64).fold(String::new(), |mut text, at| {
        let timestamp = if at < 150 { at * 40 } else { 6000 + (at - 150) * 1000 / 75 };
        let (input, blocks) = match at % 10 {
            0..5 => (300 + 13 * (at % 20), vec![10_000 + at]),
            5..9 => (1_300 + 3 * (at % 50), vec![20_000 + at / 20, 30_000 + at / 20, 40_000 + at]),
            _ => (1_900, vec![1, 2, 3, 50_000 + at]),
        };
        let output = 2 + at % 6;
        let line = json!({
            "timestamp": timestamp, "input_length": input, "output_length": output, "hash_ids": blocks,
        });
        writeln!(text, "{line}").unwrap();
        text
    })
}

/// Returns the fields of a plan up to its scenarios, for a mock whose cache holds everything.
fn plan(scenario: &str, sweep: &str) -> String {
    format!(
        "sweepline: 1\nname: profiles\nmodels: {{ m: {{ id: tiny }} }}\n\
         endpoints: {{ a: {{ engine: mock, mock: {{ ttft: 1ms, itl: 1ms, prefix_cache: 4000000, prefix_block: 4 }} }} }}\n\
         phases: {{ fill: 0s, stabilize: 0s, measure: 6s, drain: 30s }}\n\
         validity: {{ client_late: {{ suspect: 99%, invalid: 100% }}, unsteady: {{ suspect: 99% }} }}\n\
         scenarios: {{ replay: {{ {scenario} }} }}\nsweeps: {{ s: {{ {sweep} }} }}\n"
    )
}

const AS_RECORDED: &str = "matrix: { scenario: [replay] }";

fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("trace.jsonl", &trace());
    lab.ok(&["dataset", "profile", "trace.jsonl", "-o", "profile.json"]);
    lab
}

fn profile(lab: &Lab, file: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(lab.path().join(file)).unwrap()).unwrap()
}

fn rows(run: &Run) -> impl Iterator<Item = &RequestRow> {
    run.records.iter().map(|record| &record.row)
}

/// Returns a part of a whole in percent, over requests with a response, because the server does not
/// count the others.
fn percent(run: &Run, part: fn(&RequestRow) -> u32, whole: fn(&RequestRow) -> u32) -> f64 {
    let answered = || rows(run).filter(|row| row.prompt_tokens.is_some());
    let sum = |of: fn(&RequestRow) -> u32| answered().map(|row| u64::from(of(row))).sum::<u64>();
    100.0 * sum(part) as f64 / sum(whole) as f64
}

/// Returns the sent requests as a log in sweepline's own format.
fn log(run: &Run) -> String {
    let mut rows: Vec<_> = rows(run).collect();
    rows.sort_by_key(|row| row.scheduled_ns);
    rows.into_iter().fold(String::new(), |mut text, row| {
        let (input, output) = (row.intended_prompt_tokens, row.requested_tokens);
        let line = json!({ "offset_ns": row.scheduled_ns, "input_tokens": input, "output_tokens": output });
        writeln!(text, "{line}").unwrap();
        text
    })
}

/// Returns the share of requests in each range of prompt tokens.
fn shares(profile: &Value) -> BTreeMap<String, f64> {
    let mut shares = BTreeMap::new();
    let all = profile["requests"].as_f64().unwrap();
    for bucket in profile["lengths"]["buckets"].as_array().unwrap() {
        *shares.entry(bucket["prompt"].to_string()).or_default() += bucket["requests"].as_f64().unwrap() / all;
    }
    shares
}

#[test]
fn a_profile_is_replayed_as_it_says() {
    let lab = lab();
    let recorded = profile(&lab, "profile.json");
    lab.write("plan.yaml", &plan("profile: { file: profile.json, speed: 2 }", AS_RECORDED));
    lab.run(&["run", "plan.yaml"]);
    let run = lab.only_run();
    // At twice the speed, the trace takes 6 s at a mean of 100 per second, with three times as many
    // requests in the second half.
    let halves = [0, 1].map(|half| rows(&run).filter(|row| row.scheduled_ns / 3_000_000_000 == half).count());
    println!("{halves:?} requests, cv {}", run.json["spec"]["load"]["open"]["arrivals"]);
    assert!(halves[0].abs_diff(150) <= 6 && halves[1].abs_diff(450) <= 6, "{halves:?}");
    // The shared part according to the profile, to the plan, and to the server.
    let wanted = 100.0 * recorded["prefixes"]["reusable_share"].as_f64().unwrap();
    let declared = percent(&run, |row| row.reusable_tokens.unwrap(), |row| row.intended_prompt_tokens);
    let cached = percent(&run, |row| row.cached_tokens.unwrap_or(0), |row| row.prompt_tokens.unwrap_or(0));
    println!("profile {wanted:.1} %, declared {declared:.1} %, cached {cached:.1} %");
    assert!((wanted - declared).abs() <= 2.0, "profile {wanted:.2} %, declared {declared:.2} %");
    assert!((cached - declared).abs() <= 2.0, "declared {declared:.2} %, cached {cached:.2} %");
    assert!(wanted > 30.0, "{wanted}");
    // A profile of the sent requests equals the profile that was replayed.
    lab.write("sent.jsonl", &log(&run));
    lab.ok(&["dataset", "profile", "sent.jsonl", "-o", "again.json"]);
    let again = profile(&lab, "again.json");
    let (before, after) = (shares(&recorded), shares(&again));
    let ranges: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let share = |shares: &BTreeMap<String, f64>, range: &String| shares.get(range).copied().unwrap_or(0.0);
    let far: f64 = ranges.iter().map(|range| (share(&before, range) - share(&after, range)).abs()).sum::<f64>() / 2.0;
    println!("{far:.3} of the requests in another range: {before:?} {after:?}");
    // Four ranges, from 600 draws.
    assert!(far <= 0.06, "{before:?} {after:?}");
    let cv = |profile: &Value| profile["arrivals"]["gap_cv"].as_f64().unwrap();
    assert!((cv(&recorded) - cv(&again)).abs() <= 0.05, "{} {}", cv(&recorded), cv(&again));
}

/// Returns the id of a plan's only run.
fn id(lab: &Lab, plan: &str) -> String {
    lab.write("plan.yaml", plan);
    let preview = lab.ok(&["preview", "plan.yaml", "--format", "json"]).json();
    assert_eq!(preview["runs"].as_array().unwrap().len(), 1, "{preview}");
    preview["runs"][0]["id"].as_str().unwrap().to_owned()
}

/// A profile with one range and independent arrivals at two per second.
const PLAIN: &str = r#"{ "sweepline_profile": 1, "k": 10, "requests": 40,
  "lengths": { "declared": 40, "buckets": [{ "prompt": [64, 95], "output": [4, 5], "requests": 40 }], "suppressed": 0 },
  "arrivals": { "seconds": 20, "gap_cv": 1, "stretches": [{ "seconds": 20, "requests": 40 }] } }"#;

#[test]
fn a_run_is_what_the_profile_says_and_what_is_written_beside_it_wins() {
    let lab = lab();
    lab.write("plain.json", PLAIN);
    let row = "{ prompt_min: 64, prompt_max: 95, output_min: 4, output_max: 5, weight: 40 }";
    let lengths = format!("lengths: {{ histogram: [{row}] }}");
    let axes = |more: &str| format!("matrix: {{ scenario: [replay], {more} }}");
    let said = |scenario: &str, sweep: &str| id(&lab, &plan(scenario, sweep));
    let plain = said(&lengths, &axes("qps: [2]"));
    assert_eq!(said("profile: plain.json", AS_RECORDED), plain, "lengths and the recorded rate");
    assert_eq!(said("profile: { file: plain.json, speed: 3 }", AS_RECORDED), said(&lengths, &axes("qps: [6]")));
    let profile = |scenario: &str, sweep: &str| said(&format!("profile: plain.json, {scenario}"), sweep);
    // Fields next to the profile replace its parts, in the scenario …
    let own = "lengths: { prompt: 100, output: { uniform: { min: 2, max: 9 } } }";
    assert_eq!(profile(own, AS_RECORDED), said(own, &axes("qps: [2]")));
    let prefix = "prefix: { tokens: 64 }";
    assert_eq!(profile(prefix, AS_RECORDED), said(&format!("{lengths}, {prefix}"), &axes("qps: [2]")));
    let shorter =
        "lengths: { histogram: [{ prompt_min: 64, prompt_max: 95, output_min: 7, output_max: 7, weight: 40 }] }";
    assert_eq!(profile("output_tokens: 7", AS_RECORDED), said(shorter, &axes("qps: [2]")));
    // … and in the sweep.
    assert_eq!(profile("", &axes("batch_size: [3]")), said(&lengths, &axes("batch_size: [3]")));
    assert_eq!(profile("", &axes("qps: [9]")), said(&lengths, &axes("qps: [9]")));
    let constant = |axes: String| format!("{axes}, arrivals: constant");
    assert_eq!(profile("", &constant(axes("qps: [9]"))), said(&lengths, &constant(axes("qps: [9]"))));
    assert_eq!(profile("", &constant(AS_RECORDED.to_owned())), said(&lengths, &constant(axes("qps: [2]"))));
    // The profile's rate changes and shared prefixes are part of a run's identity.
    let whole = said("profile: profile.json", &axes("qps: [2]"));
    let others = [
        said("profile: profile.json, prefix: { tokens: 64 }", &axes("qps: [2]")),
        said("profile: profile.json", &constant(axes("qps: [2]"))),
        said("profile: { file: profile.json, speed: 2 }", &axes("qps: [2]")),
        plain,
    ];
    assert!(!others.contains(&whole), "{whole} {others:?}");
    // The file's name and layout are not part of the identity.
    let text = std::fs::read_to_string(lab.path().join("profile.json")).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    lab.write("data/moved.json", &value.to_string());
    assert_eq!(said("profile: data/moved.json", &axes("qps: [2]")), whole);
}

#[test]
fn conversations_of_a_profile_have_its_turns_and_come_when_they_came() {
    let lab = Lab::new();
    let text = |words: usize| "word ".repeat(words);
    let log = (0..200u64).fold(String::new(), |mut log, at| {
        let turns = if at % 2 == 0 { 1 } else { 3 };
        let turn =
            |_| [json!({ "role": "user", "content": text(40) }), json!({ "role": "assistant", "content": text(4) })];
        let messages: Vec<Value> = (0..turns).flat_map(turn).collect();
        writeln!(log, "{}", json!({ "offset_ns": at * 20_000_000, "messages": messages })).unwrap();
        log
    });
    lab.write("log.jsonl", &log);
    lab.ok(&["dataset", "profile", "log.jsonl", "-o", "profile.json"]);
    assert_eq!(profile(&lab, "profile.json")["turns"]["with_history"], Value::Null);
    lab.write("plan.yaml", &plan("profile: profile.json", AS_RECORDED).replace("measure: 6s", "measure: 4s"));
    lab.run(&["run", "plan.yaml"]);
    let run = lab.only_run();
    let mut turns: BTreeMap<u64, (u64, u32)> = BTreeMap::new();
    // Requests that never started have no conversation.
    for (row, conversation) in rows(&run).filter_map(|row| Some((row, row.conversation?))) {
        let (first, most) = turns.entry(conversation).or_insert((row.scheduled_ns, 0));
        (*first, *most) = ((*first).min(row.scheduled_ns), (*most).max(row.turn.unwrap() + 1));
    }
    // Conversations that started early have had time to end.
    let whole: Vec<u32> = turns.values().filter(|(first, _)| *first < 3_000_000_000).map(|(_, most)| *most).collect();
    assert!(whole.len().abs_diff(150) <= 4, "50 conversations a second: {}", whole.len());
    assert!(whole.iter().all(|turns| [1, 3].contains(turns)), "{whole:?}");
    let long = whole.iter().filter(|turns| **turns == 3).count() as f64 / whole.len() as f64;
    // The number is within four standard deviations of half of 150.
    assert!((long - 0.5).abs() <= 4.0 * 0.5 / 150f64.sqrt(), "{long}");
}

#[test]
fn turns_that_carry_their_history_are_sent_as_requests() {
    let lab = Lab::new();
    let log = (0..60u64).fold(String::new(), |mut log, at| {
        let line = json!({
            "offset_ns": at * 10_000_000, "conversation": at / 3, "input_tokens": 100 * (1 + at % 3), "output_tokens": 3,
        });
        writeln!(log, "{line}").unwrap();
        log
    });
    lab.write("log.jsonl", &log);
    lab.ok(&["dataset", "profile", "log.jsonl", "-o", "profile.json"]);
    assert_eq!(profile(&lab, "profile.json")["turns"]["with_history"], true);
    lab.write("plan.yaml", &plan("profile: profile.json", AS_RECORDED).replace("measure: 6s", "measure: 1s"));
    lab.run(&["run", "plan.yaml"]);
    assert!(lab.only_run().records.iter().all(|record| record.row.conversation.is_none()));
}

#[test]
fn a_lock_names_files_as_from_its_own_folder() {
    let lab = lab();
    lab.write("chats.json", include_str!("../../plans/data/chats.json"));
    let site = "models: { m: { id: tiny, tokenizer: ../words.json } }\nscenarios:\n  traced: { trace: { file: trace.jsonl } }\n  texts: { data: { file: ../chats.json, as: sharegpt } }\n  drawn: { lengths: { data: { file: ../chats.json, as: sharegpt } } }\n";
    lab.write("parts/site.yaml", site);
    std::fs::rename(lab.path().join("trace.jsonl"), lab.path().join("parts/trace.jsonl")).unwrap();
    // The expansion of a plan does not read the vocabulary.
    lab.write("words.json", "{}");
    let sweep =
        "matrix: { scenario: [replay, traced] } }, closed: { matrix: { scenario: [texts, drawn], batch_size: [1] }";
    let text = plan("profile: profile.json", sweep).replace("models: { m: { id: tiny } }", "use: [parts/site.yaml]");
    lab.write("plan.yaml", &text);
    let ids = |plan: &str, more: &[&str]| {
        let preview = lab.ok(&[&["preview", plan, "--format", "json"], more].concat()).json();
        let runs = preview["runs"].as_array().unwrap().clone();
        runs.into_iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let wanted = ids("plan.yaml", &[]);
    lab.ok(&["freeze", "plan.yaml", "-o", "plan.lock"]);
    assert_eq!(ids("plan.lock", &[]), wanted, "next to the plan; the trace is where the fragment is");
    std::fs::create_dir(lab.path().join("locks")).unwrap();
    let refused = lab.run(&["freeze", "plan.yaml", "-o", "locks/plan.lock"]);
    assert!(
        refused.code == Some(2) && refused.stderr.contains("is outside the folder of locks/plan.lock"),
        "{refused:?}"
    );
    lab.ok(&["freeze", "plan.yaml", "-o", "locks/plan.lock", "--allow-outside"]);
    assert_eq!(ids("locks/plan.lock", &["--allow-outside"]), wanted);
    lab.ok(&["preview", "plan.yaml", "--frozen", "locks/plan.lock", "--allow-outside"]);
    // A plan in a subfolder, named relative to the parent folder.
    std::fs::create_dir(lab.path().join("below")).unwrap();
    for file in ["plan.yaml", "profile.json", "words.json", "chats.json", "parts"] {
        std::fs::rename(lab.path().join(file), lab.path().join("below").join(file)).unwrap();
    }
    lab.ok(&["freeze", "below/plan.yaml", "-o", "above.lock"]);
    assert_eq!(ids("above.lock", &[]), wanted);
    let lock = std::fs::read_to_string(lab.path().join("above.lock")).unwrap();
    assert!(lock.contains("below/parts/trace.jsonl") && lock.contains("below/words.json"), "{lock}");
}
