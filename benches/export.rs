//! The cost of reading and exporting a run of five million requests: `cargo bench --bench export`.
//!
//! The benchmark writes a run of synthetic rows through the store's own commit. The built program then
//! shows all its metrics, and writes its requests as a table, each in a separate process whose time and
//! peak memory are measured. The targets: all metrics within 20 s and 1 GB, and 200 000 rows per second as
//! CSV. `SWEEPLINE_BENCH_ROWS` sets the number of rows, and `SWEEPLINE_BENCH_PROGRAM` measures another
//! build of the program.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use sweepline::expand::expand;
use sweepline::plan;
use sweepline::rows::{Environment, Facts, Outcome, Phase, Record, RequestRow, TokenSource, Windows};
use sweepline::store::{Commit, Store};

const PLAN: &str = "sweepline: 1
name: long
endpoints: { demo: { engine: mock } }
models: { m: { id: tiny } }
sweeps: { s: { matrix: { endpoint: [demo], model: [m], scenario: [B1], temperature: [0], qps: [1000] } } }
";

/// Rows by default.
const ROWS: u64 = 5_000_000;
/// Token events of each request.
const EVENTS: u32 = 8;
/// Time between arrivals, in nanoseconds.
const BETWEEN: u64 = 1_000_000;
/// Rows passed to the journal at once.
const BATCH: u64 = 10_000;

/// Creates a request with distinct figures; one in a thousand fails.
fn record(request: u64, rng: &mut ChaCha8Rng) -> Record {
    let at = BETWEEN * request + rng.random_range(0..BETWEEN);
    let sent = at + rng.random_range(10_000..80_000);
    let gaps_ns: Vec<u64> = (1..EVENTS).map(|_| rng.random_range(8_000_000..14_000_000)).collect();
    let first = sent + rng.random_range(20_000_000..90_000_000);
    let last = first + gaps_ns.iter().sum::<u64>();
    let row = RequestRow {
        released_ns: Some(at),
        sent_ns: Some(sent),
        ended_ns: Some(last + 100_000),
        requested_tokens: EVENTS,
        intended_prompt_tokens: 50,
        reusable_tokens: Some(0),
        content_wait_ns: Some(0),
        ..RequestRow::wanted(request, Phase::Measure, at)
    };
    if rng.random_range(0..1000) == 0 {
        let row = RequestRow {
            outcome: Outcome::Http(503),
            http_status: Some(503),
            error: Some("the server answered 503".to_owned()),
            ..row
        };
        return Record { row, gaps_ns: Vec::new() };
    }
    let row = RequestRow {
        headers_ns: Some(first - 400_000),
        first_chunk_ns: Some(first - 300_000),
        first_token_ns: Some(first),
        first_output_ns: Some(first),
        last_token_ns: Some(last),
        done_ns: Some(last + 80_000),
        outcome: Outcome::Ok,
        http_status: Some(200),
        finish_reason: Some("length".to_owned()),
        prompt_tokens: Some(50 + rng.random_range(0..8)),
        output_tokens: Some(EVENTS),
        token_source: Some(TokenSource::Usage),
        events: EVENTS,
        bytes: 2_000 + rng.random_range(0..200),
        text_digest: Some(format!("{:016x}", rng.random::<u64>())),
        ..row
    };
    Record { row, gaps_ns }
}

