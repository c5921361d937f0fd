//! Tests the output about a plan's data sets: which records were read, which were skipped and why, and
//! which cannot be read. Also tests which parts belong to a run's identity.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use lab::Lab;

/// Returns a plan over one embedded mock whose scenario `s` has these fields.
fn plan(scenario: &str, load: &str) -> String {
    format!(
        "sweepline: 1\nname: read\nmodels: {{ m: {{ id: tiny }} }}\nendpoints: {{ a: {{ engine: mock }} }}\n\
         phases: {{ fill: 0s, stabilize: 0s, measure: 500ms, drain: 30s }}\n\
         scenarios: {{ s: {{ {scenario} }} }}\nsweeps: {{ s: {{ matrix: {{ endpoint: a, scenario: s, {load} }} }} }}\n"
    )
}

fn chat(id: &str, said: &[(&str, &str)]) -> Value {
    let said: Vec<Value> = said.iter().map(|(from, value)| json!({ "from": from, "value": value })).collect();
    json!({ "id": id, "conversations": said })
}

/// Returns six conversations, two of which can be sent.
fn mixed() -> String {
    let long = "word ".repeat(2_000);
    let all = [
        chat("a", &[("human", "Where is the town hall?"), ("gpt", "At the market.")]),
        chat("b", &[("human", &long), ("gpt", "That was long.")]),
        chat("c", &[("gpt", "An answer without a question.")]),
        chat("d", &[("human", "And nobody answers?")]),
        chat("e", &[("human", &long), ("gpt", "Again.")]),
        chat("f", &[("human", "Who cleans it?"), ("gpt", "The caretaker."), ("human", "When?")]),
    ];
    all.map(|one| one.to_string()).join("\n")
}

const FILTERED: &str = "file: data.jsonl, filter: { prompt_tokens: { max: 100 } }";

/// Returns the preview of the plan's first run and of its data.
fn preview(lab: &Lab) -> Value {
    lab.ok(&["preview", "plan.yaml", "--format", "json"]).json()
}

#[test]
fn what_is_left_out_is_counted_and_told() {
    let lab = Lab::new();
    lab.write("data.jsonl", &mixed());
    lab.write("plan.yaml", &plan(&format!("data: {{ {FILTERED} }}"), "qps: 10"));
    let told = "data of s: 2 records of data.jsonl; 4 skipped: 2 filtered by length (first at 2), 1 no answer (first at \
                4), 1 nothing to send (first at 3)";
    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let check = joined(&lab.ok(&["check", "plan.yaml"]).stdout);
    assert!(check.contains(told), "{check}");
    let text = joined(&lab.ok(&["preview", "plan.yaml"]).stdout);
    assert!(
        text.contains(&format!("data {}; a run sends each of them about 2.50 times", &told["data of ".len()..])),
        "{text}"
    );
    let json = preview(&lab);
    assert_eq!(json["data"][0]["kept"], 2);
    assert_eq!(json["data"][0]["left_out"], 4);
    assert_eq!(json["data"][0]["times"], 2.5);
    // The estimated lengths of these texts are 6 and 4 tokens for prompts, and 4 and 4 for
    // responses.
    let cost = &json["totals"]["to_do"];
    assert_eq!(
        (&cost["requests"], &cost["prompt_tokens"], &cost["output_tokens"]),
        (&json!(5), &json!(25), &json!(20))
    );
    // With so few requests, the measurement is not valid, but it does not have to be here.
    lab.run(&["run", "plan.yaml"]);
    let run = lab.only_run();
    let data = &run.json["spec"]["scenario"]["data"];
    assert_eq!(data["records"], 2);
    assert_eq!(data["left_out"]["filtered by length"], json!({ "count": 2, "first": 2 }));
    assert_eq!(data["sha256"].as_str().unwrap().len(), 64);
    // If the scenario sets the output length, no response is needed.
    lab.write("plan.yaml", &plan(&format!("data: {{ {FILTERED} }}, output_tokens: 8"), "qps: 10"));
    let check = joined(&lab.ok(&["check", "plan.yaml"]).stdout);
    assert!(check.contains("data of s: 3 records of data.jsonl; 3 skipped: 2 filtered by length"), "{check}");
}

