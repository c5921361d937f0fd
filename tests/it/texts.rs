//! Tests `record: { text: true }`: the prompts and responses, word for word, compared with the servers' own
//! logs.

use std::collections::BTreeMap;

use serde_json::Value;
use sweepline::rows::{TextRow, read_texts};

use lab::mock::Mock;
use lab::{Lab, Run};

const CANARY: &str = "canary2b8e61f09d";

/// Returns a plan with one sweep of conversations on `a` (chat) and one of single requests on `b`
/// (completions).
fn plan(mocks: &[Mock; 2], head: &str, sweep: &str) -> String {
    let [a, b] = mocks.each_ref().map(|mock| format!("http://127.0.0.1:{}/v1", mock.port));
    format!(
        "sweepline: 1\nname: texts\n{head}\nmodels: {{ m: {{ id: tiny }} }}\nendpoints:
  a: {{ url: '{a}', engine: mock, api_key: {{ secret: 'env:KEY' }} }}
  b: {{ url: '{b}', engine: mock, api: completions }}
scenarios: {{ talk: {{ base: D, output_tokens: 12 }}, short: {{ base: C, output_tokens: 12 }} }}
phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 300ms, min_requests: 20, at_most: 60s }}, drain: 60s }}
sweeps:
  talk: {{ matrix: {{ endpoint: a, scenario: talk, batch_size: 2 }} }}
  short: {{ {sweep} matrix: {{ endpoint: b, scenario: short, batch_size: 2 }} }}
"
    )
}

/// Runs the plan. Exit code 3 is accepted, because a run may be invalid on a busy machine, which is not
/// tested here.
fn run(lab: &Lab, more: &[&str]) -> String {
    let ended = lab.command(&[&["run", "plan.yaml"], more].concat()).env("KEY", CANARY).output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(matches!(ended.status.code(), Some(0 | 3)), "{said}");
    said
}

fn start() -> [Mock; 2] {
    [Mock::start(&["--ttft", "2ms", "--reasoning", "4"]), Mock::start(&["--ttft", "2ms", "--words", "escaped"])]
}

fn of<'a>(runs: &'a BTreeMap<String, Run>, endpoint: &str) -> &'a Run {
    runs.values().find(|run| run.json["spec"]["endpoint"]["name"] == endpoint).unwrap()
}

fn texts(run: &Run) -> Vec<TextRow> {
    read_texts(&run.dir.join("texts.parquet")).unwrap()
}

/// Returns the log's entry of each request, by its number: the body, and the response with its reasoning in
/// front.
fn logged(mock: &mut Mock, run: &Run) -> BTreeMap<u64, (Value, String)> {
    mock.terminate();
    let attempt = format!("{}-{}-", &run.json["id"].as_str().unwrap()[..16], run.json["attempt"]);
    let lines = mock.log_now().into_iter().filter_map(|line| {
        let number = line["request_id"].as_str()?.strip_prefix(&attempt)?.parse().unwrap();
        let body = serde_json::from_str(line["request"].as_str().unwrap()).unwrap();
        Some((number, (body, line["answer"].as_str().unwrap_or_default().to_owned())))
    });
    lines.collect()
}

/// Asserts that each row of the run agrees with the server's log; returns the number of rows.
fn agree(run: &Run, mock: &mut Mock) -> usize {
    let (rows, log) = (texts(run), logged(mock, run));
    let requests: Vec<_> = run.records.iter().map(|record| &record.row).collect();
    assert_eq!(rows.len(), requests.len(), "every request is stored");
    for (text, row) in rows.iter().zip(requests) {
        assert_eq!((text.request, text.conversation, text.turn), (row.request, row.conversation, row.turn));
        assert_eq!((text.truncated, &text.tool_calls), (false, &None));
        let Some((body, answer)) = log.get(&text.request) else {
            // The request was cut off at the end of the run before the server had read it.
            assert!(!row.outcome.is_ok(), "request {} is not in the log", text.request);
            continue;
        };
        match body["messages"].is_array() {
            true => assert_eq!(text.prompt, body["messages"].to_string()),
            false => assert_eq!(text.prompt, body["prompt"].as_str().unwrap()),
        }
        let said = format!("{}{}", text.reasoning.as_deref().unwrap_or(""), text.answer.as_deref().unwrap_or(""));
        match row.outcome.is_ok() {
            true => assert_eq!(&said, answer),
            // The part that never arrived was not stored.
            false => assert!(answer.starts_with(&said), "{said:?} of {answer:?}"),
        }
        assert_eq!(text.reasoning.is_some(), body["messages"].is_array() && row.events > 0);
    }
    rows.len()
}