/// Commits the run of the plan with `rows` rows and returns its id.
fn commit(folder: &Path, rows: u64) -> String {
    let loaded = plan::load(&folder.join("long.yaml")).expect("a plan");
    let expansion = expand(&loaded.plan).expect("expands");
    let run = &expansion.runs[0];
    let writer = Store::lock(folder.join("results")).expect("a results folder");
    let attempt = writer.begin(&run.id.to_string(), &run.spec).expect("an attempt");
    let mut journal = attempt.journal().expect("a journal");
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for from in (0..rows).step_by(BATCH as usize) {
        let batch: Vec<Record> = (from..rows.min(from + BATCH)).map(|request| record(request, &mut rng)).collect();
        journal.append(&batch).expect("rows");
    }
    journal.finish().expect("a finished journal");
    attempt.samples().expect("a time series").finish().expect("a finished time series");
    let end = BETWEEN * rows;
    let facts = Facts {
        windows: Windows { stabilize_ns: 0, measure_start_ns: 0, measure_end_ns: end, end_ns: end + 1_000_000_000 },
        scheduled: rows,
        scheduled_in_window: rows,
        open_loop: true,
        qps: Some(1e9 / BETWEEN as f64),
        stream: true,
        ..Facts::default()
    };
    let generator_digest = "0".repeat(64);
    let commit =
        Commit { environment: Environment::default(), facts, generator_digest, samples: 0, texts: None, reason: None };
    attempt.commit(commit).expect("a commit");
    run.id.to_string()
}

/// Returns the peak memory of a process so far, in bytes.
fn peak(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// Returns the CPU time of all children that have exited.
fn cpu() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("usage of children");
    let time = |value: TimeVal| Duration::from_micros(value.num_microseconds() as u64);
    time(usage.user_time()) + time(usage.system_time())
}

/// Starts the program; returns its elapsed time, its CPU time, which other programs disturb less, and its
/// peak memory.
fn once(folder: &Path, args: &[&str]) -> (Duration, Duration, u64) {
    let program =
        std::env::var("SWEEPLINE_BENCH_PROGRAM").unwrap_or_else(|_| env!("CARGO_BIN_EXE_sweepline").to_owned());
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
    let (start, before) = (Instant::now(), cpu());
    let mut child = command.spawn().expect("the built program");
    let mut most = 0;
    let status = loop {
        most = most.max(peak(child.id()).unwrap_or(0));
        if let Some(status) = child.try_wait().expect("a status") {
            break status;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(status.success(), "{args:?}: {status}");
    (start.elapsed(), cpu() - before, most)
}

fn report(folder: &Path, what: &str, rows: u64, args: &[&str]) {
    let (took, cpu, most) = once(folder, args);
    let (seconds, cpu) = (took.as_secs_f64(), cpu.as_secs_f64());
    let size = args.last().and_then(|file| std::fs::metadata(folder.join(file)).ok()).map_or(0, |file| file.len());
    println!(
        "{what:<36} {seconds:6.1} s, {cpu:6.1} s of CPU, {:9.0} rows/s, {:9.0} per s of CPU, peak memory {:5.0} MB, {:6.0} MB written",
        rows as f64 / seconds,
        rows as f64 / cpu,
        most as f64 / 1e6,
        size as f64 / 1e6
    );
}

fn main() {
    let rows = std::env::var("SWEEPLINE_BENCH_ROWS").ok().and_then(|rows| rows.parse().ok()).unwrap_or(ROWS);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("long.yaml"), PLAN).expect("written");
    let start = Instant::now();
    let id = commit(folder, rows);
    println!("({rows} rows of {EVENTS} token events committed in {:.1} s)", start.elapsed().as_secs_f64());
    report(folder, "every metric (show)", rows, &["show", &id, "--format", "json"]);
    report(
        folder,
        "requests as CSV",
        rows,
        &["export", "--rows", "requests", "--columns", "all", "-o", "requests.csv"],
    );
    std::fs::remove_file(folder.join("requests.csv")).expect("it was written");
    report(folder, "requests as Parquet", rows, &["export", "--rows", "requests", "-o", "requests.parquet"]);
    let five = "run_id,request,outcome,ttft_ms,e2e_ms";
    let args = ["export", "--rows", "requests", "--columns", five, "-o", "requests.xlsx"];
    // A sheet cannot hold more rows.
    if rows < 1 << 20 {
        report(folder, "five columns of requests as XLSX", rows, &args);
    }
}
