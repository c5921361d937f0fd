//! The time that commands take to find out whether there is anything to do: `cargo bench --bench resume`.
//!
//! The benchmark writes a results folder of a thousand committed runs through the store's own commit, with a
//! few rows each. Then it starts the built program repeatedly and measures each process from start to end,
//! with its output read through a pipe. The bench compares nothing; the targets are 100 ms for a run with
//! nothing to do and 1 s for a preview of 10 000 cells.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};

use sweepline::expand::expand;
use sweepline::plan;
use sweepline::rows::{Environment, Facts, Outcome, Phase, Record, RequestRow, TokenSource, Windows};
use sweepline::store::{Commit, Store};

/// Rows of each committed run.
const ROWS: u64 = 40;
/// Number of starts of each command.
const TIMES: usize = 21;

const THOUSAND: &str = "sweepline: 1
name: thousand
endpoints: { demo: { engine: mock } }
models: { m: { id: tiny } }
sweeps:
  s:
    matrix:
      endpoint: [demo]
      model: [m]
      scenario: [A1, A2, B1, B2, C]
      output_tokens: [16, 32, 64, 128, 256]
      batch_size: [1, 2, 4, 8, 16, 32, 64, 128]
    repeats: 5
";

/// Returns a plan of 10 000 cells, none of them among the thousand runs.
fn ten_thousand() -> String {
    let rates: Vec<String> = (1..=400).map(|rate| rate.to_string()).collect();
    let head = THOUSAND.split("      batch_size").next().expect("a head").replace("thousand", "ten-thousand");
    format!("{head}      qps: [{}]\n", rates.join(", "))
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

/// Commits every run of the plan.
fn commit_all(folder: &Path) -> usize {
    let loaded = plan::load(&folder.join("thousand.yaml")).expect("a plan");
    let expansion = expand(&loaded.plan).expect("expands");
    let writer = Store::lock(folder.join("results")).expect("a results folder");
    let records: Vec<Record> = (0..ROWS).map(record).collect();
    let end = 30_000_000 * ROWS;
    let facts = Facts {
        windows: Windows { stabilize_ns: 0, measure_start_ns: 0, measure_end_ns: end, end_ns: end },
        scheduled: ROWS,
        scheduled_in_window: ROWS,
        stream: true,
        ..Facts::default()
    };
    for run in &expansion.runs {
        let attempt = writer.begin(&run.id.to_string(), &run.spec).expect("an attempt");
        let mut journal = attempt.journal().expect("a journal");
        journal.append(&records).expect("rows");
        journal.finish().expect("a finished journal");
        attempt.samples().expect("a time series").finish().expect("a finished time series");
        let commit = Commit {
            environment: Environment::default(),
            facts: facts.clone(),
            generator_digest: "0".repeat(64),
            samples: 0,
            texts: None,
            reason: None,
        };
        attempt.commit(commit).expect("a commit");
    }
    expansion.runs.len()
}

/// Returns the CPU time of all children that have ended.
fn cpu() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("usage of children");
    let time = |value: TimeVal| Duration::from_micros(value.num_microseconds() as u64);
    time(usage.user_time()) + time(usage.system_time())
}

/// Returns the elapsed time of the program from start to end, and its CPU time, which other programs affect
/// less.
fn once(folder: &Path, args: &[&str]) -> (Duration, Duration) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweepline"));
    command.args(args).current_dir(folder).stdin(Stdio::null()).stderr(Stdio::null());
    let (start, before) = (Instant::now(), cpu());
    let output = command.output().expect("the built program");
    let took = (start.elapsed(), cpu() - before);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{args:?}: {:?}", output.status);
    took
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn report(folder: &Path, what: &str, args: &[&str]) {
    let (mut wall, mut cpu): (Vec<Duration>, Vec<Duration>) = (0..TIMES).map(|_| once(folder, args)).unzip();
    wall.sort();
    cpu.sort();
    let (median, fastest, cpu) = (ms(wall[TIMES / 2]), ms(wall[0]), ms(cpu[TIMES / 2]));
    println!("{what:<52} median {median:7.1} ms, fastest {fastest:7.1} ms, CPU {cpu:7.1} ms");
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("thousand.yaml"), THOUSAND).expect("written");
    std::fs::write(folder.join("ten-thousand.yaml"), ten_thousand()).expect("written");
    report(folder, "preview of 10000 cells, no results", &["preview", "ten-thousand.yaml"]);
    let start = Instant::now();
    let runs = commit_all(folder);
    println!("({runs} runs of {ROWS} rows committed in {:.1} s)", start.elapsed().as_secs_f64());
    let (first, _) = once(folder, &["run", "thousand.yaml"]);
    println!("(the first run with nothing to do reads all rows: {:.1} ms)", ms(first));
    report(folder, "run with nothing to do, 1000 finished runs", &["run", "thousand.yaml"]);
    report(folder, "preview of 1000 finished runs", &["preview", "thousand.yaml"]);
    report(folder, "preview of 10000 new cells next to 1000 results", &["preview", "ten-thousand.yaml"]);
    report(folder, "  the same as JSON", &["preview", "ten-thousand.yaml", "--format", "json"]);
    report(folder, "  the same with each run on a line", &["preview", "ten-thousand.yaml", "--all"]);
}
