//! Tests a results folder with rows that no server should produce: every command that reads results works,
//! and prints n/a and a reason if there is no value.

use sweepline::expand::expand;
use sweepline::plan;
use sweepline::rows::{Environment, Facts, Outcome, Phase, Record, RequestRow, Windows};
use sweepline::store::{Commit, Store};

use lab::Lab;

const SECOND: u64 = 1_000_000_000;
/// The largest number that a row can contain.
const MOST: u64 = i64::MAX as u64;

const PLAN: &str = "sweepline: 1
name: extremes
endpoints: { an-endpoint-with-a-name-of-some-length: { engine: mock } }
models: { a-model-with-a-long-name-70b-instruct: { id: tiny }, m: { id: tiny } }
slo: { ttft: { p99: 500ms }, itl: { p99: 50ms } }
sweeps:
  s:
    matrix:
      endpoint: [an-endpoint-with-a-name-of-some-length]
      model: [a-model-with-a-long-name-70b-instruct]
      scenario: [B1]
      temperature: [0.25]
      output_tokens: [128]
      batch_size: [1, 2, 3, 4, 5]
    repeats: 3
";

/// Returns a response of `events` tokens whose instants are all `at`.
fn answer(request: u64, at: u64, tokens: u32) -> RequestRow {
    RequestRow {
        released_ns: Some(at),
        sent_ns: Some(at),
        headers_ns: Some(at),
        first_chunk_ns: Some(at),
        first_token_ns: Some(at),
        first_output_ns: Some(at),
        last_token_ns: Some(at),
        done_ns: Some(at),
        ended_ns: Some(at),
        outcome: Outcome::Ok,
        prompt_tokens: Some(tokens),
        cached_tokens: Some(tokens),
        output_tokens: Some(tokens),
        reusable_tokens: Some(tokens),
        requested_tokens: tokens,
        intended_prompt_tokens: tokens,
        ..RequestRow::wanted(request, Phase::Measure, 0)
    }
}

fn failed(request: u64) -> Record {
    let row =
        RequestRow { outcome: Outcome::Http(500), sent_ns: Some(0), ..RequestRow::wanted(request, Phase::Measure, 0) };
    Record { row, gaps_ns: Vec::new() }
}

/// Returns the rows of the run with a given batch size: no rows, one row, all failed, the largest
/// numbers, or all 0.
fn rows(batch_size: u32) -> Vec<Record> {
    let record = |row: RequestRow, gaps_ns: Vec<u64>| {
        let events = gaps_ns.len() as u32 + 1;
        Record { row: RequestRow { events, ..row }, gaps_ns }
    };
    match batch_size {
        1 => Vec::new(),
        2 => vec![record(answer(0, SECOND / 2, 2), vec![1_000])],
        3 => (0..50).map(failed).collect(),
        4 => (0..50).map(|request| record(answer(request, MOST, u32::MAX), vec![MOST, MOST, 0])).collect(),
        _ => (0..50).map(|request| record(answer(request, 0, 0), vec![0, 0])).collect(),
    }
}

/// Commits every run of the plan.
fn commit(lab: &Lab) {
    let loaded = plan::load(&lab.write("plan.yaml", PLAN)).unwrap();
    let writer = Store::lock(lab.results()).unwrap();
    let windows = Windows { stabilize_ns: 0, measure_start_ns: 0, measure_end_ns: SECOND, end_ns: 2 * SECOND };
    for run in &expand(&loaded.plan).unwrap().runs {
        let attempt = writer.begin(&run.id.to_string(), &run.spec).unwrap();
        let batch_size = run.spec.load.batch_size().unwrap();
        let mut journal = attempt.journal().unwrap();
        journal.append(&rows(batch_size)).unwrap();
        journal.finish().unwrap();
        attempt.samples().unwrap().finish().unwrap();
        let facts = Facts { windows, stream: true, batch_size: Some(batch_size), ..Facts::default() };
        let generator_digest = "0".repeat(64);
        let environment = Environment::default();
        attempt.commit(Commit { environment, facts, generator_digest, samples: 0, texts: None, reason: None }).unwrap();
    }
}

fn is_for_people(text: &str, what: &str) {
    assert!(!text.contains("NaN") && !text.contains("inf"), "{what}: {text}");
    let wide = text.lines().find(|line| line.chars().count() > 100);
    assert_eq!(wide, None, "{what}");
}

#[test]
fn no_rows_break_an_answer() {
    let lab = Lab::new();
    commit(&lab);
    let table = lab.run(&["run", "plan.yaml"]);
    assert_eq!(table.code, Some(3), "the runs exist, and some are invalid: {}", table.stderr);
    assert!(table.stdout.contains("n/a") && table.stderr.contains("no request was sent"), "{table:?}");
    is_for_people(&table.stdout, "run");
    // Repeats have the same rows.
    let first = |run: &lab::Run| run.json["spec"]["repeat"] == 0;
    for (run, _) in lab.runs().into_iter().filter(|(_, run)| lab::is_whole() || first(run)) {
        for args in [&["show", &run] as &[&str], &["show", &run, "--plan", "plan.yaml", "--definitions"]] {
            let shown = lab.ok(args);
            is_for_people(&shown.stdout, &run);
            assert!(shown.stdout.contains("n/a ("), "a reason: {}", shown.stdout);
        }
        let shown = lab.ok(&["show", &run, "--plan", "plan.yaml", "--format", "json"]).json();
        if shown["metrics"]["requests"] == 0 {
            assert_eq!((&shown["verdict"]["state"], &shown["metrics"]["ttft_p50_ms"]), (&"invalid".into(), &().into()));
        }
    }
    for rows in ["runs", "classes", "lengths", "requests", "events", "curves"] {
        let endings = ["json", "xlsx", "csv", "md", "parquet"];
        // The plain suite writes two formats of most tables.
        let some = if lab::is_whole() || rows == "runs" { endings.len() } else { 2 };
        for ending in &endings[..some] {
            let file = format!("{rows}.{ending}");
            lab.ok(&["export", "plan.yaml", "--rows", rows, "-o", &file]);
            let bytes = std::fs::read(lab.path().join(&file)).unwrap();
            assert!(!bytes.is_empty(), "{file}");
            if *ending == "json" {
                serde_json::from_slice::<Vec<serde_json::Value>>(&bytes).unwrap();
            }
        }
    }
    lab.ok(&["export", "plan.yaml", "-o", "all.xlsx"]);
    lab.ok(&["export", "plan.yaml", "--wide"]);
}
