//! Tests that traces are replayed unchanged: arrival times, lengths and shared prefixes of prompts. A
//! run's identity depends on the file's bytes, not on its path.

use std::fmt::Write as _;

use lab::{Lab, Run};

/// Returns a trace in Mooncake's format: `count` requests 20 ms apart, every third one in a session that
/// grows by a block.
fn trace(count: u64) -> String {
    (0..count).fold(String::new(), |mut text, at| {
        let blocks: Vec<u64> =
            if at % 3 == 0 { (0..=at / 3 % 6).collect() } else { vec![1000 + 10 * at, 1001 + 10 * at] };
        let input = 512 * blocks.len() as u64 - 100;
        let (timestamp, output) = (at * 20, 2 + at % 4);
        let line = format!(
            "{{\"timestamp\": {timestamp}, \"input_length\": {input}, \"output_length\": {output}, \"hash_ids\": {blocks:?}}}"
        );
        writeln!(text, "{line}").unwrap();
        text
    })
}

/// Returns a plan that replays `trace` (the fields under a scenario's `trace`) on embedded mocks whose
/// caches hold everything.
fn plan(endpoints: &str, trace: &str) -> String {
    let mock = "{ engine: mock, mock: { ttft: 1ms, itl: 1ms, prefix_cache: 1000000 } }";
    let endpoints: Vec<String> = endpoints.split(' ').map(|name| format!("  {name}: {mock}\n")).collect();
    format!(
        "sweepline: 1\nname: traces\nmodels: {{ m: {{ id: tiny }} }}\nendpoints:\n{}\
         phases: {{ fill: 0s, stabilize: 0s, measure: 1s, drain: 30s }}\n\
         validity: {{ client_late: {{ suspect: 99%, invalid: 100% }}, unsteady: {{ suspect: 99% }} }}\n\
         scenarios: {{ replay: {{ trace: {{ {trace} }} }} }}\nsweeps: {{ s: {{ matrix: {{ endpoint: {:?}, scenario: [replay] }} }} }}\n",
        endpoints.concat(),
        endpoints.iter().map(|line| line.trim().split(':').next().unwrap()).collect::<Vec<_>>(),
    )
}

/// Returns the scheduled instant and the intended lengths of each request, by number.
fn sent(run: &Run) -> Vec<(u64, u64, u32, u32)> {
    let rows = run.records.iter().map(|record| &record.row);
    let mut sent: Vec<_> =
        rows.map(|row| (row.request, row.scheduled_ns, row.intended_prompt_tokens, row.requested_tokens)).collect();
    sent.sort_unstable();
    sent
}

#[test]
fn a_trace_is_replayed_as_it_was() {
    let lab = Lab::new();
    lab.write("trace.jsonl", &trace(200));
    lab.write("plan.yaml", &plan("a b", "file: trace.jsonl, speed: 2, window: [200ms, 2s]"));
    lab.run(&["run", "plan.yaml"]);
    let runs: Vec<Run> = lab.runs().into_values().collect();
    assert_eq!(runs.len(), 2);
    assert_eq!(sent(&runs[0]), sent(&runs[1]), "both servers are sent the same");
    assert_eq!(runs[0].json["generator_digest"], runs[1].json["generator_digest"]);
    let lines = trace(200);
    let wanted: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sent = sent(&runs[0]);
    assert_eq!(sent.len(), 90, "the requests of the window, and none after it");
    for (number, scheduled, prompt, output) in sent {
        let line = &wanted[number as usize + 10];
        assert_eq!(scheduled, (line["timestamp"].as_u64().unwrap() - 200) * 1_000_000 / 2, "{number}");
        assert_eq!(u64::from(prompt), line["input_length"].as_u64().unwrap(), "{number}");
        assert_eq!(u64::from(output), line["output_length"].as_u64().unwrap(), "{number}");
    }
}