#[test]
fn a_run_is_what_it_sends_wherever_that_stood() {
    let lab = Lab::new();
    let id = |scenario: &str| {
        lab.write("plan.yaml", &plan(scenario, "qps: 10"));
        preview(&lab)["runs"][0]["id"].as_str().unwrap().to_owned()
    };
    lab.write("data.jsonl", &mixed());
    let first = id(&format!("data: {{ {FILTERED} }}"));
    // The same texts come from another file in another format, without the skipped records.
    let converted = ["dataset", "convert", "data.jsonl", "--prompt-tokens", "..100", "-o", "other/place.parquet"];
    std::fs::create_dir(lab.path().join("other")).unwrap();
    lab.ok(&converted);
    assert_eq!(id("data: { file: other/place.parquet }"), first);
    assert_eq!(id("data: { file: other/place.parquet, as: columns, order: shuffled }"), first);
    let others = [
        id("data: { file: data.jsonl }"),
        id(&format!("data: {{ {FILTERED}, order: file }}")),
        id(&format!("data: {{ {FILTERED} }}, output_tokens: 4")),
        id(&format!("data: {{ {FILTERED} }}, cache: cold")),
        id(&format!("base: D, data: {{ {FILTERED} }}")),
        id(&format!("data: {{ {FILTERED} }}, temperature: 1")),
    ];
    let all: BTreeSet<&String> = others.iter().chain([&first]).collect();
    assert_eq!(all.len(), 7, "{others:?}");
    // `freeze` writes a plan with the same run.
    lab.write("plan.yaml", &plan(&format!("data: {{ {FILTERED} }}"), "qps: 10"));
    lab.ok(&["freeze", "plan.yaml", "--output", "plan.lock"]);
    let lock = lab.ok(&["preview", "plan.lock", "--format", "json"]).json();
    assert_eq!(lock["runs"][0]["id"], first.as_str());
}

