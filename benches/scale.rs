//! Makes a results folder of many runs: `cargo bench --bench scale -- FOLDER RUNS`. `benches/scale.py` does it for
//! several sizes and measures what commands take on them.
//!
//! Writes `FOLDER/plan.yaml` and commits each of its runs to `FOLDER/results` by the store's own commit: a true
//! `run.json`, row files of a few rows, an entry in the inventory. Only what the runs measured is made up. With
//! `expand` as FOLDER it only expands the plan. Prints figures; compares with nothing.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use sweepline::expand::{PlannedRun, expand};
use sweepline::plan::{self, Format};
use sweepline::rows::{Environment, Facts, Outcome, Phase, Record, RequestRow, TokenSource, Windows};
use sweepline::server::client_environment;
use sweepline::store::{Commit, Store, Writer};

/// Rows of each run.
const ROWS: u64 = 4;
/// Threads that commit: each waits for the disk most of the time.
const THREADS: usize = 8;
/// Runs of each rate: output lengths times repeats.
const RUNS_A_RATE: usize = 100;

/// A plan of this many runs, in steps of [`RUNS_A_RATE`].
fn plan_of(runs: usize) -> String {
    let lengths: Vec<String> = (1..=20).map(|length| (16 * length).to_string()).collect();
    format!(
        "sweepline: 1
name: scale
endpoints: {{ demo: {{ engine: mock }} }}
models: {{ m: {{ id: tiny }} }}
sweeps:
  s:
    matrix:
      endpoint: demo
      model: m
      scenario: B1
      output_tokens: [{}]
      qps: {{ from: 1, to: {}, step: 1 }}
    repeats: 5
",
        lengths.join(", "),
        runs / RUNS_A_RATE
    )
}

fn record(request: u64) -> Record {
    let at = 30_000_000 * request;
    let row = RequestRow {
        released_ns: Some(at),
        sent_ns: Some(at + 20_000),
        headers_ns: Some(at + 4_000_000),
        first_chunk_ns: Some(at + 5_000_000),
        first_token_ns: Some(at + 5_000_000),
        first_output_ns: Some(at + 5_000_000),
        last_token_ns: Some(at + 20_000_000),
        done_ns: Some(at + 20_100_000),
        ended_ns: Some(at + 20_200_000),
        outcome: Outcome::Ok,
        http_status: Some(200),
        finish_reason: Some("length".into()),
        prompt_tokens: Some(50),
        output_tokens: Some(16),
        requested_tokens: 16,
        intended_prompt_tokens: 50,
        token_source: Some(TokenSource::Usage),
        events: 16,
        bytes: 4_000,
        ..RequestRow::wanted(request, Phase::Measure, at)
    };
    Record { row, gaps_ns: vec![1_000_000; 15] }
}

fn commit(writer: &Writer, run: &PlannedRun, (records, environment): (&[Record], &Environment)) {
    let end = 30_000_000 * ROWS;
    let facts = Facts {
        windows: Windows { stabilize_ns: 0, measure_start_ns: 0, measure_end_ns: end, end_ns: end },
        scheduled: ROWS,
        scheduled_in_window: ROWS,
        stream: true,
        open_loop: true,
        ..Facts::default()
    };
    let attempt = writer.begin(&run.id.to_string(), &run.spec).expect("an attempt");
    let mut journal = attempt.journal().expect("a journal");
    journal.append(records).expect("rows");
    journal.finish().expect("a finished journal");
    attempt.samples().expect("a time series").finish().expect("a finished time series");
    let generator_digest = "0".repeat(64);
    let environment = environment.clone();
    attempt
        .commit(Commit { environment, facts, generator_digest, samples: 0, texts: None, reason: None })
        .expect("a commit");
}

/// The most memory that this process has had, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or_default() / 1024
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let [folder, runs] = args.as_slice() else {
        println!("usage: cargo bench --bench scale -- FOLDER|expand RUNS");
        return;
    };
    let text = plan_of(runs.parse().expect("a number of runs"));
    let loaded = plan::parse(Path::new("plan.yaml"), &text, Format::Yaml).expect("a plan");
    let start = Instant::now();
    let expansion = expand(&loaded.plan).expect("expands");
    println!("expand: {} runs in {:.2} s, peak {} MiB", expansion.runs.len(), start.elapsed().as_secs_f64(), peak());
    if folder == "expand" {
        return;
    }
    let folder = Path::new(folder);
    std::fs::create_dir_all(folder).expect("a folder");
    std::fs::write(folder.join("plan.yaml"), text).expect("a plan's file");
    let writer = Store::lock(folder.join("results")).expect("a results folder");
    let records: Vec<Record> = (0..ROWS).map(record).collect();
    let environment = client_environment();
    let (next, start) = (AtomicUsize::new(0), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(run) = expansion.runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    commit(&writer, run, (&records, &environment));
                }
            });
        }
    });
    println!("committed in {:.0} s, peak {} MiB", start.elapsed().as_secs_f64(), peak());
}