#[test]
fn a_trace_that_is_repeated_begins_again_and_its_blocks_are_known() {
    let lab = Lab::new();
    lab.write("trace.jsonl", &trace(20));
    // 20 requests 80 ms apart take 1.6 s including the last gap, so there are two and a half rounds in 4
    // s. Even on a busy machine a request ends before the next one of its session arrives. Whole prompts
    // are repeated, because for such short prompts a partial block of 16 tokens, plus the template, is
    // more than 2 %.
    let plan = plan("a", "file: trace.jsonl, repeat: true, speed: 0.25").replace("measure: 1s", "measure: 4s");
    lab.write("plan.yaml", &plan.replace("prefix_cache: 1000000", "prefix_cache: 1000000, prefix_block: 4"));
    lab.run(&["run", "plan.yaml"]);
    let run = lab.only_run();
    let mut sent = sent(&run);
    sent.retain(|(_, scheduled, ..)| *scheduled < 4_000_000_000);
    assert_eq!(sent.len(), 50, "{sent:?}");
    for (number, scheduled, prompt, _) in &sent {
        assert_eq!(*scheduled, number * 80_000_000);
        assert_eq!(*prompt, sent[*number as usize % 20].2);
    }
    assert_eq!(run.json["spec"]["load"]["open"]["qps"].as_f64(), Some(12.5));
    // The server has no counts for requests that were not sent or got no response in time.
    let rows = || run.records.iter().map(|record| &record.row).filter(|row| row.prompt_tokens.is_some());
    for row in rows().filter(|row| row.request >= 20) {
        assert_eq!(row.reusable_tokens, Some(row.intended_prompt_tokens), "{row:?}");
    }
    let sum = |of: fn(&sweepline::rows::RequestRow) -> u32| rows().map(|row| f64::from(of(row))).sum::<f64>();
    let declared = 100.0 * sum(|row| row.reusable_tokens.unwrap()) / sum(|row| row.intended_prompt_tokens);
    let cached = 100.0 * sum(|row| row.cached_tokens.unwrap_or(0)) / sum(|row| row.prompt_tokens.unwrap_or(0));
    assert!((declared - cached).abs() <= 2.0, "declared {declared:.2} %, cached {cached:.2} %");
}

#[test]
fn blocks_are_shared_as_the_trace_says() {
    let lab = Lab::new();
    lab.write("trace.jsonl", &trace(50));
    // The trace is replayed at half its speed, so that even on a busy machine a session's request
    // ends before the next one arrives.
    let slowly = |trace: &str| plan("a", trace).replace("measure: 1s", "measure: 2s");
    lab.write("plan.yaml", &slowly("file: trace.jsonl, as: mooncake, speed: 0.5"));
    lab.run(&["run", "plan.yaml"]);
    let run = lab.only_run();
    let share = |part: u64, whole: u64| 100.0 * part as f64 / whole as f64;
    let rows = || run.records.iter().map(|record| &record.row);
    let sum = |of: fn(&sweepline::rows::RequestRow) -> u32| rows().map(|row| u64::from(of(row))).sum::<u64>();
    let declared = share(sum(|row| row.reusable_tokens.unwrap()), sum(|row| row.intended_prompt_tokens));
    let cached = share(sum(|row| row.cached_tokens.unwrap_or(0)), sum(|row| row.prompt_tokens.unwrap_or(0)));
    println!("declared {declared:.1} %, cached {cached:.1} %");
    assert!((declared - cached).abs() <= 2.0, "declared {declared:.2} %, cached {cached:.2} %");
    assert!(declared > 30.0, "{declared}");
    // The cold twin of a trace has the same lengths, and no reuse.
    lab.write(
        "cold.yaml",
        &plan("a", "file: trace.jsonl, as: mooncake").replace("replay: {", "replay: { cache: cold,"),
    );
    lab.run(&["run", "cold.yaml"]);
    let cold = lab.runs().into_values().find(|run| run.json["spec"]["scenario"]["cache"] == "cold").unwrap();
    assert_eq!(cold.records.iter().map(|record| record.row.reusable_tokens.unwrap()).max(), Some(0));
    assert!(cold.records.iter().all(|record| record.row.cached_tokens.unwrap_or(0) < 64));
}