#[test]
fn lengths_of_a_data_set_keep_prompts_and_answers_together() {
    let lab = Lab::new();
    let pairs = [(40, 7), (40, 9), (120, 3), (300, 1)];
    let lines: String = pairs
        .iter()
        .map(|(prompt, output)| {
            let (prompt, output) = ("abcd".repeat(*prompt), "abcd".repeat(*output));
            json!({ "prompt": prompt, "output": output }).to_string() + "\n"
        })
        .collect();
    lab.write(
        "data.jsonl",
        &(lines + "{\"prompt\": \"Hi.\", \"output\": \"Hello to you.\"}\n{\"prompt\": \"No answer.\"}\n"),
    );
    lab.write("plan.yaml", &plan("lengths: { data: { file: data.jsonl } }", "qps: 200"));
    let check = lab.ok(&["check", "plan.yaml"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = "lengths of s: 5 pairs of lengths of data.jsonl, 5 different; 1 prompts were too short for a nonce and have \
                16 tokens; 1 skipped: 1 no answer (first at 6)";
    assert!(check.contains(told), "{check}");
    lab.run(&["run", "plan.yaml"]);
    let run = lab.only_run();
    let rows = run
        .records
        .iter()
        .map(|record| (record.row.intended_prompt_tokens as usize, record.row.requested_tokens as usize));
    let seen: BTreeSet<(usize, usize)> = rows.collect();
    // According to the estimate, a prompt has the requested length, or one token more or less.
    let near = |(prompt, output): &(usize, usize)| {
        seen.iter().any(|(own, asked)| asked == output && own.abs_diff(*prompt) <= 1)
    };
    let known: Vec<(usize, usize)> = pairs.into_iter().chain([(16, 4)]).collect();
    assert!(known.iter().all(near), "{seen:?}");
    let of_pair = |(own, asked): &(usize, usize)| {
        known.iter().any(|(prompt, output)| asked == output && own.abs_diff(*prompt) <= 1)
    };
    assert!(seen.iter().all(of_pair), "{seen:?}");
    assert!(!std::fs::read_to_string(run.dir.join("run.json")).unwrap().contains("abcd"), "no text is stored");
    // A table with the same content gives the same run.
    let id = |scenario: &str| {
        lab.write("plan.yaml", &plan(scenario, "qps: 200"));
        preview(&lab)["runs"][0]["id"].clone()
    };
    let table = "lengths: { pairs: [[16, 4], [40, 7], [40, 9], [120, 3], [300, 1]] }";
    assert_eq!(id(table), id("lengths: { data: { file: data.jsonl } }"));
    assert_eq!(id(table), run.json["id"]);
}

#[test]
fn a_data_set_that_cannot_be_sent_is_a_mistake_of_the_plan() {
    let lab = Lab::new();
    let good = "{\"prompt\": \"One.\", \"output\": \"Two.\"}\n";
    lab.write("good.jsonl", good);
    lab.write("syntax.jsonl", &format!("{good}{{\"prompt\": \n{good}"));
    lab.write("types.jsonl", &format!("{good}{good}{{\"prompt\": [1, 2]}}\n"));
    lab.write("columns.csv", "question,reply\nOne?,Two.\n");
    lab.write("ids.jsonl", "{\"id\": \"x\", \"prompt\": \"a\", \"output\": \"b\"}\n".repeat(2).as_str());
    lab.write("negative.jsonl", &format!("{good}{{\"prompt\": \"a\", \"output_tokens\": -4}}\n"));
    lab.write("unsorted.jsonl", "{\"prompt\": \"a\", \"output\": \"b\", \"offset_ns\": 5}\n{\"prompt\": \"a\", \"output\": \"b\", \"offset_ns\": 1}\n");
    lab.write("long.jsonl", &format!("{good}{{\"prompt\": \"{}\"}}\n{good}", "many words ".repeat(1_000_000)));
    lab.write("questions.jsonl", "{\"prompt\": \"Nobody answers.\"}\n");
    lab.write("lengths.jsonl", "{\"input_tokens\": 10, \"output_tokens\": 4}\n");
    std::fs::write(lab.path().join("latin.jsonl"), [good.as_bytes(), b"{\"prompt\": \"\xe9\"}\n"].concat()).unwrap();
    let cases = [
        ("none.jsonl", "E001", "`none.jsonl` cannot be read"),
        ("syntax.jsonl", "E001", "syntax.jsonl:2: not JSON"),
        ("types.jsonl", "E001", "types.jsonl:3: `prompt` is"),
        ("columns.csv", "E001", "columns.csv: its entries have an unknown format (their fields: question, reply)"),
        ("ids.jsonl", "E001", "ids.jsonl:2: the id `x` is a duplicate"),
        ("negative.jsonl", "E001", "negative.jsonl:2: "),
        ("unsorted.jsonl", "E001", "unsorted.jsonl:2: its time is"),
        ("long.jsonl", "E001", "long.jsonl:2: the entry is longer than 10000000 bytes"),
        ("latin.jsonl", "E001", "latin.jsonl:2: byte 13 of the entry is not UTF-8"),
        ("questions.jsonl", "E011", "nothing to send: 1 no answer (first at 1)"),
        ("lengths.jsonl", "E011", "nothing to send: 1 no text (first at 1)"),
    ];
    for (file, code, told) in cases {
        lab.write("plan.yaml", &plan(&format!("data: {{ file: {file} }}"), "qps: 10"));
        let check = lab.run(&["check", "plan.yaml"]);
        assert_eq!(check.code, Some(2), "{file}");
        let said = check.stdout + &check.stderr;
        assert!(said.contains(code) && said.contains(told) && said.contains("plan.yaml:6:"), "{file}: {said}");
    }
    // Records that may be skipped are skipped if the plan allows it, and counted.
    for (file, reason) in [
        ("syntax.jsonl", "1 not well-formed (first at 2)"),
        ("types.jsonl", "1 a wrong value (first at 3)"),
        ("ids.jsonl", "1 a duplicate id (first at 2)"),
        ("negative.jsonl", "1 a number below zero (first at 2)"),
        ("unsorted.jsonl", "1 earlier than the previous entry (first at 2)"),
        ("long.jsonl", "1 longer than --max-entry (first at 2)"),
        ("latin.jsonl", "1 not UTF-8 (first at 2)"),
    ] {
        for form in ["data", "lengths: { data"] {
            let close = if form == "data" { "" } else { " }" };
            lab.write("plan.yaml", &plan(&format!("{form}: {{ file: {file}, on_bad: skip }}{close}"), "qps: 10"));
            let check = lab.ok(&["check", "plan.yaml"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(check.contains(reason), "{file}: {check}");
        }
    }
    std::fs::create_dir(lab.path().join("inner")).unwrap();
    lab.write("inner/plan.yaml", &plan("data: { file: ../good.jsonl }", "qps: 10"));
    let outside = lab.run(&["check", "inner/plan.yaml"]);
    assert!(outside.code == Some(2) && outside.stderr.contains("E031"), "{outside:?}");
    lab.ok(&["check", "inner/plan.yaml", "--allow-outside"]);
}