#[test]
fn texts_are_those_of_the_servers_logs() {
    let lab = Lab::new();
    let mut mocks = start();
    lab.write("plan.yaml", &plan(&mocks, "record: { text: true }", ""));
    run(&lab, &[]);
    lab.ok(&["verify"]);
    let runs = lab.runs();
    let [a, b] = [of(&runs, "a"), of(&runs, "b")];
    assert!(agree(a, &mut mocks[0]) >= 20 && agree(b, &mut mocks[1]) >= 20);
    // Conversations include their histories, and no file contains the key.
    let deep = texts(a).into_iter().find(|text| text.turn > Some(1)).expect("a third turn");
    assert!(serde_json::from_str::<Vec<Value>>(&deep.prompt).unwrap().len() >= 5, "{deep:?}");
    assert!(texts(a).iter().all(|text| !format!("{text:?}").contains("canary")));
    // A manipulated file is detected.
    let file = a.dir.join("texts.parquet");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let ended = lab.run(&["verify"]);
    assert!(
        ended.code != Some(0) && ended.stdout.contains("the SHA-256 of texts.parquet does not match run.json"),
        "{ended:?}"
    );
}

#[test]
fn nothing_is_kept_unasked_and_nothing_is_measured_again_for_it() {
    let lab = Lab::new();
    let mocks = start();
    lab.write("plan.yaml", &plan(&mocks, "", ""));
    let said = run(&lab, &[]);
    assert!(!said.contains("without texts"), "{said}");
    let before = lab.runs();
    for run in before.values() {
        assert!(!run.dir.join("texts.parquet").exists() && run.json["files"]["texts.parquet"].is_null());
        assert!(run.json["spec"]["record"].is_null());
    }
    // A sweep can enable the recording for itself. Existing results are kept, and a message shows the
    // command that measures them again.
    lab.write("plan.yaml", &plan(&mocks, "", "record: { text: true },"));
    let said = run(&lab, &[]);
    assert!(said.contains("nothing to do"), "{said}");
    let line = said.lines().find(|line| line.contains("without texts")).expect(&said);
    let short = &of(&before, "b").json["id"].as_str().unwrap()[..8];
    let typed = line.split_once("to measure again: ").unwrap().1;
    assert_eq!(typed, format!("--force --only \"id[:8] in ['{short}']\""), "{line}");
    assert_eq!(before.keys().collect::<Vec<_>>(), lab.runs().keys().collect::<Vec<_>>());
    let said = run(&lab, &["--force", "--only", &format!("id[:8] in ['{short}']")]);
    assert!(!said.contains("without texts"), "{said}");
    let runs = lab.runs();
    assert!(!of(&runs, "a").dir.join("texts.parquet").exists());
    let kept = of(&runs, "b");
    assert_eq!(kept.json["files"]["texts.parquet"]["rows"], texts(kept).len());
    assert!(!texts(kept).is_empty());
    // A sweep can disable the recording that its plan enables.
    lab.write("plan.yaml", &plan(&mocks, "record: { text: true }", "record: { text: false },"));
    let said = run(&lab, &["--only", "sweep == 'short'"]);
    assert!(!said.contains("without texts"), "{said}");
}