#[test]
fn what_a_run_is_knows_the_bytes_and_not_the_place() {
    let lab = Lab::new();
    let id = |plan: &str| {
        lab.write("plan.yaml", plan);
        lab.ok(&["preview", "plan.yaml", "--format", "json"]).json()["runs"][0]["id"].clone()
    };
    lab.write("trace.jsonl", &trace(50));
    let first = id(&plan("a", "file: trace.jsonl"));
    std::fs::create_dir(lab.path().join("data")).unwrap();
    std::fs::rename(lab.path().join("trace.jsonl"), lab.path().join("data/moved.jsonl")).unwrap();
    assert_eq!(id(&plan("a", "file: data/moved.jsonl")), first);
    let fields = ["speed: 2", "window: [0s, 500ms]", "as: mooncake", "on_bad: skip"];
    let mut ids: Vec<_> = fields.map(|field| id(&plan("a", &format!("file: data/moved.jsonl, {field}")))).into();
    lab.write("data/moved.jsonl", &trace(51));
    ids.push(id(&plan("a", "file: data/moved.jsonl")));
    ids.push(first);
    ids.sort_by_key(ToString::to_string);
    ids.dedup();
    assert_eq!(ids.len(), 6, "each of them is a different run: {ids:?}");
    // `freeze` writes a plan with the same run.
    let frozen = lab.ok(&["freeze", "plan.yaml", "--output", "plan.lock"]);
    assert_eq!(frozen.code, Some(0));
    let lock = lab.ok(&["preview", "plan.lock", "--format", "json"]).json();
    let plan = lab.ok(&["preview", "plan.yaml", "--format", "json"]).json();
    assert_eq!(lock["runs"][0]["id"], plan["runs"][0]["id"]);
}

#[test]
fn a_trace_that_cannot_be_read_is_a_mistake_of_the_plan() {
    let lab = Lab::new();
    lab.write("trace.jsonl", &trace(50));
    lab.write("bad.jsonl", &(trace(3) + "{\"timestamp\": -1}\n"));
    lab.write("text.jsonl", "{\"prompt\": \"No time.\", \"output\": \"None.\"}\n");
    for (fields, code, told) in [
        ("file: none.jsonl", "E001", "`none.jsonl` cannot be read"),
        ("file: bad.jsonl", "E001", "bad.jsonl:4: `input_length` is missing"),
        ("file: text.jsonl", "E011", "has entries without a time or lengths"),
        ("file: trace.jsonl, window: [5m, 6m]", "E011", "fewer than two requests in its window"),
        ("file: trace.jsonl, as: burstgpt", "E001", "`Request tokens` is missing"),
    ] {
        lab.write("plan.yaml", &plan("a", fields));
        let check = lab.run(&["check", "plan.yaml"]);
        assert_eq!(check.code, Some(2), "{fields}");
        let said = check.stdout + &check.stderr;
        assert!(said.contains(code) && said.contains(told) && said.contains("plan.yaml:"), "{fields}: {said}");
        assert!(!said.contains("E019"), "the load exists, but is unknown: {said}");
    }
    lab.write("plan.yaml", &plan("a", "file: bad.jsonl, on_bad: skip"));
    assert_eq!(lab.ok(&["preview", "plan.yaml"]).code, Some(0));
    std::fs::create_dir(lab.path().join("inner")).unwrap();
    lab.write("inner/plan.yaml", &plan("a", "file: ../trace.jsonl"));
    let outside = lab.run(&["check", "inner/plan.yaml"]);
    assert!(outside.code == Some(2) && outside.stderr.contains("E031"), "{outside:?}");
    lab.ok(&["check", "inner/plan.yaml", "--allow-outside"]);
}

#[test]
fn a_run_of_a_trace_says_that_its_arrivals_are_the_traces() {
    let lab = Lab::new();
    lab.write("trace.jsonl", &trace(20));
    lab.write("plan.yaml", &plan("a", "file: trace.jsonl"));
    lab.run(&["run", "plan.yaml"]);
    let run = lab.only_run();
    assert_eq!(run.json["spec"]["load"]["open"]["arrivals"], "trace");
    // Stored values are read again, so the run exists and is not repeated.
    let preview = lab.ok(&["preview", "plan.yaml", "--format", "json"]).json();
    assert_eq!(preview["runs"][0]["state"], "cached", "{preview}");
    // Plans cannot set this value.
    lab.write("word.yaml", &plan("a", "file: trace.jsonl").replace("matrix: {", "arrivals: trace, matrix: {"));
    let check = lab.run(&["check", "word.yaml"]);
    assert!(check.code == Some(2) && check.stderr.contains("unknown arrival process `trace`"), "{check:?}");
}
